"""A board's entry in the inventory, and the host key that it is known by."""

import json
import shlex
from pathlib import Path

from edgeflare._internal.files import write_whole
from edgeflare.devices import Device
from edgeflare.devices.ssh_config import known_name
from edgeflare.virtual.keys import USER_KEY
from edgeflare.virtual.rootfs import HOME_USER

ADDRESS = "127.0.0.1"
_PATIENCE = {"connect_timeout_s": 60.0, "heartbeat_s": 60.0, "timeout_s": 300.0}
"""An emulated processor is some twenty times slower than the machine that emulates it."""


def board_device(folder: Path, name: str, port: int, user: str = HOME_USER) -> Device:
    """Return the device that the board in this folder is."""
    return Device.model_validate({"name": name, **_fields(folder, port), "user": user})


def write_entry(folder: Path, device: Device, host_public: str) -> None:
    """Write ``devices.toml`` and ``known_hosts`` into the board's folder."""
    port = device.port or 22
    line = f"{known_name(ADDRESS, port)} {host_public}\n"
    write_whole(folder / "known_hosts", line.encode(), private=True)
    fields = _fields(folder, port).items()
    lines = [f"{key} = {json.dumps(value, ensure_ascii=False)}" for key, value in fields]
    text = "\n".join([f"[devices.{device.name}]", *lines, ""])
    write_whole(folder / "devices.toml", text.encode(), private=True)


def ssh_command(device: Device) -> str:
    """Return the command line that opens a shell on the board."""
    words = [
        *("ssh", "-F", "/dev/null", "-i", str(device.key), "-o", "IdentitiesOnly=yes"),
        *("-o", f'UserKnownHostsFile="{device.known_hosts}"', "-p", str(device.port)),
        f"{device.user}@{device.host}",
    ]
    return shlex.join(words)


def _fields(folder: Path, port: int) -> dict[str, str | int | float]:
    return {
        "transport": "ssh",
        "host": ADDRESS,
        "port": port,
        "user": HOME_USER,
        "key": str(folder / USER_KEY),
        "known_hosts": str(folder / "known_hosts"),
        "ssh_config": "/dev/null",  # nothing of the user's own settings is meant for this board
        "python": "python3",
        **_PATIENCE,
    }

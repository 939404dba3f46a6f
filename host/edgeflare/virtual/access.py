"""How a board is reached: its own SSH keys, its host key, and its entry in the inventory."""

import json
import shlex
from pathlib import Path
from typing import NamedTuple

from edgeflare._internal.files import write_whole
from edgeflare.devices import Device
from edgeflare.devices.transports.ssh.config import known_name
from edgeflare.virtual.rootfs import HOME_USER

USER_KEY = "id_ed25519"
"""The user's private key, in the board's folder."""


class Keys(NamedTuple):
    """The user's public key, and the board's own private and public key."""

    authorized: str
    host_key: bytes
    host_public: str


def board_keys(folder: Path) -> Keys:
    """Return the keys of the board in this folder; made at the first call."""
    user_key, host_key = folder / USER_KEY, folder / "host_key"
    for path in (user_key, host_key):
        if not path.is_file():
            write_whole(path, _new_key(), private=True)
    return Keys(_public(user_key), host_key.read_bytes(), _public(host_key))


def _new_key() -> bytes:
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    return Ed25519PrivateKey.generate().private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.OpenSSH,
        serialization.NoEncryption(),
    )


def _public(path: Path) -> str:
    from paramiko import Ed25519Key

    key = Ed25519Key.from_private_key_file(str(path))
    return f"{key.get_name()} {key.get_base64()}"


ADDRESS = "127.0.0.1"
_TIMEOUTS = {"connect_timeout_s": 60.0, "heartbeat_s": 60.0, "timeout_s": 300.0}
"""An emulated processor is some twenty times slower than the machine that emulates it."""


def board_device(folder: Path, name: str, port: int, user: str = HOME_USER) -> Device:
    """Return the inventory entry of the board in this folder."""
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
        "ssh_config": "/dev/null",  # the user's own settings are not for this board
        "python": "python3",
        **_TIMEOUTS,
    }

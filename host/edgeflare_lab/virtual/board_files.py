"""The files of boards: SSH keys, inventory entry and state, and where builds are stored."""

import json
import shlex
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import NamedTuple

from edgeflare._internal.files import cache_folder, make_folder, write_whole
from edgeflare.devices import Device
from edgeflare.devices.inventory import state_root
from edgeflare.devices.transports.ssh.config import known_name
from edgeflare.errors import DeviceError
from edgeflare_lab.virtual.rootfs import HOME_USER

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


def cache_root() -> Path:
    """Return the folder of builds, $XDG_CACHE_HOME/edgeflare/virtual."""
    return cache_folder() / "virtual"


def board_folder(name: str) -> Path:
    """Return the folder of one board, $XDG_STATE_HOME/edgeflare/virtual/NAME."""
    return state_root() / name


def make_private(folder: Path) -> Path:
    """Make a folder that only this user may enter, and return it. Raises DeviceError."""
    try:
        make_folder(folder, 0o700)
        folder.chmod(0o700)
    except OSError as error:
        raise DeviceError(f"can't make the folder {folder}: {error.strerror}") from error
    return folder


_FILE = "state.json"
_CLAIM = "build"


@dataclass(frozen=True)
class BoardState:
    """How a board was last started."""

    build: str
    """The key of the build that it runs."""
    port: int
    cores: int
    memory_mb: int
    cpu: str
    started: float
    """When, in seconds of Unix time."""
    boot_s: float
    """Seconds from its start until a program ran on it through SSH."""
    python: str


def read_state(folder: Path) -> BoardState | None:
    """Return a board's state, None where it was never up."""
    try:
        return BoardState(**json.loads((folder / _FILE).read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError, RecursionError):
        return None


def write_state(folder: Path, state: BoardState) -> None:
    """Write a board's state."""
    write_whole(folder / _FILE, (json.dumps(asdict(state), indent=2) + "\n").encode(), private=True)


def claim_build(folder: Path, key: str) -> None:
    """Mark the build that a board is about to be started from as in use, to protect it."""
    write_whole(folder / _CLAIM, key.encode(), private=True)


def builds_in_use() -> set[str]:
    """Return the keys of the builds that boards were last started from, or are about to be."""
    root = state_root()
    folders = list(root.iterdir()) if root.is_dir() else []
    started = {state.build for state in map(read_state, folders) if state is not None}
    return started | {_claimed_build(folder) for folder in folders}


def _claimed_build(folder: Path) -> str:
    try:
        return (folder / _CLAIM).read_text(encoding="ascii")
    except (OSError, ValueError):
        return ""

"""Where builds and boards are stored, and the state of a board between commands: one small JSON file in its folder."""

import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path

from edgeflare._internal.files import write_whole
from edgeflare.devices.inventory import state_root
from edgeflare.errors import DeviceError


def cache_root() -> Path:
    """Return the folder of builds, $XDG_CACHE_HOME/edgeflare/virtual."""
    configured = Path(os.environ.get("XDG_CACHE_HOME", ""))
    folder = configured if configured.is_absolute() else Path.home() / ".cache"
    return folder / "edgeflare" / "virtual"


def board_folder(name: str) -> Path:
    """Return the folder of one board, $XDG_STATE_HOME/edgeflare/virtual/NAME."""
    return state_root() / name


def make_private(folder: Path) -> Path:
    """Make a folder that only this user may enter, and return it. Raises DeviceError."""
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
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
    """Mark the build that a board is about to be started from as in use, so that nobody removes it."""
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

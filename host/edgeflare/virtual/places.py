"""Where virtual boards live: builds in the cache folder, boards in the state folder."""

import os
from pathlib import Path

from edgeflare.devices.managed import state_root
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

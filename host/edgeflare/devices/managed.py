"""Devices that EdgeFlare itself keeps: the virtual boards, each with a one-entry inventory of its own."""

import os
from collections.abc import Callable, Mapping
from pathlib import Path

from edgeflare.devices.device import Device
from edgeflare.errors import InventoryError

_FILE = "devices.toml"


def state_root() -> Path:
    """Return the folder of virtual boards, $XDG_STATE_HOME/edgeflare/virtual."""
    configured = Path(os.environ.get("XDG_STATE_HOME", ""))
    folder = configured if configured.is_absolute() else Path.home() / ".local" / "state"
    return folder / "edgeflare" / "virtual"


def _managed_inventories() -> list[Path]:
    """Return the inventory files of the boards that were made, by name; none where nothing can be read."""
    try:
        folders = sorted(state_root().iterdir())
    except (OSError, RuntimeError):  # no folder, or no home
        return []
    # os.path: a folder that this user may not enter has none, where Path.is_file raises
    return [folder / _FILE for folder in folders if os.path.isfile(folder / _FILE)]  # noqa: PTH113


def is_managed(device: Device) -> bool:
    """Return whether a device is a virtual board of this user."""
    return device.key is not None and device.key.parent == state_root() / device.name


def with_managed(
    own: Mapping[str, Device], read: Callable[[Path], dict[str, Device]]
) -> dict[str, Device]:
    """Return the user's own devices, then the boards whose names are free.

    `read` reads an inventory file. A board whose file is damaged is left out: it must not keep the
    user from the other devices, and `edgeflare devices virtual up` writes it anew.
    """
    devices = dict(own)
    for path in _managed_inventories():
        try:
            boards = read(path)
        except InventoryError:
            continue
        devices.update({name: board for name, board in boards.items() if name not in devices})
    return devices

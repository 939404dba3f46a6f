"""Devices: which there are, how they are reached, and the agent session on each.

What needs paramiko is imported when it is first used, so that a local device never waits for it.
"""

import lazy_loader

from edgeflare._internal.moved import with_moved

_get, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
_MOVED = dict.fromkeys(
    ("PlaceWaits", "held_place", "stop_waiting_for_places"), "edgeflare_lab.labgrid"
)
__getattr__ = with_moved(_get, _MOVED)

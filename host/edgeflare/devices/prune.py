"""Removes cached agents and models from a device."""

from typing import NamedTuple

from edgeflare.devices.probe import Probe, check_cache, check_python
from edgeflare.devices.provision import RECENT_S, tend
from edgeflare.devices.transport import Transport


class PruneReport(NamedTuple):
    """How many files were removed from the device, and their bytes."""

    files: int
    bytes: int


def prune(transport: Transport, seen: Probe, everything: bool) -> PruneReport:
    """Remove cached agents and models: what was not used in the last hour, or everything.

    Uploads of other hosts that are under way are left alone. Raises DeviceError and what the
    transport raises.
    """
    for problem in (check_python(seen), check_cache(seen)):
        if problem is not None:
            raise problem.error()
    recent_s = -RECENT_S if everything else RECENT_S
    answer = tend(transport, seen, limit=-1, recent_s=recent_s)
    return PruneReport(answer["files"], answer["bytes"])

"""Devices: which there are, how they are reached, and the agent session on each.

What needs paramiko is imported when it is first used, so that a local device never waits for it.
"""

from typing import TYPE_CHECKING, Any

from edgeflare.devices.check import CheckLine
from edgeflare.devices.connecting import connect
from edgeflare.devices.device import LOCAL, Device, device_from_url
from edgeflare.devices.fingerprint import fingerprint, fingerprint_digest
from edgeflare.devices.health import Health
from edgeflare.devices.inquiry import device_status
from edgeflare.devices.inventory import load_inventory, resolve_device
from edgeflare.devices.lease import Lease
from edgeflare.devices.likeness import check_like
from edgeflare.devices.opening import (
    check_device,
    open_device,
    prune_device,
)
from edgeflare.devices.prune import PruneReport
from edgeflare.devices.replies import LoadedModel, Reply
from edgeflare.devices.report import DeviceReport, LeaseHeld
from edgeflare.devices.runtimes import DeviceOptions, runtime_for
from edgeflare.devices.session import DeviceSession
from edgeflare.devices.status import DeviceStatus, State
from edgeflare.devices.steady import SteadySession
from edgeflare.devices.telemetry import DeviceMinute
from edgeflare.devices.transport import Completed, Stream, Transport

if TYPE_CHECKING:
    from edgeflare.devices.host_keys import HostKey, fetch_host_key, trust_host_key

__all__ = [
    "LOCAL",
    "CheckLine",
    "Completed",
    "Device",
    "DeviceMinute",
    "DeviceOptions",
    "DeviceReport",
    "DeviceSession",
    "DeviceStatus",
    "Health",
    "HostKey",
    "Lease",
    "LeaseHeld",
    "LoadedModel",
    "PruneReport",
    "Reply",
    "State",
    "SteadySession",
    "Stream",
    "Transport",
    "check_device",
    "check_like",
    "connect",
    "device_from_url",
    "device_status",
    "fetch_host_key",
    "fingerprint",
    "fingerprint_digest",
    "load_inventory",
    "open_device",
    "prune_device",
    "resolve_device",
    "runtime_for",
    "trust_host_key",
]


def __getattr__(name: str) -> Any:
    if name not in ("HostKey", "fetch_host_key", "trust_host_key"):
        raise AttributeError(f"module 'edgeflare.devices' has no attribute {name!r}")
    from edgeflare.devices import host_keys

    return getattr(host_keys, name)

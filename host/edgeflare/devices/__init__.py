"""Devices: which there are, how they are reached, and the agent session on each.

What needs paramiko is imported when it is first used, so that a local device never waits for it.
"""

from typing import TYPE_CHECKING, Any

from edgeflare.devices.doctor.check import CheckLine
from edgeflare.devices.equivalence import check_equivalent
from edgeflare.devices.inventory import (
    LOCAL,
    Device,
    device_from_url,
    load_inventory,
    resolve_device,
)
from edgeflare.devices.open import (
    check_device,
    device_status,
    open_device,
    prune_device,
)
from edgeflare.devices.provisioning.upload import PruneReport
from edgeflare.devices.runtimes import DeviceOptions, runtime_for
from edgeflare.devices.session.device_report import DeviceReport, LeaseHeld
from edgeflare.devices.session.health import Health
from edgeflare.devices.session.reconnecting import ReconnectingSession
from edgeflare.devices.session.replies import LoadedModel, Reply
from edgeflare.devices.session.session import DeviceSession, Lease, fingerprint, fingerprint_digest
from edgeflare.devices.session.status import DeviceState, DeviceStatus
from edgeflare.devices.telemetry import DeviceMinute
from edgeflare.devices.transports.base import Completed, Stream, Transport
from edgeflare.devices.transports.connect import connect

if TYPE_CHECKING:
    from edgeflare.devices.transports.ssh.trust import HostKey, fetch_host_key, trust_host_key

__all__ = [
    "LOCAL",
    "CheckLine",
    "Completed",
    "Device",
    "DeviceMinute",
    "DeviceOptions",
    "DeviceReport",
    "DeviceSession",
    "DeviceState",
    "DeviceStatus",
    "Health",
    "HostKey",
    "Lease",
    "LeaseHeld",
    "LoadedModel",
    "PruneReport",
    "ReconnectingSession",
    "Reply",
    "Stream",
    "Transport",
    "check_device",
    "check_equivalent",
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
    from edgeflare.devices.transports.ssh import trust

    return getattr(trust, name)

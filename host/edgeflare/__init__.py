"""EdgeFlare: find inputs on which a deployed model decides differently from its original.

Everything public is here; the command line uses nothing else. Names are imported when first used, so
that ``import edgeflare`` is light.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from edgeflare._version import __version__

if TYPE_CHECKING:
    from edgeflare.analysis import ExportReport, Summary, export_campaign, summarize
    from edgeflare.campaign import (
        CampaignConfig,
        CampaignStatus,
        Event,
        Fleet,
        FleetConfig,
        Notice,
        Progress,
        Stage,
        Step,
        campaign_status,
        config_from,
        demo_config,
        load_config,
        resume_campaign,
        run_campaign,
        write_starter,
    )
    from edgeflare.devices import (
        CheckLine,
        Device,
        DeviceReport,
        DeviceStatus,
        HostKey,
        LeaseHeld,
        PruneReport,
        State,
        Transport,
        check_device,
        connect,
        device_status,
        fetch_host_key,
        load_inventory,
        prune_device,
        resolve_device,
        trust_host_key,
    )
    from edgeflare.errors import (
        DeviceAwayError,
        DeviceBusyError,
        DeviceChangedError,
        DeviceError,
        EdgeFlareError,
        HostKeyError,
        InferenceFailedError,
        ModelError,
        PreflightError,
        SeedError,
        StoreError,
        UsageError,
    )

_HOMES = {
    "edgeflare.analysis": ("ExportReport", "Summary", "export_campaign", "summarize"),
    "edgeflare.campaign": (
        "CampaignConfig",
        "CampaignStatus",
        "Event",
        "Fleet",
        "FleetConfig",
        "Notice",
        "Progress",
        "Stage",
        "Step",
        "campaign_status",
        "config_from",
        "demo_config",
        "load_config",
        "resume_campaign",
        "run_campaign",
        "write_starter",
    ),
    "edgeflare.devices": (
        "CheckLine",
        "Device",
        "DeviceReport",
        "DeviceStatus",
        "HostKey",
        "LeaseHeld",
        "PruneReport",
        "State",
        "Transport",
        "check_device",
        "connect",
        "device_status",
        "fetch_host_key",
        "load_inventory",
        "prune_device",
        "resolve_device",
        "trust_host_key",
    ),
    "edgeflare.errors": (
        "DeviceAwayError",
        "DeviceBusyError",
        "DeviceChangedError",
        "DeviceError",
        "EdgeFlareError",
        "HostKeyError",
        "InferenceFailedError",
        "ModelError",
        "PreflightError",
        "SeedError",
        "StoreError",
        "UsageError",
    ),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__all__ = [
    "CampaignConfig",
    "CampaignStatus",
    "CheckLine",
    "Device",
    "DeviceAwayError",
    "DeviceBusyError",
    "DeviceChangedError",
    "DeviceError",
    "DeviceReport",
    "DeviceStatus",
    "EdgeFlareError",
    "Event",
    "ExportReport",
    "Fleet",
    "FleetConfig",
    "HostKey",
    "HostKeyError",
    "InferenceFailedError",
    "LeaseHeld",
    "ModelError",
    "Notice",
    "PreflightError",
    "Progress",
    "PruneReport",
    "SeedError",
    "Stage",
    "State",
    "Step",
    "StoreError",
    "Summary",
    "Transport",
    "UsageError",
    "__version__",
    "campaign_status",
    "check_device",
    "config_from",
    "connect",
    "demo_config",
    "device_status",
    "export_campaign",
    "fetch_host_key",
    "load_config",
    "load_inventory",
    "prune_device",
    "resolve_device",
    "resume_campaign",
    "run_campaign",
    "summarize",
    "trust_host_key",
    "write_starter",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME_OF:
        raise AttributeError(f"module 'edgeflare' has no attribute {name!r}")
    return getattr(import_module(_HOME_OF[name]), name)

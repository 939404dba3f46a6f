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
        Event,
        Notice,
        Progress,
        Stage,
        Step,
        config_from,
        demo_config,
        load_config,
        run_campaign,
        write_starter,
    )
    from edgeflare.devices import (
        CheckLine,
        Device,
        HostKey,
        PruneReport,
        check_device,
        fetch_host_key,
        load_inventory,
        prune_device,
        resolve_device,
        trust_host_key,
    )
    from edgeflare.errors import (
        DeviceError,
        EdgeFlareError,
        HostKeyError,
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
        "Event",
        "Notice",
        "Progress",
        "Stage",
        "Step",
        "config_from",
        "demo_config",
        "load_config",
        "run_campaign",
        "write_starter",
    ),
    "edgeflare.devices": (
        "CheckLine",
        "Device",
        "HostKey",
        "PruneReport",
        "check_device",
        "fetch_host_key",
        "load_inventory",
        "prune_device",
        "resolve_device",
        "trust_host_key",
    ),
    "edgeflare.errors": (
        "DeviceError",
        "EdgeFlareError",
        "HostKeyError",
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
    "CheckLine",
    "Device",
    "DeviceError",
    "EdgeFlareError",
    "Event",
    "ExportReport",
    "HostKey",
    "HostKeyError",
    "ModelError",
    "Notice",
    "PreflightError",
    "Progress",
    "PruneReport",
    "SeedError",
    "Stage",
    "Step",
    "StoreError",
    "Summary",
    "UsageError",
    "__version__",
    "check_device",
    "config_from",
    "demo_config",
    "export_campaign",
    "fetch_host_key",
    "load_config",
    "load_inventory",
    "prune_device",
    "resolve_device",
    "run_campaign",
    "summarize",
    "trust_host_key",
    "write_starter",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME_OF:
        raise AttributeError(f"module 'edgeflare' has no attribute {name!r}")
    return getattr(import_module(_HOME_OF[name]), name)

"""Nightly runs: every model on every device, compared with the last green night; history and trend page."""

from edgeflare.nightly.accept import accept_night
from edgeflare.nightly.config import KeepConfig, NightlyConfig, NightlyModel, load_nightly
from edgeflare.nightly.night import (
    Check,
    Identity,
    Night,
    NightRun,
    ReplayCounts,
    SearchFigures,
)
from edgeflare.nightly.run import run_nightly

__all__ = [
    "Check",
    "Identity",
    "KeepConfig",
    "Night",
    "NightRun",
    "NightlyConfig",
    "NightlyModel",
    "ReplayCounts",
    "SearchFigures",
    "accept_night",
    "load_nightly",
    "run_nightly",
]

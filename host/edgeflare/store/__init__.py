"""Everything a campaign learns, on disk before it is counted."""

from edgeflare.store.measures import distances, margin
from edgeflare.store.records import Device, OutcomeRecord, SeedRecord, SkippedRecord
from edgeflare.store.store import Store

__all__ = [
    "Device",
    "OutcomeRecord",
    "SeedRecord",
    "SkippedRecord",
    "Store",
    "distances",
    "margin",
]

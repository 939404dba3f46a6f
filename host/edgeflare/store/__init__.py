"""Everything a campaign learns, on disk before it is counted."""

from edgeflare.store.corpus_records import CorpusRemoved
from edgeflare.store.lock import CampaignLock
from edgeflare.store.records import (
    MEASURING,
    SEED_QUERIES,
    WALL_S,
    Device,
    OutcomeRecord,
    ReplayRecord,
    SeedAnswer,
    SeedInput,
    SeedRecord,
    SkippedRecord,
    Tally,
)
from edgeflare.store.replicas import SeedComparison, TriggerAnswer
from edgeflare.store.store import Store

__all__ = [
    "MEASURING",
    "SEED_QUERIES",
    "WALL_S",
    "CampaignLock",
    "CorpusRemoved",
    "Device",
    "OutcomeRecord",
    "ReplayRecord",
    "SeedAnswer",
    "SeedComparison",
    "SeedInput",
    "SeedRecord",
    "SkippedRecord",
    "Store",
    "Tally",
    "TriggerAnswer",
]

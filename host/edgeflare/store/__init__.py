"""A campaign's folder: its database, its samples and its lock."""

from edgeflare.store.corpus.records import CorpusRemoved
from edgeflare.store.creation import folder_at
from edgeflare.store.location import campaign_text, is_address, is_campaign
from edgeflare.store.lock import CampaignLock
from edgeflare.store.records import (
    DeviceRecord,
    OutcomeCounts,
    OutcomeRecord,
    ReferenceAnswer,
    ReplayRecord,
    SeedAnswer,
    SeedComparison,
    SeedRecord,
    SurveyedSeed,
    SurveyRecord,
    TriggerAnswer,
)
from edgeflare.store.state import CampaignState
from edgeflare.store.store import Store, open_store
from edgeflare.store.survey import SurveyCounts
from edgeflare.types import SeedInput, Skipped

__all__ = [
    "CampaignLock",
    "CampaignState",
    "CorpusRemoved",
    "DeviceRecord",
    "OutcomeCounts",
    "OutcomeRecord",
    "ReferenceAnswer",
    "ReplayRecord",
    "SeedAnswer",
    "SeedComparison",
    "SeedInput",
    "SeedRecord",
    "Skipped",
    "Store",
    "SurveyCounts",
    "SurveyRecord",
    "SurveyedSeed",
    "TriggerAnswer",
    "campaign_text",
    "folder_at",
    "is_address",
    "is_campaign",
    "open_store",
]

"""A campaign: its configuration, its run, and how it is resumed after an interruption."""

from edgeflare.campaign.api import SearchResult, Trigger, resume_campaign, run_campaign, search
from edgeflare.campaign.batch import BatchProgress
from edgeflare.campaign.calibration import write_calibration
from edgeflare.campaign.comparison import (
    CandidateRun,
    Candidates,
    Measure,
    candidates_named,
    run_candidates,
)
from edgeflare.campaign.control import SelfTest, SelfTestPair, run_selftest
from edgeflare.campaign.events import Event, Fleet, Notice, Progress, Stage, Step
from edgeflare.campaign.replay.reproduce import Reproduction, TopScore, reproduce
from edgeflare.campaign.replay.results import ReplayedInput, ReplayState, replay_config
from edgeflare.campaign.replay.run import replay_base, run_replay
from edgeflare.campaign.settings.config import CampaignConfig, FleetConfig, config_from, load_config
from edgeflare.campaign.settings.flags import SettingFlag, flags_of
from edgeflare.campaign.settings.limits import LimitsConfig
from edgeflare.campaign.settings.templates import demo_config, write_starter
from edgeflare.campaign.status import CampaignStatus, campaign_status

__all__ = [
    "BatchProgress",
    "CampaignConfig",
    "CampaignStatus",
    "CandidateRun",
    "Candidates",
    "Event",
    "Fleet",
    "FleetConfig",
    "LimitsConfig",
    "Measure",
    "Notice",
    "Progress",
    "ReplayState",
    "ReplayedInput",
    "Reproduction",
    "SearchResult",
    "SelfTest",
    "SelfTestPair",
    "SettingFlag",
    "Stage",
    "Step",
    "TopScore",
    "Trigger",
    "campaign_status",
    "candidates_named",
    "config_from",
    "demo_config",
    "flags_of",
    "load_config",
    "replay_base",
    "replay_config",
    "reproduce",
    "resume_campaign",
    "run_campaign",
    "run_candidates",
    "run_replay",
    "run_selftest",
    "search",
    "write_calibration",
    "write_starter",
]

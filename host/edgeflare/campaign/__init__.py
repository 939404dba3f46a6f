"""A campaign: its configuration, its run, and how it is resumed after an interruption."""

from edgeflare.campaign.batch import BatchProgress
from edgeflare.campaign.calibration import write_calibration
from edgeflare.campaign.candidates import (
    CandidateRun,
    Candidates,
    run_candidates,
)
from edgeflare.campaign.comparison_folder import candidates_named
from edgeflare.campaign.config import CampaignConfig, FleetConfig, config_from, load_config
from edgeflare.campaign.demo import demo_config
from edgeflare.campaign.flags import SettingFlag, flags_of
from edgeflare.campaign.limits import LimitsConfig
from edgeflare.campaign.live import CampaignStatus, campaign_status
from edgeflare.campaign.measures import Measure
from edgeflare.campaign.progress import Event, Fleet, Notice, Progress, Stage, Step
from edgeflare.campaign.replay import replay_base, run_replay
from edgeflare.campaign.replay_settings import replay_config
from edgeflare.campaign.replay_states import ReplayedInput, ReplayState
from edgeflare.campaign.replay_trigger import Reproduction, TopScore, reproduce
from edgeflare.campaign.run import resume_campaign, run_campaign
from edgeflare.campaign.search_result import SearchResult, Trigger, search
from edgeflare.campaign.selftest import SelfTest, SelfTestPair, run_selftest
from edgeflare.campaign.starter import write_starter

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

"""A campaign: its configuration, its run, and how it goes on after an interruption."""

from edgeflare.campaign.calibration import write_calibration
from edgeflare.campaign.config import CampaignConfig, FleetConfig, config_from, load_config
from edgeflare.campaign.demo import demo_config
from edgeflare.campaign.live import CampaignStatus, campaign_status
from edgeflare.campaign.progress import Event, Fleet, Notice, Progress, Stage, Step
from edgeflare.campaign.run import resume_campaign, run_campaign
from edgeflare.campaign.selftest import SelfTest, SelfTestPair, run_selftest
from edgeflare.campaign.starter import write_starter

__all__ = [
    "CampaignConfig",
    "CampaignStatus",
    "Event",
    "Fleet",
    "FleetConfig",
    "Notice",
    "Progress",
    "SelfTest",
    "SelfTestPair",
    "Stage",
    "Step",
    "campaign_status",
    "config_from",
    "demo_config",
    "load_config",
    "resume_campaign",
    "run_campaign",
    "run_selftest",
    "write_calibration",
    "write_starter",
]

"""A campaign: its configuration and its run."""

from edgeflare.campaign.config import CampaignConfig, config_from, load_config
from edgeflare.campaign.demo import demo_config
from edgeflare.campaign.progress import Event, Fleet, Notice, Progress, Stage, Step
from edgeflare.campaign.run import run_campaign
from edgeflare.campaign.starter import write_starter

__all__ = [
    "CampaignConfig",
    "Event",
    "Fleet",
    "Notice",
    "Progress",
    "Stage",
    "Step",
    "config_from",
    "demo_config",
    "load_config",
    "run_campaign",
    "write_starter",
]

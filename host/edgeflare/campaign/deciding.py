"""Which oracle decides in a campaign, by its configuration and its models."""

from edgeflare.campaign.config import CampaignConfig
from edgeflare.campaign.pair import Side
from edgeflare.oracles import Oracle, oracle_for


def oracle_of(config: CampaignConfig, sides: tuple[Side, Side]) -> Oracle:
    """Return the oracle of a campaign over these models. Raises UsageError where the one stated doesn't fit."""
    search = config.search
    return oracle_for(
        search.oracle,
        transcribes=sides[0].transcribes,
        floor=search.margin_floor,
        tolerance=search.tolerance,
        labels_only=sides[1].labels_only,
    )

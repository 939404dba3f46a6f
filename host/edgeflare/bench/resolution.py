"""What cells leave open of the boundary search is resolved once a pair, so that they can be compared."""

from edgeflare.bench.cells import Cell
from edgeflare.bench.opening import Bench
from edgeflare.campaign.config import CampaignConfig
from edgeflare.campaign.resolution import RESOLVED, STRATEGY, resolved_as_in


def as_resolved(bench: Bench, cell: Cell, config: CampaignConfig) -> CampaignConfig:
    """Return a cell's configuration with what another cell of its pair was resolved to.

    That is a cell of the same strategy, told the same of what is resolved; without one the campaign
    resolves it itself.
    """
    search = config.search
    if search.strategy != STRATEGY:
        return config
    stated = {name: search.options.get(name) for name in RESOLVED}
    for other in bench.cells:
        if other.pair != cell.pair or other == cell or bench.state(other) == "missing":
            continue
        asked = bench.suite.search(other.strategy)
        if asked.strategy != STRATEGY or stated != {n: asked.options.get(n) for n in RESOLVED}:
            continue
        resolved = resolved_as_in(bench.campaign(other), search)
        if resolved is not None:
            return config.model_copy(update={"search": resolved})
    return config

"""What cells leave open of the boundary search is resolved once a pair, so that they can be compared."""

from edgeflare.bench.cells import Cell
from edgeflare.bench.opening import Bench
from edgeflare.campaign.config import CampaignConfig
from edgeflare.campaign.resolution import RESOLVED, STRATEGY
from edgeflare.store import Store


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
        with Store.open(bench.campaign(other)) as store:
            found = store.setting("search", "options")
        if all(found.get(name) is not None for name in RESOLVED):
            options = {**search.options, **{name: found[name] for name in RESOLVED}}
            resolved = search.model_copy(update={"options": options})
            return config.model_copy(update={"search": resolved})
    return config

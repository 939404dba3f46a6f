"""What has changed between the cells of one pair: they are to be compared, so that nothing may."""

from collections.abc import Mapping

from edgeflare.bench.cells import Cell
from edgeflare.bench.opening import Bench, State
from edgeflare.campaign.changes import check_unchanged, refuse_or_tell
from edgeflare.campaign.config import config_from
from edgeflare.store import Store


def check_same_files(bench: Bench, states: Mapping[Cell, State], *, force: bool) -> str | None:
    """Compare models, seeds and libraries with those of the cells that were run, pair by pair.

    Only pairs with something left to run are looked at. Returns a notice where `force` lets changes
    pass, else raises UsageError naming them.
    """
    found: dict[str, None] = {}
    for pair in bench.suite.pairs:
        own = {cell: state for cell, state in states.items() if cell.pair == pair.name}
        if set(own.values()) == {"finished"}:
            continue
        for cell in (cell for cell, state in own.items() if state != "missing"):
            folder = bench.campaign(cell)
            with Store.open(folder) as store:
                config = config_from(store.campaign, str(folder))
                found |= dict.fromkeys(check_unchanged(config, store))
            break
    return refuse_or_tell(list(found), force=force)

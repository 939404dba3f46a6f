"""Which order of the seeds brings a campaign's findings early: a table for each kind of finding."""

from collections.abc import Iterator

from edgeflare._internal.text import (
    capitalized,
    counted,
    number_text,
    p_text,
    p_value_text,
    percent_text,
)
from edgeflare.document import Block, Item, Listing, Table, Text, table_of
from edgeflare_whitebox import PRIORITY_MEASURES, FindingsComparison, PriorityComparison
from edgeflare_whitebox.priority_campaign import PrioritySettings, compare_orders
from edgeflare_whitebox.stored import Inspection

_KINDS = {
    "natural": "seeds that deviate as they are",
    "trigger": "seeds whose search found a triggering input",
    "survey": "seeds with a confident deviation in the survey",
}


_LEVEL = 0.05


def priority_document(found: PriorityComparison) -> list[Block]:
    """Return which order is best for each kind of finding, the tables, and what they mean."""
    if not found.findings:
        return [
            Text("Nothing was found in this campaign, so that no order of the seeds is better.")
        ]
    blocks: list[Block] = [Text(_best(one), "strong") for one in found.findings]
    blocks += [_table(one) for one in found.findings]
    blocks.append(
        Text(
            "APFD is near 1 where all findings come first, and 0.5 on average in random order; p is the "
            "chance of one as high in random order. Random: the mean over "
            f"{counted(found.shuffles, 'shuffle')} (random seed {found.random_seed})."
        )
    )
    measures = {row.measure for one in found.findings for row in one.orders}
    about = [
        Item(words, label=f"{name}:")
        for name, words in PRIORITY_MEASURES.items()
        if name in measures
    ]
    left_out = [Item(why, "warn", f"{name} is left out:") for name, why in found.left_out.items()]
    return [*blocks, Listing((*about, *left_out))]


def _best(one: FindingsComparison) -> str:
    """Return which order has the highest APFD, and whether random order could be as good."""
    *orders, random = one.orders
    words = f"{capitalized(_KINDS[one.kind])}: {one.found:,} of {one.seeds:,}"
    if one.found == one.seeds:
        return f"{words}. No order finds more of them, only cheaper ones first: see the budget."
    best = max(orders, key=lambda row: row.apfd, default=random)
    if best.p is None or best.p * len(orders) > _LEVEL:
        return f"{words}. No measure brings them clearly earlier than random order."
    return (
        f"{words}. By {best.measure} they come earliest: APFD {number_text(best.apfd)}, in random order "
        f"{number_text(random.apfd)} ({p_text(min(1.0, best.p * len(orders)))}, adjusted for the number of measures)."
    )


def _table(one: FindingsComparison) -> Table:
    shares = list(one.orders[0].within)
    header = [
        "order",
        "APFD",
        "p",
        *(f"within {percent_text(float(share), 0)}" for share in shares),
    ]
    table = table_of(header, list(_rows(one, shares)))
    title = (
        f"{capitalized(_KINDS[one.kind])}: the share that is found within a share of the budget of "
        f"{one.budget:,} {one.unit}:"
    )
    return Table(table.columns, table.rows, title)


def _rows(one: FindingsComparison, shares: list[str]) -> Iterator[list[str]]:
    for row in one.orders:
        found = (percent_text(row.within[share], 0) for share in shares)
        yield [row.measure, number_text(row.apfd), p_value_text(row.p), *found]


class Prioritise(Inspection[PrioritySettings, PriorityComparison]):
    """``inspect prioritise``."""

    name = "prioritise"
    about = "Compare orders of the seeds: how early each brings what the campaign found."
    settings, result = PrioritySettings, PriorityComparison
    title, order = "Orders of the seeds", 140
    compute = staticmethod(compare_orders)
    blocks = staticmethod(lambda result, *_: priority_document(result))

    def advice(self, result: PriorityComparison) -> str:
        """Return how to run a campaign in such an order."""
        del result
        return "A new campaign in such an order: edgeflare run ... --prioritise MEASURE"


PRIORITISE = Prioritise()

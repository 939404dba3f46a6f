"""The tables of how early orders of the seeds bring findings."""

from shown_numbers import numbers

from edgeflare.document import Listing, Table, Text
from edgeflare.reports import priority_document
from edgeflare.reports.document import to_markdown
from edgeflare_whitebox import FindingsComparison, PriorityComparison, PriorityFigures


def figures(name: str, apfd: float, p: float | None) -> PriorityFigures:
    return PriorityFigures(name, apfd, {"0.1": 0.4, "0.25": 0.6, "0.5": 1.0}, p)


def findings(found: int, *orders: PriorityFigures) -> FindingsComparison:
    return FindingsComparison("natural", 40, found, 40, "seeds", orders)


RANDOM = figures("random", 0.5, None)
CLEAR = findings(5, figures("margin", 0.93, 0.005), figures("gini", 0.9, 0.01), RANDOM)


def comparison(*kinds: FindingsComparison) -> PriorityComparison:
    return PriorityComparison("campaign", 40, 200, 3, kinds, {"rarity": "torch is missing"})


def first(*kinds: FindingsComparison) -> str:
    block = priority_document(comparison(*kinds))[0]
    assert isinstance(block, Text)
    return block.text


def test_the_best_order_is_named_where_chance_doesnt_explain_it() -> None:
    assert numbers(first(CLEAR)) == "5 40 0.93 0.50 0.010"
    by_chance = findings(5, figures("margin", 0.7, 0.03), figures("gini", 0.6, 0.2), RANDOM)
    assert "them clearly earlier" in first(by_chance)
    assert "clearly earlier" in first(findings(5, RANDOM))
    every = findings(40, figures("margin", 0.5, 1.0), RANDOM)
    assert "cheaper ones first" in first(every)


def test_each_kind_has_its_table_and_what_is_left_out_its_reason() -> None:
    trigger = FindingsComparison("trigger", 35, 9, 800, "device queries", CLEAR.orders)
    blocks = priority_document(comparison(CLEAR, trigger))
    tables = [one for one in blocks if isinstance(one, Table)]
    assert len(tables) == 2
    assert "800 device queries" in tables[1].title
    assert [one.heading for one in tables[0].columns] == [
        *("order", "APFD", "p", "within 10 %", "within 25 %", "within 50 %")
    ]
    assert tables[0].cells(tables[0].shown)[0] == [
        "margin",
        "0.93",
        "0.005",
        "40 %",
        "60 %",
        "100 %",
    ]
    listing = blocks[-1]
    assert isinstance(listing, Listing)
    assert [one.label for one in listing.items] == ["margin:", "gini:", "rarity is left out:"]
    assert "200 shuffles (random" in to_markdown(blocks)


def test_a_campaign_without_findings_says_so() -> None:
    (only,) = priority_document(PriorityComparison("campaign", 40, 200, 3, (), {}))
    assert isinstance(only, Text)
    assert only.text.startswith("Nothing was found")

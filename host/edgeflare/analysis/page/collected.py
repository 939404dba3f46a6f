"""What a page shows of a campaign's outcomes, gathered in one pass over them."""

from array import array
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from edgeflare.analysis.findings import Finding
from edgeflare.analysis.heard import WordChange, heard
from edgeflare.analysis.page.gallery import COLUMNS, Card, Facets, found_card
from edgeflare.types import TRIGGERS, Status

_MOST_NAMED = 200


class Ended(NamedTuple):
    """A search without a trigger: its seed, its device, how many inputs the device was given and how many the original
    alone, and why it ended so."""

    seed_id: str
    device: str
    queries: int
    host_queries: int
    detail: str


@dataclass
class Ends:
    """The searches that ended in one way: how many, and the first 200."""

    count: int = 0
    named: list[Ended] = field(default_factory=list)


class Worst(NamedTuple):
    """The severest trigger, and the smaller margin of it, or how far apart its scores are where a tolerance decides."""

    severity: float
    finding: Finding


@dataclass
class Collected:
    """The findings as cards, and the figures of triggers that no other summary has.

    `pairs` counts the triggers, those that are the seed itself among them, by both models' labels, `changes` by the
    words that differ; `worst` is the most severe one of all. `queries` (up to the first trigger), `seconds`, `l2`
    and `snr_db` are those of the searches that found one.
    """

    cards: list[Card] = field(default_factory=list)
    facets: Facets = field(default_factory=Facets)
    pairs: Counter[tuple[int, int]] = field(default_factory=Counter)
    changes: Counter[WordChange] = field(default_factory=Counter)
    worst: Worst | None = None
    queries: "array[int]" = field(default_factory=lambda: array("q"))
    seconds: "array[float]" = field(default_factory=lambda: array("d"))
    l2: "array[float]" = field(default_factory=lambda: array("d"))
    snr_db: "array[float]" = field(default_factory=lambda: array("d"))
    ends: dict[Status, Ends] = field(default_factory=dict)


def collect(
    results: Iterable[Finding],
    card: Callable[[Finding], Card | None] = found_card,
    *,
    by_disagreement: bool = False,
) -> Collected:
    """Gather what the page shows; the outcomes come in the order of the seeds. `card` makes the cards.

    The severest are those with the largest margins, or `by_disagreement` those furthest apart.
    """
    collected = Collected()
    for one in results:
        if one.outcome.status in TRIGGERS:
            _add_trigger(collected, one, by_disagreement)
        else:
            ends = collected.ends.setdefault(one.outcome.status, Ends())
            ends.count += 1
            if len(ends.named) < _MOST_NAMED:
                device = one.outcome.device_name or one.outcome.replica
                asked = one.outcome.search_queries, one.outcome.host_only_queries
                ends.named.append(Ended(one.seed.id, device, *asked, one.outcome.detail))
        made = card(one)
        if made is not None and by_disagreement:
            apart = made.row[COLUMNS.index("disagreement")]
            made = made._replace(severity=-1.0 if apart is None else apart)
        if made is not None:
            collected.cards.append(made)
            collected.facets.add(made)
    return collected


def _add_trigger(collected: Collected, one: Finding, by_disagreement: bool) -> None:
    outcome = one.outcome
    both = heard(outcome.original, outcome.deployed)
    labelled = outcome.original_label is not None and outcome.deployed_label is not None
    if outcome.original_label is not None and outcome.deployed_label is not None:
        collected.pairs[outcome.original_label, outcome.deployed_label] += 1
    if both is not None:
        collected.changes.update(set(both.changes))
    severe = outcome.disagreement if by_disagreement else outcome.severity
    severity = -1.0 if severe is None else severe
    worst = collected.worst
    if (labelled or both is not None) and (worst is None or severity > worst.severity):
        collected.worst = Worst(severity, one)
    if outcome.status is not Status.FOUND:
        return
    collected.queries.append(outcome.first_queries)
    collected.seconds.append(outcome.seconds)
    if outcome.l2 is not None:
        collected.l2.append(outcome.l2)
    if outcome.snr_db is not None:
        collected.snr_db.append(outcome.snr_db)

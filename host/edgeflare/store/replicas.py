"""What all devices answer to one seed and to the triggering inputs found from it, side by side."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from sqlalchemy import Connection, Row, Table, func, select

from edgeflare.store import tables
from edgeflare.store.database import Database
from edgeflare.store.records import is_answer, output_from
from edgeflare.types import TRIGGERS, Decision, Output

_SEEDS = tables.seeds
_ANSWERS = tables.seed_answers
_OUTCOMES = tables.outcomes
_REPLAYS = tables.replays
_PAGE = 64
"""How many seeds are read at a time, each with the scores of every device."""


class TriggerAnswer(NamedTuple):
    """One device's answer to a triggering input, and the oracle's decision.

    `found`: this device's own search found it.
    """

    deployed: Output
    decision: Decision
    found: bool

    @property
    def deviates(self) -> bool:
        """Whether the input triggers on this device."""
        return self.decision is Decision.DEVIATION


@dataclass(frozen=True)
class SeedComparison:
    """The deployed model's answers around one seed, of every replica that has answered.

    `answers` has each replica's answer to the seed. `triggers` has, by the digest
    of its sample, each triggering input found from the seed and the answers by replica: an input that
    several devices found is there once, in the order of the first of them.
    """

    seed_id: str
    answers: dict[str, Output] = field(default_factory=dict)
    triggers: dict[str, dict[str, TriggerAnswer]] = field(default_factory=dict)


def compare(database: Database, replicas: list[str]) -> Iterator[SeedComparison]:
    """Yield what `Store.comparisons` says."""
    with database.reading() as connection:
        count = connection.execute(select(func.count()).select_from(_SEEDS)).scalar_one()
    for start in range(0, count, _PAGE):
        with database.reading() as connection:
            page = _compare_page(connection, replicas, start)
        yield from page


def _compare_page(
    connection: Connection, replicas: list[str], start: int
) -> Iterable[SeedComparison]:
    def some(table: Table, *columns: Any) -> Sequence[Row[Any]]:
        answer = (table.c.deployed, table.c.deployed_pieces)
        query = select(table.c.seed, table.c.replica, *answer, *columns).where(
            table.c.replica.in_(replicas), table.c.seed.between(start, start + _PAGE - 1)
        )
        return connection.execute(query).all()

    here = _SEEDS.c.position.between(start, start + _PAGE - 1)
    seeds = select(_SEEDS.c.position, _SEEDS.c.id).where(here).order_by(_SEEDS.c.position)
    page = {row.position: SeedComparison(row.id) for row in connection.execute(seeds)}
    for row in some(_ANSWERS):
        page[row.seed].answers[row.replica] = _answer(row)
    outcomes = some(_OUTCOMES, _OUTCOMES.c.trigger, _OUTCOMES.c.status)
    for row in sorted(outcomes, key=lambda row: replicas.index(row.replica)):
        if row.status in TRIGGERS:
            by_device = page[row.seed].triggers.setdefault(row.trigger, {})
            by_device[row.replica] = TriggerAnswer(_answer(row), Decision.DEVIATION, found=True)
    for row in some(_REPLAYS, _REPLAYS.c.trigger, _REPLAYS.c.on_device, _REPLAYS.c.decision):
        if row.on_device in replicas and is_answer(_answer(row)):
            by_device = page[row.seed].triggers.setdefault(row.trigger, {})
            by_device.setdefault(
                row.on_device, TriggerAnswer(_answer(row), Decision(row.decision), found=False)
            )
    return page.values()


def _answer(row: Row[Any]) -> Output:
    answer: Output | None = output_from(row.deployed, row.deployed_pieces)
    if answer is None:
        raise ValueError("an answer is missing")
    return answer

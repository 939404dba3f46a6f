"""How the searches ended, and what other devices answer to what they found."""

from collections.abc import Iterator
from typing import Any

from sqlalchemy import Select, Table, and_, case, func, insert, or_, select
from sqlalchemy.exc import IntegrityError

from edgeflare.errors import StoreError
from edgeflare.store import tables
from edgeflare.store.about import About
from edgeflare.store.records import SEARCH_ENDS, OutcomeRecord, ReplayRecord, Tally
from edgeflare.store.rows import (
    outcome_from_row,
    outcome_to_row,
    replay_from_row,
    replay_to_row,
)
from edgeflare.types import NOTHING_SEARCHED, Status

_SEEDS = tables.seeds
_OUTCOMES = tables.outcomes
_REPLAYS = tables.replays


class Outcomes(About):
    """The part of the store that holds outcomes and replays."""

    def add_outcome(self, outcome: OutcomeRecord) -> None:
        """Record how the search from one seed ended; a seed has one outcome a replica."""
        row = outcome_to_row(outcome, self._environment)
        with self._writing() as connection:
            self._check_kept(outcome.trigger)
            row["seed"] = self._positions(connection, [outcome.seed_id])[outcome.seed_id]
            try:
                connection.execute(insert(_OUTCOMES).values(**row))
            except IntegrityError as error:
                whose = f" on {outcome.replica}" if outcome.replica else ""
                raise StoreError(
                    f"The outcome of seed {outcome.seed_id!r}{whose} can't be added to "
                    f"{self.folder}: it has one already (does another program run this campaign?), "
                    "or its device is unknown."
                ) from error

    def outcomes(self) -> Iterator[OutcomeRecord]:
        """Every outcome, of all replicas, in the order they were added."""
        return self._pages(_with_seed_id(_OUTCOMES), _OUTCOMES.c.position, outcome_from_row)

    def outcomes_of(self, replica: str = "") -> Iterator[OutcomeRecord]:
        """Every outcome of this replica, in the order of the seeds."""
        query = _with_seed_id(_OUTCOMES).where(_OUTCOMES.c.replica == replica)
        return self._pages(query, _OUTCOMES.c.seed, outcome_from_row)

    def finished_seed_ids(self, replica: str = "") -> set[str]:
        """The ids of all seeds that have an outcome of this replica."""
        query = select(_SEEDS.c.id).join(_OUTCOMES).where(_OUTCOMES.c.replica == replica)
        with self._reading() as connection:
            return set(connection.execute(query).scalars())

    def tally(self, replica: str | None = None) -> Tally:
        """Count the outcomes of this replica, or of all of them."""
        began = or_(
            _OUTCOMES.c.search_queries > 0,
            _OUTCOMES.c.host_only_queries > 0,
            and_(
                _OUTCOMES.c.status.in_([status.value for status in SEARCH_ENDS]),
                _OUTCOMES.c.detail != NOTHING_SEARCHED,
            ),
        )
        query = select(
            func.count(),
            func.sum(case((_OUTCOMES.c.status == Status.FOUND.value, 1), else_=0)),
            func.sum(case((began, 1), else_=0)),
            func.sum(_OUTCOMES.c.search_queries),
        ).select_from(_OUTCOMES)
        if replica is not None:
            query = query.where(_OUTCOMES.c.replica == replica)
        with self._reading() as connection:
            return Tally(*(int(value or 0) for value in connection.execute(query).one()))

    def add_replay(self, replay: ReplayRecord) -> None:
        """Record what a device answers to a trigger; of several answers the first is kept."""
        row = replay_to_row(replay)
        with self._writing() as connection:
            self._check_kept(replay.trigger)
            row["seed"] = self._positions(connection, [replay.seed_id])[replay.seed_id]
            known = select(_REPLAYS.c.position).where(
                *(_REPLAYS.c[name] == row[name] for name in ("seed", "replica", "on_device"))
            )
            if connection.execute(known).first() is None:
                connection.execute(insert(_REPLAYS).values(**row))

    def replays(self) -> Iterator[ReplayRecord]:
        """Every replay, in the order they were added."""
        return self._pages(_with_seed_id(_REPLAYS), _REPLAYS.c.position, replay_from_row)


def _with_seed_id(table: Table) -> Select[Any]:
    return select(table, _SEEDS.c.id.label("seed_id")).join(_SEEDS)

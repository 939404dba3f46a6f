"""Figures of a campaign's outcomes and answers as arrays, without a record for each."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import compress
from typing import Any, NamedTuple, get_type_hints

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import (
    Boolean,
    Column,
    Connection,
    Double,
    Integer,
    Select,
    Table,
    Text,
    cast,
    func,
    select,
    tuple_,
)

from edgeflare.store import queries, tables
from edgeflare.store.database import Database
from edgeflare.store.documents import validated
from edgeflare.store.survey import ORDER
from edgeflare.types import Decision, Status

_SEEDS = tables.seeds
_ANSWERS = tables.seed_answers
_OUTCOMES = tables.outcomes
_SURVEY = tables.survey_answers
_RUNS = tables.surveyed_seeds
_PAGE = 4096


class Texts(NamedTuple):
    """A column of texts of which few differ: `codes` (int64 [rows]) are the places in `names`."""

    codes: NDArray[np.int64]
    names: list[str]

    def among(self, *names: str) -> NDArray[np.bool_]:
        """Return for each row whether it has one of these texts."""
        return np.isin(self.codes, [place for place, one in enumerate(self.names) if one in names])


class Arrays:
    """The figures of a table's rows: of each an array [rows], or `Texts`, of the name it has in the record.

    `position` is what `Store.outcomes_at` or `Store.survey_at` takes, `seed` the seed's place among
    all seeds. A number that is None in some record is a float, NaN there; others are of their type.

    Beside these, outcomes have `searched` and `first_queries` of `OutcomeRecord`, and `has_trigger`;
    answers of a survey have `repeated`: the replica was asked about the same input before.
    """

    status: Texts
    replica: Texts
    device_name: Texts
    detail: Texts
    family: Texts
    decision: Texts

    def __init__(self, columns: Mapping[str, Any]) -> None:
        vars(self).update(columns)

    def __getattr__(self, name: str) -> NDArray[Any]:
        raise AttributeError(f"these rows have no {name}")


class Columns:
    """Reads figures from a campaign's database. All methods raise StoreError."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def outcomes(self) -> Arrays:
        """The figures of all outcomes in the order they were added; of 100,000 about 20 MB."""
        table = _OUTCOMES.c
        first = table.front[(0, "queries")].as_integer()
        query = select(
            *_figures(_OUTCOMES),
            queries.SEARCHED.label("searched"),
            table.trigger.is_not(None).label("has_trigger"),
            func.coalesce(first, table.search_queries).label("first_queries"),
        ).order_by(table.position)
        with self._database.reading(_OUTCOMES) as connection:
            found = Arrays(_read(connection, query))
            set(map(Status, found.status.names))  # ValueError for another
        return found

    def survey(self, phase: str) -> Arrays:
        """The figures of a phase's answers in the order of `Store.survey`; of 100,000 about 10 MB."""
        table = _SURVEY.c
        this, whose = table.phase == phase, (table.replica, table.sample)
        query = select(*_figures(_SURVEY)).where(this).order_by(*ORDER)
        several = select(*whose).where(this).group_by(*whose).having(func.count() > 1)
        same = select(table.position, *whose).where(this, tuple_(*whose).in_(several))
        seen: set[tuple[str, str]] = set()
        again: list[int] = []
        with self._database.reading(_SURVEY) as connection:
            found = _read(connection, query)
            set(map(Decision, found["decision"].names))  # ValueError for another
            if connection.execute(several.limit(1)).first() is not None:
                for position, *input_ in connection.execute(same.order_by(*ORDER)):
                    if (one := tuple(input_)) in seen:
                        again.append(position)
                    seen.add(one)
        return Arrays({**found, "repeated": np.isin(found["position"], again)})

    def outcome_names(self, status: Status) -> list[tuple[int, str, str]]:
        """Position, seed and replica of each outcome of this status, in the order they were added."""
        table = _OUTCOMES.c
        query = select(table.position, _SEEDS.c.id, table.replica).join(_SEEDS)
        query = query.where(table.status == status.value).order_by(table.position)
        with self._database.reading() as connection:
            return [tuple(row) for row in connection.execute(query)]

    def failures(self, replica: str = "") -> list[tuple[str, str]]:
        """The seed of each of this replica's outcomes that failed, and why."""
        table = _OUTCOMES.c
        query = select(_SEEDS.c.id, table.detail).join(_OUTCOMES)
        query = query.where(table.status == Status.FAILED.value, table.replica == replica)
        with self._database.reading() as connection:
            return [tuple(row) for row in connection.execute(query)]

    def trigger_mutations(self) -> Iterator[list[dict[str, Any]]]:
        """The mutations of each triggering input that a search made by some."""
        table = _OUTCOMES.c
        query = select(table.position, table.mutations).where(
            table.status == Status.FOUND.value, cast(table.mutations, Text) != "[]"
        )
        kind = list[dict[str, Any]]
        return self._database.pages(
            query, table.position, lambda row: validated(kind, row.mutations, strict=True)
        )

    def answered_seeds(self, replica: str = "") -> int:
        """How many seeds this replica has answered."""
        query = select(func.count()).select_from(_ANSWERS).where(_ANSWERS.c.replica == replica)
        with self._database.reading() as connection:
            return connection.execute(query).scalar_one()

    def decisions(self, replica: str = "") -> Counter[str]:
        """How many of this replica's answers to seeds and to the survey have each decision."""
        return self._counted(_ANSWERS, "decision", replica) + self._counted(
            _SURVEY, "decision", replica
        )

    def statuses(self, replica: str = "") -> Counter[str]:
        """How many of this replica's outcomes have each status."""
        return self._counted(_OUTCOMES, "status", replica)

    def unstable(self, least_margin: float, replica: str = "") -> int:
        """How many of this replica's outcomes are unstable, without those of a smaller margin."""
        table = _OUTCOMES.c
        margin = table.deployed_margin
        query = select(func.count()).where(
            table.replica == replica,
            table.status == Status.UNSTABLE.value,
            margin.is_(None) | (margin >= least_margin),
        )
        with self._database.reading() as connection:
            return int(connection.execute(query).scalar_one())

    def _counted(self, table: Table, column: str, replica: str) -> Counter[str]:
        query = select(table.c[column], func.count()).where(table.c.replica == replica)
        with self._database.reading() as connection:
            rows = connection.execute(query.group_by(table.c[column])).all()
        return Counter({str(text): int(count) for text, count in rows})

    def seed_labels(self, replica: str | None = None) -> dict[str, int]:
        """Count the answers of a replica; None: of the one that answered first.

        They are "ties", "labelled" (seeds with a label), and "original_right" and "deployed_right",
        those whose label a model's top-1 class is.
        """
        with self._database.reading(tables.seed_answers) as connection:
            first = queries.first_replica(connection) if replica is None else replica
            return _label_counts(connection, first)

    def survey_alarms(self) -> tuple[int, int]:
        """How many inputs the deployed model answered, and how many are confident deviations."""
        query = select(func.count(), func.count().filter(_SURVEY.c.confident_deviation))
        with self._database.reading() as connection:
            answered, alarms = connection.execute(
                query.where(_SURVEY.c.deployed.is_not(None))
            ).one()
        return answered, alarms

    def unsure_seeds(self) -> tuple[int, int]:
        """From how many surveyed seeds no input was made, and on how many the original failed.

        The first are those at which the original was never sure; of several replicas each counts.
        """
        asked = select(_SURVEY.c.position).where(
            _SURVEY.c.replica == _RUNS.c.replica,
            _SURVEY.c.seed == _RUNS.c.seed,
            _SURVEY.c.phase == _RUNS.c.phase,
        )
        failed = _RUNS.c.detail != ""
        query = select(
            func.count().filter(~failed, ~asked.exists()), func.count().filter(failed)
        ).where(_RUNS.c.phase == "survey")
        with self._database.reading() as connection:
            unsure, failures = connection.execute(query).one()
        return unsure, failures


def _figures(table: Table) -> list[Column[Any]]:
    """Return the columns of a table that have numbers, and those of texts of which few differ."""
    kinds, texts = (Boolean, Double, Integer), get_type_hints(Arrays)
    return [one for one in table.c if isinstance(one.type, kinds) or one.key in texts]


def _dtype(column: Any) -> type[Any]:
    """Return the type of a column's array; str of `Texts`."""
    kind: type[Any] = column.type.python_type
    return float if kind is int and getattr(column, "nullable", False) else kind


def _read(connection: Connection, query: Select[Any]) -> dict[str, Any]:
    """Return each column of the query as an array of its type, as `Texts` of the type str.

    A number that is missing is NaN. Raises ValueError for a value of another type, and infinity.
    """
    types = {str(column.key): _dtype(column) for column in query.selected_columns}
    codes: dict[str, dict[Any, int]] = {name: {} for name, kind in types.items() if kind is str}
    pages: dict[str, list[NDArray[Any]]] = {name: [np.zeros(0)] for name in types}
    for rows in connection.execute(query).partitions(_PAGE):
        for name, values in zip(types, zip(*rows, strict=True), strict=True):
            # texts are kept as numbers, so that a campaign of millions of rows fits into memory
            if name in codes:
                known = codes[name]
                for value in dict.fromkeys(values):
                    known.setdefault(value, len(known))
                page = np.array([known[value] for value in values], np.int64)
            else:
                page = np.array(values, types[name])
            if np.isinf(page).any():
                raise ValueError(f"{name} is infinite")
            pages[name].append(page)
    found: dict[str, Any] = {}
    for name, kind in types.items():
        array = np.concatenate(pages[name]).astype(np.int64 if kind is str else kind)
        found[name] = Texts(array, [str(one) for one in codes[name]]) if kind is str else array
    return found


def _label_counts(connection: Connection, replica: str) -> dict[str, int]:
    """Count a replica's answers to seeds."""
    query = queries.seeds_with_answers(replica, every_seed=False).with_only_columns(
        *(_SEEDS.c.label, _ANSWERS.c.decision, _ANSWERS.c.original, _ANSWERS.c.deployed),
        *(_ANSWERS.c.original_pieces, _ANSWERS.c.deployed_pieces),
    )
    sums = np.zeros(4, np.int64)
    for rows in connection.execute(query).partitions(_PAGE):
        labels, decisions, original, deployed, *pieces = zip(*rows, strict=True)
        ties = sum(Decision(decision) is Decision.TIE for decision in decisions)
        scores = np.array([one is None for one in pieces[0]])
        sizes = np.array([len(one) for one in original])
        same = sizes == [len(one) for one in deployed]
        if (scores != [one is None for one in pieces[1]]).any() or (scores & ~same).any():
            raise ValueError("the two models' answers are of two kinds")
        tops = (
            _top_labels(answers, np.where(scores, sizes, 0)) for answers in (original, deployed)
        )
        known = np.array([np.nan if label is None else label for label in labels], np.float64)
        sums += [ties, (~np.isnan(known)).sum(), *((top == known).sum() for top in tops)]
    names = ("ties", "labelled", "original_right", "deployed_right")
    return dict(zip(names, sums.tolist(), strict=True))


def _top_labels(answers: Sequence[bytes], sizes: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the top-1 class of each answer of that many bytes; NaN of one with NaN, or of none."""
    tops = np.full(len(answers), np.nan)
    for size in np.unique(sizes[sizes > 0]).tolist():
        chosen = sizes == size
        data = b"".join(compress(answers, chosen))
        scores = np.frombuffer(data, "<f8").reshape(-1, size // 8)
        tops[chosen] = np.where(np.isnan(scores).any(axis=1), np.nan, scores.argmax(axis=1))
    return tops

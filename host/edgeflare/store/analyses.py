"""The results of analyses: a row a run, and what an interrupted run has finished."""

from collections.abc import Callable, Iterable, Iterator, Mapping, MutableMapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime, timezone
from functools import partial
from typing import Any, TypeAlias, TypeVar

from sqlalchemy import (
    Connection,
    Text,
    and_,
    cast,
    delete,
    func,
    insert,
    literal,
    null,
    select,
    update,
)

from edgeflare._version import __version__
from edgeflare.store import documents, tables
from edgeflare.store.database import Database, batches
from edgeflare.store.documents import read_json, write_json
from edgeflare.store.servers import beginning_again

_T = TypeVar("_T")
_RUNS, _PARTS, _UNITS = tables.analyses, tables.analysis_parts, tables.unit_scores
_RUNNING, _FINISHED = "running", "finished"
UnitRows: TypeAlias = Callable[[], Iterable[Mapping[str, Any]]]
"""Gives rows of the table unit_scores from the first on, each time a transaction begins."""


@dataclass(frozen=True)
class StoredResult:
    """A finished run of an analysis: the `number`th of that name, from 1.

    `version` is that of edgeflare, `settings` are those of the run, `made` is when it finished: None
    of results of earlier versions, which didn't store that.
    """

    name: str
    number: int
    version: str
    settings: Mapping[str, Any]
    made: datetime | None


class Parts(MutableMapping[str, Any]):
    """What an interrupted run has finished: JSON values by texts; each is stored as it is put here."""

    def __init__(self, database: Database, run: int) -> None:
        self._database = database
        self._run = run

    @beginning_again
    def __getitem__(self, name: str) -> Any:
        query = select(_PARTS.c.value).where(self._is(name))
        with self._database.reading(_PARTS) as connection:
            row = connection.execute(query).first()
        if row is None:
            raise KeyError(name)
        return row.value

    @beginning_again
    def __setitem__(self, name: str, value: Any) -> None:
        with self._database.writing() as connection:
            stored = read_json(write_json(value))
            change = update(_PARTS).where(self._is(name)).values(value=stored)
            if connection.execute(change).rowcount == 0:
                row = {"analysis": self._run, "name": name, "value": stored}
                connection.execute(insert(_PARTS).values(**row))

    def __delitem__(self, name: str) -> None:
        if name not in self:
            raise KeyError(name)
        self._delete(name)

    @beginning_again
    def _delete(self, name: str) -> None:
        with self._database.writing() as connection:
            connection.execute(delete(_PARTS).where(self._is(name)))

    @beginning_again
    def __iter__(self) -> Iterator[str]:
        query = select(_PARTS.c.name).where(_PARTS.c.analysis == self._run)
        with self._database.reading() as connection:
            names = list(connection.execute(query.order_by(_PARTS.c.position)).scalars())
        return iter(names)

    @beginning_again
    def __len__(self) -> int:
        query = select(func.count()).where(_PARTS.c.analysis == self._run)
        with self._database.reading() as connection:
            return connection.execute(query).scalar_one()

    def _is(self, name: str) -> Any:
        return and_(_PARTS.c.analysis == self._run, _PARTS.c.name == name)


class AnalysisRun:
    """A run of an analysis that isn't finished; `number` counts the runs of its name from 1."""

    def __init__(self, database: Database, position: int, number: int) -> None:
        self._database = database
        self._position = position
        self.number = number
        self.parts = Parts(database, position)
        """What it finished before it was interrupted, and where that is stored at once."""

    @beginning_again
    def forget(self) -> None:
        """Delete the run with its parts."""
        with self._database.writing() as connection:
            _forget(connection, self._position)

    @beginning_again
    def finish(self, result: Any, units: UnitRows | None = None) -> None:
        """Store the result, a dataclass; with it `units` replace the table unit_scores."""
        with self._database.writing() as connection:
            connection.execute(delete(_PARTS).where(_PARTS.c.analysis == self._position))
            row = update(_RUNS).where(_RUNS.c.position == self._position)
            name = select(_RUNS.c.name).where(_RUNS.c.position == self._position)
            finished = _finished(connection, name.scalar_subquery(), result, units)
            connection.execute(row.values(**finished))


def begin(database: Database, name: str, settings: Mapping[str, Any]) -> AnalysisRun:
    """Return the unfinished run of this edgeflare with these settings, or a new one.

    Unfinished runs of other versions are forgotten, and one with these settings that was begun when
    the campaign had other numbers of seeds, outcomes or survey answers.
    """
    unfinished = and_(_RUNS.c.name == name, _RUNS.c.state == _RUNNING)
    with database.writing() as connection:
        stored = read_json(write_json(dict(settings)))
        counts = _counts(connection)
        for row in connection.execute(select(_RUNS).where(unfinished)).all():
            same = row.settings == stored
            if row.version != __version__ or (same and row.result != counts):
                _forget(connection, row.position)
            elif same:
                return AnalysisRun(database, row.position, row.number)
        number = _next_number(connection, name)
        values = {"name": name, "number": number, "version": __version__, "settings": stored}
        values |= {"state": _RUNNING, "result": counts}
        added = connection.execute(insert(_RUNS).values(**values))
        (position,) = added.inserted_primary_key or (0,)
    return AnalysisRun(database, position, number)


def add(
    database: Database,
    name: str,
    result: Any,
    settings: Mapping[str, Any] | None = None,
    units: UnitRows | None = None,
) -> int:
    """Add a finished run; return its number. See `AnalysisRun.finish`."""
    with database.writing() as connection:
        stored = read_json(write_json(dict(settings or {})))
        number = _next_number(connection, name)
        finished = _finished(connection, name, result, units)
        values = {"name": name, "number": number, "version": __version__, "settings": stored}
        connection.execute(insert(_RUNS).values(**values, **finished))
    return number


def newest(database: Database, name: str, kind: type[_T], parts: Sequence[str]) -> _T | None:
    """Return the result of the run that finished last; None of one with figures that aren't known.

    Figures that aren't finite aren't known: `parts` with some are left out.
    """
    stored = and_(_RUNS.c.name == name, _RUNS.c.state == _FINISHED, _RUNS.c.result.is_not(null()))
    # one run of a name has a result; of an earlier schema two may have
    query = select(cast(_RUNS.c.result, Text)).where(stored).order_by(_RUNS.c.position.desc())
    with database.reading(f"the result {name!r}") as connection:
        text = connection.execute(query).scalar()
        value = read_json(text or "null", unknown=True)
        try:
            return documents.result_from(kind, value, parts)
        except ValueError:
            if is_unknown(text or ""):
                return None
            raise


def finished(database: Database) -> list[StoredResult]:
    """Return every finished run, in the order they were begun."""
    columns = (_RUNS.c[name] for name in StoredResult.__dataclass_fields__)
    query = select(_RUNS.c.position, *columns).where(_RUNS.c.state == _FINISHED)

    def stored(row: Any) -> StoredResult:
        made = row.made and documents.moment(row.made)
        return documents.record(StoredResult, row, made=made)

    return list(database.pages(query, _RUNS.c.position, stored))


def is_unknown(text: str) -> bool:
    """Return whether a JSON document has numbers that aren't finite, as earlier versions wrote."""
    try:
        read_json(text)
    except ValueError:
        return True
    return False


def names_with_unknown(connection: Connection) -> list[str]:
    """Return the names of facts and of newest results with numbers that aren't finite."""
    rows: list[str] = []
    for name, value, where in (
        (_RUNS.c.name, cast(_RUNS.c.result, Text), _RUNS.c.state == _FINISHED),
        (tables.facts.c.name, cast(tables.facts.c.value, Text), literal(value=True)),
    ):
        odd = value.contains("NaN") | value.contains("Infinity")
        found = connection.execute(select(name, value).where(where, odd))
        rows += [one for one, text in found if is_unknown(text)]
    return rows


def move_results(connection: Connection) -> None:
    """Move results from the facts, where earlier versions had them, to their own table."""
    facts, prefix = tables.facts, "analysis "
    short = facts.c.name.in_(("classes", "coverage", "explanation", "importance", "units"))
    version = select(tables.meta.c.program_version).scalar_subquery()
    names = ["name", "number", "version", "settings", "state", "result"]
    for is_result, name in (
        (short, facts.c.name),
        (facts.c.name.startswith(prefix), func.substr(facts.c.name, len(prefix) + 1)),
    ):
        number = select(func.count() + 1).where(_RUNS.c.name == name).scalar_subquery()
        settings = literal({}, _RUNS.c.settings.type)
        rows = select(name, number, version, settings, literal(_FINISHED), facts.c.value)
        connection.execute(insert(_RUNS).from_select(names, rows.where(is_result)))
        connection.execute(delete(facts).where(is_result))


def _forget(connection: Connection, position: int) -> None:
    connection.execute(delete(_PARTS).where(_PARTS.c.analysis == position))
    connection.execute(delete(_RUNS).where(_RUNS.c.position == position))


def _counts(connection: Connection) -> dict[str, int]:
    """Return how many rows there are of what analyses read: a run's own `result` until it has one."""
    counted = (tables.seeds, tables.outcomes, tables.survey_answers)
    return {
        table.name: connection.execute(select(func.count()).select_from(table)).scalar_one()
        for table in counted
    }


def _finished(
    connection: Connection, name: Any, result: Any, units: UnitRows | None
) -> dict[str, Any]:
    """Replace older results of this name, and the scores of units, if any; return a finished run's columns."""
    older = and_(_RUNS.c.name == name, _RUNS.c.state == _FINISHED)
    connection.execute(update(_RUNS).where(older).values(result=None))
    if units is not None:
        connection.execute(delete(_UNITS))
        for batch in batches(units()):
            for row in batch:
                write_json(dict(row))  # raises where a score isn't finite
            connection.execute(insert(_UNITS), list(batch))
    read = partial(documents.result_from, type(result))
    stored = documents.storable(read, asdict(result))
    made = datetime.now(timezone.utc).isoformat()
    return {"state": _FINISHED, "result": stored, "made": made}


def _next_number(connection: Connection, name: str) -> int:
    query = select(func.max(_RUNS.c.number)).where(_RUNS.c.name == name)
    return int(connection.execute(query).scalar() or 0) + 1

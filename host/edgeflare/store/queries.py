"""Statements on the tables of a campaign that several methods of its store need."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from sqlalchemy import (
    Connection,
    Select,
    Table,
    and_,
    case,
    func,
    insert,
    inspect,
    or_,
    select,
    update,
)

from edgeflare._version import __version__
from edgeflare.errors import StoreError
from edgeflare.store import tables
from edgeflare.store.database import batches
from edgeflare.store.records import SEARCH_ENDS, DeviceCounts, digest_of
from edgeflare.types import NOTHING_SEARCHED, Skipped, Status

_SEEDS = tables.seeds
_ANSWERS = tables.seed_answers
_OUTCOMES = tables.outcomes


def make_tables(connection: Connection) -> None:
    """Make the tables in a database that has none of them."""
    if inspect(connection).has_table(tables.meta.name):
        raise StoreError("This database holds a campaign already; use another, or open that one.")
    tables.metadata.create_all(connection)
    about = {"schema_version": tables.SCHEMA_VERSION, "program_version": __version__}
    connection.execute(insert(tables.meta).values(**about))


def set_fact(connection: Connection, key: str, value: Any) -> None:
    """Store a JSON value under a key; replaces what was there."""
    table = tables.facts
    change = update(table).where(table.c.name == key).values(value=value)
    if connection.execute(change).rowcount == 0:
        connection.execute(insert(table).values(name=key, value=value))


def add_notices(connection: Connection, texts: Iterable[str]) -> None:
    """Add notices."""
    for text in texts:
        connection.execute(insert(tables.notices).values(text=text))


def add_skipped(connection: Connection, skipped: Iterable[Skipped]) -> None:
    """Add files that could not be seeds."""
    for one in skipped:
        connection.execute(insert(tables.skipped).values(name=one.name, reason=one.reason))


def add_environment(connection: Connection, environment: dict[str, Any]) -> str:
    """Add an environment, once, and return its digest."""
    digest = digest_of(environment)
    add_once(connection, tables.environments, digest=digest, description=environment)
    return digest


def add_once(connection: Connection, table: Table, **values: Any) -> None:
    """Add a row unless there is one of its digest."""
    known = select(table.c.digest).where(table.c.digest == values["digest"])
    if connection.execute(known).first() is None:
        connection.execute(insert(table).values(**values))


def seed_count(connection: Connection) -> int:
    """Return how many seeds there are."""
    return connection.execute(select(func.count()).select_from(_SEEDS)).scalar_one()


def answered(connection: Connection, positions: Iterable[int], replica: str) -> set[int]:
    """Return which of the seeds at these positions this replica has answered."""
    answered: set[int] = set()
    for some in batches(positions):
        query = select(_ANSWERS.c.seed).where(
            _ANSWERS.c.replica == replica, _ANSWERS.c.seed.in_(some)
        )
        answered.update(connection.execute(query).scalars())
    return answered


def seeds_with_answers(replica: str, *, every_seed: bool) -> Select[Any]:
    """Return the query of the seeds with the answers of a replica; of those without any, too, if `every_seed`."""
    answer = and_(_ANSWERS.c.seed == _SEEDS.c.position, _ANSWERS.c.replica == replica)
    columns = (
        _ANSWERS.c.original,
        _ANSWERS.c.original_pieces,
        _ANSWERS.c.deployed,
        _ANSWERS.c.deployed_pieces,
        _ANSWERS.c.decision,
    )
    return select(_SEEDS, *columns).join(_ANSWERS, answer, isouter=every_seed)


def with_seed_id(table: Table) -> Select[Any]:
    """Return the query of a table's rows, each with the id of its seed."""
    return select(table, _SEEDS.c.id.label("seed_id")).join(_SEEDS)


def positions(connection: Connection, folder: Path, seed_ids: Iterable[str]) -> dict[str, int]:
    """Return the positions of the seeds of these ids. Raises StoreError for one that isn't there."""
    wanted = list(seed_ids)
    known: dict[str, int] = {}
    for some in batches(wanted):
        query = select(_SEEDS.c.id, _SEEDS.c.position).where(_SEEDS.c.id.in_(some))
        known.update((row.id, row.position) for row in connection.execute(query))
    for seed_id in wanted:
        if seed_id not in known:
            raise StoreError(f"There is no seed {seed_id!r} in {folder}: it is unknown.")
    return known


def position(connection: Connection, folder: Path, seed_id: str) -> int:
    """Return the position of the seed of this id. Raises StoreError where there is none."""
    return positions(connection, folder, [seed_id])[seed_id]


def tally(connection: Connection, replica: str | None) -> DeviceCounts:
    """Count the outcomes of one replica, or of all of them."""
    searched = or_(
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
        func.sum(case((searched, 1), else_=0)),
        func.sum(_OUTCOMES.c.search_queries),
    ).select_from(_OUTCOMES)
    if replica is not None:
        query = query.where(_OUTCOMES.c.replica == replica)
    return DeviceCounts(*(int(value or 0) for value in connection.execute(query).one()))

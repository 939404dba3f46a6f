"""Statements on the tables of a campaign: shared ones and large ones."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from sqlalchemy import (
    Column,
    Connection,
    Executable,
    Row,
    Select,
    Table,
    and_,
    case,
    delete,
    func,
    insert,
    inspect,
    literal,
    or_,
    select,
    union_all,
)
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.exc import IntegrityError

from edgeflare._version import __version__
from edgeflare.answers.columns import is_answer, output_from
from edgeflare.errors import StoreError
from edgeflare.store import analyses, tables
from edgeflare.store.database import Database, batches
from edgeflare.store.records import (
    SEARCH_ENDS,
    OutcomeCounts,
    SeedComparison,
    TriggerAnswer,
    digest_of,
)
from edgeflare.store.state import CampaignState
from edgeflare.types import NOTHING_SEARCHED, TRIGGERS, Decision, Output, Status
from edgeflare.words.search import OUTCOMES_MISSING, OUTCOMES_NAME_GONE, UNKNOWN_FIGURES

_SEEDS = tables.seeds
_ANSWERS = tables.seed_answers
_OUTCOMES = tables.outcomes
_REPLAYS = tables.replays
_PAGE = 64
"""How many seeds are compared at a time, each with the scores of every device."""


def make_tables(connection: Connection) -> None:
    """Make the tables in a database that has none of them."""
    if inspect(connection).has_table(tables.meta.name):
        raise StoreError("this database holds a campaign already; use another, or open that one")
    tables.metadata.create_all(connection)
    about = {"schema_version": tables.SCHEMA_VERSION, "program_version": __version__}
    connection.execute(insert(tables.meta).values(**about))


def notices_of_damage(connection: Connection) -> list[str]:
    """Return a notice for what of a campaign is lost, where the rest of it can be read."""
    notices = [
        OUTCOMES_NAME_GONE.format(number, parent.name)
        for column, parent in (
            (_OUTCOMES.c.device, tables.devices),
            (_OUTCOMES.c.environment, tables.environments),
        )
        if (number := connection.execute(_orphans(column, parent.c.digest)).scalar_one())
    ]
    expected = seed_count(connection) * len(CampaignState.replicas.read(connection))
    if (
        CampaignState.finished.read(connection)
        and (lost := expected - tally(connection, None).done) > 0
    ):
        notices.append(OUTCOMES_MISSING.format(lost))
    unknown = analyses.names_with_unknown(connection)
    return notices + [UNKNOWN_FIGURES.format(name) for name in unknown]


def upgrade(connection: Connection) -> None:
    """Bring the tables of schema 5, that of 0.2.0, or of a later one to those of today."""
    tables.metadata.create_all(connection)  # those that there weren't then
    analyses.move_results(connection)


def add_notices(connection: Connection, texts: Iterable[str]) -> None:
    """Add notices."""
    for text in texts:
        connection.execute(insert(tables.notices).values(text=text))


def add_seeds(database: Database, rows: Sequence[dict[str, Any]]) -> None:
    """Add seeds behind those there are. Raises StoreError where one is there already."""
    if not rows:
        return
    try:
        with database.writing() as connection:
            for place, row in enumerate(rows, start=seed_count(connection)):
                row["position"] = place
            connection.execute(insert(_SEEDS), rows)
    except StoreError as error:
        if not isinstance(error.__cause__, IntegrityError):
            raise
        with database.reading() as connection:
            there = set(connection.execute(select(_SEEDS.c.id)).scalars())
        often = Counter(row["id"] for row in rows)
        again = next(row["id"] for row in rows if row["id"] in there or often[row["id"]] > 1)
        raise StoreError(f"the seed {again!r} is in {database.folder} already") from error


def add_environment(connection: Connection, environment: dict[str, Any]) -> str:
    """Add an environment, once, and return its digest."""
    digest = digest_of(environment)
    add_once(connection, tables.environments, digest=digest, description=environment)
    return digest


def add_rows(
    connection: Connection,
    table: Table,
    rows: Sequence[Mapping[str, Any]],
    *,
    keep_first: bool = False,
) -> int:
    """Add rows, each of a seed; return whether one of a single row was added, 1 or 0.

    `keep_first`: rows that break a unique constraint are left out, else they raise IntegrityError.
    Processes that add several of the same ones at once wait for each other.
    """
    if not rows:
        return 0
    dialect = connection.dialect.name
    if dialect != "sqlite":
        rows = sorted(rows, key=lambda row: int(row["seed"]))  # else they may wait in a circle
    values = rows[0] if len(rows) == 1 else rows
    return connection.execute(_adding(table, dialect, keep_first), values).rowcount


@cache
def _adding(table: Table, dialect: str, keep_first: bool) -> Executable:
    insert_ = sqlite.insert if dialect == "sqlite" else postgresql.insert
    statement = insert_(table).inline().execution_options(preserve_rowcount=True)
    return statement.on_conflict_do_nothing() if keep_first else statement


def add_once(connection: Connection, table: Table, **values: Any) -> None:
    """Add a row unless there is one of its digest."""
    known = select(table.c.digest).where(table.c.digest == values["digest"])
    if connection.execute(known).first() is None:
        connection.execute(insert(table).values(**values))


def seed_count(connection: Connection) -> int:
    """Return how many seeds there are."""
    return connection.execute(select(func.count()).select_from(_SEEDS)).scalar_one()


_REFERENCES = union_all(
    select(literal(_SEEDS.name), func.count(), func.max(_SEEDS.c.position)),
    *(
        select(literal(table.name), func.count(), literal(0)).where(
            table.c.seed.not_in(select(_SEEDS.c.position))
        )
        for table in tables.metadata.sorted_tables
        if "seed" in table.c
    ),
)


def check_references(connection: Connection, folder: Path) -> None:
    """Raise StoreError where rows belong to seeds that are missing, or seeds are missing themselves.

    PostgreSQL keeps that so itself. SQLite does while edgeflare writes; other programs may not. Only
    indices are read, so that this is cheap in a large campaign.
    """
    if connection.dialect.name != "sqlite":
        return
    counts = connection.execute(_REFERENCES).all()
    (name, count, last), *orphans = counts
    missing = {} if last is None or last < count else {name: last + 1 - count}
    found = {name: number for name, number, _ in orphans if number}
    if missing or found:
        raise _rows_damaged(folder, missing, found)


def _rows_damaged(folder: Path, missing: dict[str, int], found: dict[str, int]) -> StoreError:
    words = [f"{number} rows of {name} are missing" for name, number in missing.items()]
    if found:
        rows = " and ".join(f"{number} rows of {name}" for name, number in found.items())
        words.append(f"{rows} belong to seeds that are gone")
    return StoreError(
        f"{folder} is damaged: in its database {', '.join(words)}; restore it from a copy, or run "
        "the campaign anew in another folder"
    )


def _orphans(column: Column[Any], parent: Column[Any]) -> Select[Any]:
    """Return the query that counts the rows whose column names no row of another table."""
    return select(func.count()).where(column.is_not(None), column.not_in(select(parent)))


def first_replica(connection: Connection) -> str:
    """Return the replica whose answer to a seed was added first; "" where there is none."""
    query = select(_ANSWERS.c.replica).order_by(_ANSWERS.c.position).limit(1)
    return connection.execute(query).scalar() or ""


def seeds_with_answers(replica: str, *, every_seed: bool) -> Select[Any]:
    """Return the query of the seeds that a replica answered, or of all, with its answers."""
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
    """Return the positions of the seeds of these ids. Raises StoreError for an unknown one."""
    wanted = list(seed_ids)
    known: dict[str, int] = {}
    for batch in batches(wanted):
        query = select(_SEEDS.c.id, _SEEDS.c.position).where(_SEEDS.c.id.in_(batch))
        known.update((row.id, row.position) for row in connection.execute(query))
    for seed_id in wanted:
        if seed_id not in known:
            raise StoreError(f"there is no seed {seed_id!r} in {folder}: it is unknown")
    return known


def position(connection: Connection, folder: Path, seed_id: str) -> int:
    """Return the position of the seed of this id. Raises StoreError where there is none."""
    return positions(connection, folder, [seed_id])[seed_id]


SEARCHED = or_(
    _OUTCOMES.c.search_queries > 0,
    _OUTCOMES.c.host_only_queries > 0,
    and_(
        _OUTCOMES.c.status.in_([status.value for status in SEARCH_ENDS]),
        _OUTCOMES.c.detail != NOTHING_SEARCHED,
    ),
)
"""`OutcomeRecord.searched` as an expression."""


def tally(connection: Connection, replica: str | None) -> OutcomeCounts:
    """Count the outcomes of one replica, or of all of them."""
    query = select(
        func.count(),
        func.sum(case((_OUTCOMES.c.status == Status.FOUND.value, 1), else_=0)),
        func.sum(case((SEARCHED, 1), else_=0)),
        func.sum(_OUTCOMES.c.search_queries),
    ).select_from(_OUTCOMES)
    if replica is not None:
        query = query.where(_OUTCOMES.c.replica == replica)
    return OutcomeCounts(*(int(value or 0) for value in connection.execute(query).one()))


def remove_failed(connection: Connection, replica: str) -> None:
    """Remove a replica's outcomes of searches that failed; their queries stay counted."""
    failed = and_(_OUTCOMES.c.replica == replica, _OUTCOMES.c.status == Status.FAILED.value)
    queries = func.sum(_OUTCOMES.c.search_queries + _OUTCOMES.c.confirmation_queries)
    name = _OUTCOMES.c.device_name
    of_device = connection.execute(select(name, queries).where(failed).group_by(name))
    spent: dict[str, int] = {row[0]: int(row[1]) for row in of_device}
    if any(spent.values()):
        measuring = CampaignState.measuring_queries
        measuring.write(connection, Counter(measuring.read(connection)) + Counter(spent))
    connection.execute(delete(_OUTCOMES).where(failed))


def compare(database: Database, replicas: list[str]) -> Iterator[SeedComparison]:
    """Yield these replicas' answers to each seed and its triggers, in the order of the seeds."""
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

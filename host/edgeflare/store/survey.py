"""Statements on the tables of a survey's answers."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from sqlalchemy import func, select

from edgeflare.store import queries, tables
from edgeflare.store.database import Database, batches
from edgeflare.store.mapped import reader, record_of, row_of
from edgeflare.store.records import ReferenceAnswer, SurveyedSeed, SurveyRecord

REFERENCES = "references"
"""The folder of the references that are made."""

_RUNS = tables.surveyed_seeds
_SURVEY = tables.survey_answers
_REFERENCES = tables.reference_answers
ORDER = (_SURVEY.c.phase.desc(), _SURVEY.c.replica, _SURVEY.c.seed, _SURVEY.c.number)


@dataclass
class SurveyCounts:
    """Sums over the surveyed seeds: how many there are, and their queries by kind."""

    seeds: int = 0
    survey: int = 0
    confirmation: int = 0
    host_only: int = 0
    device_seconds: float = 0.0
    by_device: dict[str, int] = field(default_factory=dict)
    """Each device's queries, confirmations included."""


def add(
    database: Database,
    records: Sequence[SurveyRecord],
    runs: Sequence[SurveyedSeed],
    *,
    keep_first: bool,
) -> None:
    """Add answers and the seeds that they finish, in one transaction.

    `keep_first`: what is there already stays; else one of them raises StoreError.
    """
    ids = {one.seed_id for one in records} | {one.seed_id for one in runs}
    with database.adding() as connection:
        positions = queries.positions(connection, database.folder, ids)
        answers = [row_of(one, seed=positions[one.seed_id]) for one in records]
        queries.add_rows(connection, _SURVEY, answers, keep_first=keep_first)
        finished = [row_of(run, seed=positions[run.seed_id]) for run in runs]
        queries.add_rows(connection, _RUNS, finished, keep_first=keep_first)


def read(
    database: Database, replica: str | None, phase: str | None, *, deviating: bool = False
) -> Iterator[SurveyRecord]:
    """Yield answers by phase, replica, seed and number; a batch of them is in memory at a time.

    `deviating`: only the confident deviations.
    """
    query = select(_SURVEY.c.position).order_by(*ORDER)
    if replica is not None:
        query = query.where(_SURVEY.c.replica == replica)
    if phase is not None:
        query = query.where(_SURVEY.c.phase == phase)
    if deviating:
        query = query.where(_SURVEY.c.confident_deviation)
    with database.reading() as connection:
        positions = list(connection.execute(query).scalars())
    return read_at(database, positions)


def read_at(database: Database, positions: Sequence[int]) -> Iterator[SurveyRecord]:
    """Yield the answers in these rows, as `read` does."""
    for batch in batches(positions):
        page = queries.with_seed_id(_SURVEY).where(_SURVEY.c.position.in_(batch)).order_by(*ORDER)
        with database.reading(_SURVEY) as connection:
            found = [record_of(SurveyRecord, row) for row in connection.execute(page)]
        yield from found


def finished_ids(database: Database, replica: str) -> set[str]:
    """Return the ids of the seeds whose survey is finished."""
    query = select(tables.seeds.c.id).join(_RUNS)
    where = (_RUNS.c.replica == replica, _RUNS.c.phase == "survey")
    with database.reading() as connection:
        return set(connection.execute(query.where(*where)).scalars())


def runs(database: Database) -> Iterator[SurveyedSeed]:
    """Yield every part of a survey that is finished, in the order they were added."""
    return database.pages(queries.with_seed_id(_RUNS), _RUNS.c.position, reader(SurveyedSeed))


def count(database: Database, phase: str | None) -> SurveyCounts:
    """Return the sums over all surveyed seeds, of one phase or of all."""
    sums = (_RUNS.c.survey_queries, _RUNS.c.confirmation_queries, _RUNS.c.host_only_queries)
    query = select(
        _RUNS.c.device_name,
        func.count(),
        *(func.sum(one) for one in (*sums, _RUNS.c.device_seconds)),
    ).group_by(_RUNS.c.device_name)
    if phase is not None:
        query = query.where(_RUNS.c.phase == phase)
    found = SurveyCounts()
    with database.reading() as connection:
        for name, seeds, survey, confirmation, host_only, seconds in connection.execute(query):
            found.seeds += seeds
            found.survey += survey
            found.confirmation += confirmation
            found.host_only += host_only
            found.device_seconds += seconds
            found.by_device[name] = survey + confirmation
    return found


def add_references(database: Database, answers: Sequence[ReferenceAnswer]) -> None:
    """Add answers of references in one transaction."""
    with database.adding() as connection:
        positions = queries.positions(
            connection, database.folder, {answer.seed_id for answer in answers}
        )
        rows = [row_of(answer, seed=positions[answer.seed_id]) for answer in answers]
        queries.add_rows(connection, _REFERENCES, rows)


def read_references(database: Database, reference: str, phase: str) -> Iterator[ReferenceAnswer]:
    """Yield one reference's answers, of one phase or of all, in the order they were added."""
    query = queries.with_seed_id(_REFERENCES).where(_REFERENCES.c.reference == reference)
    if phase:
        query = query.where(_REFERENCES.c.phase == phase)
    return database.pages(query, _REFERENCES.c.position, reader(ReferenceAnswer))

"""The answers of a survey: records, and statements on their tables."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Final, Literal, TypeAlias

from pydantic import Field
from sqlalchemy import func, select

from edgeflare.answers.metrics import disagreement
from edgeflare.store import queries, tables
from edgeflare.store.database import Database, batches
from edgeflare.store.mapped import reader, record_of, row_of
from edgeflare.types import Decision, Output

REFERENCES = "references"
"""The folder of the references that are made."""

SurveyKey: TypeAlias = tuple[str, str, int]
"""What names an input of a survey within a replica: seed, phase, number."""

SurveyPhase: TypeAlias = Literal["survey", "pursuit", "check"]
"""The even survey, the pursuit of what it saw, and the check of a fault's description."""

OWN: Final = "seed"
"""The phase of a reference's answers to the seeds as they are; a seed's number is 0."""
ReferencePhase: TypeAlias = SurveyPhase | Literal["seed"]

_Share: TypeAlias = Annotated[float, Field(ge=0, le=1.000001)]
_RUNS = tables.surveyed_seeds
_SURVEY = tables.survey_answers
_REFERENCES = tables.reference_answers
ORDER = (_SURVEY.c.phase.desc(), _SURVEY.c.replica, _SURVEY.c.seed, _SURVEY.c.number)
TABLE = "the table survey_answers of its database"
_WITH_ARRAYS = {"arbitrary_types_allowed": True}


@dataclass(frozen=True)
class SurveyedSeed:
    """What the survey from one seed cost; it is there once that is finished.

    `phase` and `round` say which part of a survey it was: an even survey has one round.
    `survey_queries` are inputs that the deployed model was asked about, `confirmation_queries`
    repetitions of findings, `host_only_queries` inputs given to the original alone.
    `device_seconds` is the device's own time for them. `detail` says why the original could not
    answer on the inputs, where it could not. `replica` is as in `OutcomeRecord`.
    """

    seed_id: str
    survey_queries: int = 0
    confirmation_queries: int = 0
    host_only_queries: int = 0
    device_seconds: float = 0.0
    device_name: str = ""
    detail: str = ""
    replica: str = ""
    phase: SurveyPhase = "survey"
    round: int = 0


@dataclass(frozen=True)
class SurveyRecord:
    """Both models' answers to one input far from a seed, at which the original is sure.

    `number` is its place within seed and phase, from 0. `family`, `severity` (1 to 5) and `params`
    (JSON) say how it was made; `sample` is its digest. The bytes are stored where it is a finding,
    else they are made again of the parameters. `deployed` is None, and the decision undecided,
    where the deployed model couldn't answer; `detail` says why then.

    `original_margin` and `deployed_margin` are as in `OutcomeRecord`. `total_variation` is that of
    both models' probabilities, 0 to 1: 1 where the deployed model's are NaN or infinite, None of
    transcripts and labels without scores. `confident_deviation`: the deployed model decides
    differently, or answers NaN or infinity, and did so in every repetition (`confirmed` counts
    them).
    """

    __pydantic_config__ = _WITH_ARRAYS

    seed_id: str
    number: int
    family: str
    severity: Annotated[int, Field(ge=1, le=5)]
    params: dict[str, Any]
    sample: str
    original: Output
    deployed: Output | None
    decision: Decision
    original_margin: float | None = None
    deployed_margin: float | None = None
    total_variation: _Share | None = None
    confident_deviation: bool = False
    confirmed: int = 0
    device_name: str = ""
    detail: str = ""
    replica: str = ""
    phase: SurveyPhase = "survey"

    @property
    def disagreement(self) -> float | None:
        """The total variation or, of transcripts, the share of words that differ; 0 to 1."""
        if self.total_variation is not None or self.deployed is None:
            return self.total_variation
        return disagreement(self.original, self.deployed)

    @property
    def key(self) -> SurveyKey:
        """What names the input within a campaign: seed, phase, number."""
        return self.seed_id, self.phase, self.number


@dataclass(frozen=True)
class ReferenceAnswer:
    """What a reference model, in place of the deployed one, answers to a seed or a survey's input.

    `reference` names the model; seed, phase and number name the input, as in `SurveyRecord`; of a
    seed as it is the phase is "seed".
    """

    __pydantic_config__ = _WITH_ARRAYS

    reference: str
    seed_id: str
    number: int
    deployed: Output
    decision: Decision
    total_variation: _Share | None = None
    phase: ReferencePhase = "survey"

    @property
    def key(self) -> SurveyKey:
        """What names the input within a campaign: seed, phase, number."""
        return self.seed_id, self.phase, self.number


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
        with database.reading(TABLE) as connection:
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

"""What a campaign has stored of itself beside its rows: each fact is a field with its type."""

from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field
from functools import cached_property
from typing import (
    Annotated,
    Any,
    Generic,
    Literal,
    TypeAlias,
    TypeVar,
    get_args,
    get_type_hints,
    overload,
)

from pydantic import AfterValidator, Field, TypeAdapter, ValidationError
from sqlalchemy import Connection, Text, cast, insert, select, update
from typing_extensions import NotRequired, TypedDict

from edgeflare._internal.text import first_problem
from edgeflare.store import tables
from edgeflare.store.database import Database, decoding
from edgeflare.store.documents import UnstorableError, read_json, write_json
from edgeflare.store.records import ReplayInput
from edgeflare.store.servers import beginning_again
from edgeflare.survey.description import Accuracy

_T = TypeVar("_T")
Count: TypeAlias = Annotated[int, Field(ge=0, lt=2**63)]
Counts: TypeAlias = Mapping[str, Count]
"""A number by a name: such as each device's queries."""


def _named(device: Mapping[str, Any]) -> Mapping[str, Any]:
    if isinstance(device.get("name"), str):
        return device
    raise ValueError("a device has no name")


StoredDevice: TypeAlias = Annotated[Mapping[str, Any], AfterValidator(_named)]
"""A device's entry of the inventory, with what is stated in it: its "name" and more."""


@dataclass(frozen=True)
class Partner:
    """An input of the seeds' source that isn't a seed: its name there, and its sample's digest."""

    id: str
    sample: str


class AnswerCounts(TypedDict):
    """Numbers of answers of both models, and of the seeds that they are answers to."""

    deployed: Count
    original: Count
    seeds: NotRequired[Count]


@dataclass(frozen=True)
class AnswersChecked:
    """What a replica's answers to the seeds show.

    `repeated`: how many seeds were asked about again, and on how many of them each model answered
    otherwise. `constant`: to how many different seeds each gave one answer, 0: it gave several.
    """

    repeated: AnswerCounts | None = None
    constant: AnswerCounts | None = None


@dataclass(frozen=True)
class FaultThreshold:
    """One part of a fault's condition: a feature of the input is below `at`, or at least `at`.

    `label`: the feature is 1 where the original answers this class, else 0; None of all others.
    """

    feature: str
    below: bool
    at: float
    label: int | None = None


@dataclass(frozen=True)
class StoredFault:
    """A condition that a pursuit ended with, in `words`, "" where it found none.

    `repeats`: a later pursuit saw nothing else. `checked` are counts of fresh inputs, `seen` of those
    asked about until then. `inputs` names the deviating inputs by seed, phase and number.
    """

    words: str
    thresholds: Sequence[FaultThreshold]
    repeats: bool
    checked: Accuracy | None
    seen: Accuracy | None
    inputs: Sequence[tuple[str, str, int]]


@dataclass(frozen=True)
class RawOutputs:
    """What the deployed model returned on its device for the first seeds, before it became answers.

    `seeds`: their ids. `outputs`: for each output that counts, the digest of a stored array [seeds, ...], as the
    runtime has it. `devices`: which returned them.
    """

    seeds: Sequence[str]
    outputs: Sequence[str]
    devices: Sequence[str]


@dataclass(frozen=True)
class Reference:
    """A reference that has answered: an int8 model of the float model `of`, or another campaign.

    `inputs` and `seeds` are how many it was asked about. `dynamic`: its values are scaled input by
    input.
    """

    kind: str
    path: str
    sha256: str | None
    of: str | None = None
    inputs: int | None = None
    seeds: int | None = None
    dynamic: bool = False


@dataclass(frozen=True)
class ReplayOrigin:
    """Where a replay's inputs come from: the folder of a campaign, a replay or a corpus.

    `campaign` is the id and `models` what is known of the models of one that is no corpus, `finished`
    whether it was finished then. `target` is as in `ReplaySource`.
    """

    kind: Literal["campaign", "replay", "corpus"]
    folder: str
    target: str | None = None
    campaign: str | None = None
    finished: bool = False
    models: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)


@dataclass(frozen=True)
class ReplayStart:
    """Where a replay's inputs come from, and the ids of those to send."""

    source: ReplayOrigin
    selected: Sequence[str] = field(default=(), kw_only=True)


@dataclass(frozen=True)
class StoredReplay(ReplayStart):
    """What makes a campaign a replay: its source, and its inputs as they were before it.

    `notices` are what the user ought to know of them.
    """

    inputs: Sequence[ReplayInput] = ()
    notices: Sequence[str] = ()


class Fact(Generic[_T]):
    """A field of `CampaignState`, stored under its name or under `stored`; `default` until then."""

    def __init__(self, default: _T, stored: str = "") -> None:
        self._default = default
        self.stored = stored

    def __set_name__(self, owner: type[Any], name: str) -> None:
        self._owner, self._name = owner, name
        self.stored = self.stored or name

    @overload
    def __get__(self, state: None, owner: type[Any]) -> "Fact[_T]": ...

    @overload
    def __get__(self, state: "CampaignState", owner: type[Any]) -> _T: ...

    def __get__(self, state: "CampaignState | None", owner: type[Any]) -> "Fact[_T] | _T":
        if state is None:
            return self
        return self._get(state)

    def __set__(self, state: "CampaignState", value: _T) -> None:
        self._set(state, value)

    @beginning_again
    def _get(self, state: "CampaignState") -> _T:
        with state.database.reading(f"the fact {self.stored!r}") as connection:
            return self.read(connection)

    @beginning_again
    def _set(self, state: "CampaignState", value: _T) -> None:
        with state.database.writing() as connection:
            self.write(connection, value)

    @cached_property
    def _adapter(self) -> TypeAdapter[_T]:
        (kind,) = get_args(get_type_hints(self._owner, include_extras=True)[self._name])
        return TypeAdapter(kind)

    def read(self, connection: Connection) -> _T:
        """Return the value, in a transaction. Raises ValueError where it doesn't fit its type."""
        query = select(cast(tables.facts.c.value, Text)).where(tables.facts.c.name == self.stored)
        text = connection.execute(query).scalar()
        value = None if text is None else read_json(text, unknown=True)
        return copy(self._default) if value is None else self._decoded(write_json(value))

    def write(self, connection: Connection, value: _T) -> None:
        """Replace the value, in a transaction. Raises UnstorableError where it doesn't fit its type."""
        try:
            stored = self._adapter.dump_python(value, mode="json", warnings=False)
            if stored is not None:
                self._decoded(write_json(stored))
        except ValueError as error:
            raise UnstorableError(str(error)) from error
        table = tables.facts
        change = update(table).where(table.c.name == self.stored).values(value=stored)
        if connection.execute(change).rowcount == 0:
            connection.execute(insert(table).values(name=self.stored, value=stored))

    def is_stored(self, connection: Connection) -> bool:
        """Return whether there is a value, in a transaction."""
        query = select(tables.facts.c.name).where(tables.facts.c.name == self.stored)
        return connection.execute(query).first() is not None

    def _decoded(self, text: str) -> _T:
        try:
            return self._adapter.validate_json(text, strict=True)
        except ValidationError as error:
            raise ValueError(first_problem(error)) from error


class CampaignState:
    """The facts of a campaign, read and written by attribute; each writing is one transaction.

    Reading and writing raise StoreError, also where what is stored doesn't fit the field's type.
    """

    answers_checked: Fact[Mapping[str, AnswersChecked]] = Fact({})
    """What each replica's answers to the seeds show."""
    baseline_pairs: Fact[Sequence[tuple[int, int]] | None] = Fact(None)
    """The pairs of labels of the baseline at the campaign's start; None: it has no baseline."""
    boards: Fact[Sequence[str] | None] = Fact(None, "boards wanted")
    """The names of the workers' devices that take part; None: all of them."""
    checked: Fact[Sequence[str]] = Fact([])
    """The devices on which the check of all seeds is done."""
    class_names: Fact[Sequence[str] | None] = Fact(None)
    control_begun: Fact[bool] = Fact(False)
    control_finished: Fact[bool] = Fact(False)
    control_refused: Fact[str | None] = Fact(None)
    """Why the control can't be run."""
    devices: Fact[Sequence[StoredDevice]] = Fact([])
    """The devices that the campaign was given."""
    device_outputs: Fact[RawOutputs | None] = Fact(None, "device outputs")
    """What the device returned for the first seeds; None where this machine returns it again."""
    disagreement: Fact[str] = Fact("")
    """What is wrong with the pair, by the answers to the seeds; "": nothing is, or it is accepted."""
    environment: Fact[str | None] = Fact(None)
    """The digest of the environment in force."""
    faults: Fact[Mapping[str, Sequence[StoredFault]] | None] = Fact(None)
    """The faults that each replica's pursuit ended with; None until one has."""
    finished: Fact[bool] = Fact(False)
    """Whether every search was done when the campaign last ran."""
    fingerprints: Fact[Mapping[str, str]] = Fact({})
    """The digest of each device's fingerprint, by the device's name."""
    measuring_queries: Fact[Counts] = Fact({})
    """Each device's queries to measure or to compare devices."""
    partner_answers: Fact[Mapping[str, Mapping[str, tuple[Sequence[float], Sequence[float]]]]] = (
        Fact({}, "partner answers")
    )
    """Both models' scores on the partners that are no seeds, by replica and the sample's digest."""
    partners: Fact[Sequence[Partner] | None] = Fact(None)
    """The first inputs of the seeds' source; None where they are the first seeds."""
    float_models: Fact[Mapping[str, str]] = Fact({}, "reference models")
    """The digest of each float model that int8 models were made of, by its path."""
    references: Fact[Mapping[str, Reference]] = Fact({})
    references_left_out: Fact[Counts] = Fact({}, "references left out")
    """The references with too few of the survey's inputs, and the number of these inputs."""
    replay: Fact[StoredReplay | None] = Fact(None)
    """What makes the campaign a replay; None of any other."""
    replay_start: Fact[ReplayStart | None] = Fact(None, "replay")
    """What `replay` begins with, to be read alone: its inputs, which may be many, aren't checked."""
    replicas: Fact[Sequence[str]] = Fact([""])
    sample_rate: Fact[int | None] = Fact(None)
    """The rate of audio samples in Hz; None of others."""
    seed_origins: Fact[Mapping[str, str]] = Fact({}, "seed origins")
    """Of seeds made of another campaign's, the id there by the id here."""
    seed_rows: Fact[Mapping[str, Count]] = Fact({}, "seed rows")
    """Where models have inputs for each seed, its row in their arrays, by its id."""
    seed_queries: Fact[Counts] = Fact({})
    """Each device's queries for seeds."""
    seeds_complete: Fact[bool] = Fact(False)
    """Whether all seeds are stored."""
    families: Fact[Sequence[str] | None] = Fact(None, "survey families")
    """The families of the survey; None before it began."""
    wall_s: Fact[Annotated[float, Field(ge=0)] | None] = Fact(None)
    """The wall-clock seconds of all runs that were not killed."""

    def __init__(self, database: Database) -> None:
        self.database = database

    @beginning_again
    def change(self, fact: Fact[_T], change: Callable[[_T], _T]) -> None:
        """Replace a fact, a field of this class, by what `change` makes of it, in one transaction."""
        with self.database.writing() as connection:
            with decoding(self.database.folder, f"the fact {fact.stored!r}"):
                value = fact.read(connection)
            fact.write(connection, change(value))

    @property
    @beginning_again
    def is_replay(self) -> bool:
        """Whether the campaign is a replay."""
        with self.database.reading() as connection:
            return CampaignState.replay.is_stored(connection)

    @property
    def device_names(self) -> list[str]:
        """The names of the devices that the campaign was given."""
        return [device["name"] for device in self.devices]

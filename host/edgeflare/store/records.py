"""The records of a campaign."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timezone
from typing import Annotated, Any, Final, Literal, NamedTuple, TypeAlias

from pydantic import BeforeValidator, Field
from sqlalchemy import String

from edgeflare.answers.metrics import disagreement
from edgeflare.answers.parts import Margins
from edgeflare.store.mapped import BigNumber, Digest, Name, SampleDigest, ShortName
from edgeflare.types import NOTHING_SEARCHED, Decision, FrontPoint, Output, Outputs, Status


def _now() -> datetime:
    return datetime.now(timezone.utc)


class SeedAnswer(NamedTuple):
    """Both models' answers on a seed, and the oracle's decision."""

    seed_id: str
    original: Output
    deployed: Output
    decision: Decision


_WITH_ARRAYS = {"arbitrary_types_allowed": True}
"""Settings with which pydantic checks a record that has arrays."""


@dataclass(frozen=True)
class SeedRecord:
    """A seed input: its name, place in the order (from 0), label, and its sample's digest.

    `outputs` are both models' answers, None until there are any. `file_sha256` is the SHA-256, in
    hex, of the file that it was read from, None where that is unknown.
    """

    __pydantic_config__ = _WITH_ARRAYS

    id: Name
    position: int
    label: int | None
    sample: SampleDigest
    outputs: Outputs | None = None
    file_sha256: Digest | None = None


@dataclass(frozen=True)
class DeviceRecord:
    """A device as it was when it answered; `digest` is that of its `fingerprint`."""

    digest: Digest
    name: Name
    fingerprint: dict[str, Any]

    def __post_init__(self) -> None:
        """Raise ValueError where the fingerprint isn't that of the digest."""
        _check_digest(self.digest, self.fingerprint)


@dataclass(frozen=True)
class EnvironmentRecord:
    """A host's environment; `digest` is that of its `description`."""

    digest: Digest
    description: dict[str, Any]

    def __post_init__(self) -> None:
        """Raise ValueError where the description isn't that of the digest."""
        _check_digest(self.digest, self.description)


@dataclass(frozen=True)
class OfSeed:
    """What is stored of one seed and one replica.

    `replica` is "" in a pool of devices that shares the seeds, and the device's name where each
    device searches for itself.
    """

    __pydantic_config__ = _WITH_ARRAYS

    seed_id: str
    replica: ShortName = field(default="", kw_only=True)

    @property
    def place(self) -> tuple[str, str]:
        """Seed and replica."""
        return self.seed_id, self.replica

    @property
    def seed_text(self) -> str:
        """The seed, and the device where each searched for itself."""
        return " on ".join(filter(None, self.place))


@dataclass(frozen=True, kw_only=True)
class LabelledInput(OfSeed):
    """An input made from a seed: both models' labels, class indices, None where there is none."""

    original_label: int | None = None
    deployed_label: int | None = None


@dataclass(frozen=True, kw_only=True)
class AnsweredInput(OfSeed):
    """An input made from a seed, which the device `device_name` was asked about.

    The margins are those of both models' answers, top-1 minus top-2 probability of class scores, None
    where there are none. `detail` says what went wrong.
    """

    original_margin: float | None = None
    deployed_margin: float | None = None
    device_name: Name = ""
    detail: str = ""

    @property
    def device_or_replica(self) -> str:
        """The device's name; of an earlier version's campaign that of the replica, or ""."""
        return self.device_name or self.replica


@dataclass(frozen=True)
class OutcomeRecord(AnsweredInput):
    """How the search from one seed ended, with everything needed to see it again.

    `trigger` is the digest of the stored sample; `original` and `deployed` are both models' answers
    to it, with the labels (None of transcripts) they give. `l2` and
    `linf` are the distances to the seed, `snr_db` that of audio as a ratio in dB, as
    `edgeflare.metrics` has them. `seconds` is search time without queueing, as `Budget` counts it,
    `round_trips` the search's requests to the device; `device_seconds` is the device's own time for
    all queries of the search and its confirmations: divided by their number it is the mean latency
    of inference. `front` has the deviations that no earlier one of the search exceeds in both
    margin and distance. `confirmed` counts how often the stored bytes gave the same answer again.
    `device` is the digest that `Store.add_device` returned; `environment` is filled in by the store: the digest of the host's environment in force when the
    outcome was added. A seed has one outcome a replica.
    """

    status: Status
    chain_seed: BigNumber
    seed_queries: int = 0
    search_queries: int = 0
    confirmation_queries: int = 0
    host_only_queries: int = 0
    round_trips: int = 0
    seconds: float = 0.0
    device_seconds: float = 0.0
    device: str | None = None
    trigger: SampleDigest | None = None
    original: Output | None = None
    deployed: Output | None = None
    original_label: int | None = None
    deployed_label: int | None = None
    l2: float | None = None
    linf: int | None = None
    snr_db: float | None = None
    front: Sequence[FrontPoint] = ()
    mutations: Sequence[dict[str, Any]] = ()
    confirmed: int = 0
    finished_at: datetime = field(default_factory=_now)
    environment: str | None = None

    @property
    def searched(self) -> bool:
        """Whether it was searched from the seed: not from one that is a finding itself.

        A search that ended before its first query, since its budget couldn't pay it, counts; the
        strategy none doesn't.
        """
        queried = self.search_queries > 0 or self.host_only_queries > 0
        return queried or (self.status in SEARCH_ENDS and self.detail != NOTHING_SEARCHED)

    @property
    def severity(self) -> float | None:
        """The smaller margin of both models, 0 to 1; the only one where the other is unknown."""
        return Margins(self.original_margin, self.deployed_margin).smaller

    @property
    def disagreement(self) -> float | None:
        """The `edgeflare.metrics.disagreement` of both models' answers; None where unknown."""
        if self.original is None or self.deployed is None:
            return None
        return disagreement(self.original, self.deployed)

    @property
    def first_queries(self) -> int:
        """The search queries up to the first triggering input, not to the most severe one."""
        return self.front[0].queries if self.front else self.search_queries


SEARCH_ENDS = (Status.EXHAUSTED, Status.TIMEOUT, Status.GAVE_UP)
"""Statuses that only a search ends with."""


class OutcomeCounts(NamedTuple):
    """How many outcomes there are, of a campaign or of one of its replicas.

    `done` counts all of them, `found` those with a triggering input, `searched` those whose search
    began; `queries` are search queries.
    """

    done: int
    found: int
    searched: int
    queries: int


@dataclass(frozen=True)
class ReplayRecord(OfSeed):
    """What one device answers to a triggering input that another replica, or the pool, found.

    `replica` is the one whose trigger it is, `on_device` the device that answered, `trigger` the
    digest of the stored sample; `deployed` is its answer (of no scores where it gave none), with
    the label it gives and the oracle's decision on it and the original's.
    """

    replica: ShortName = field()
    on_device: ShortName
    trigger: SampleDigest
    deployed: Output
    deployed_label: int | None
    decision: Decision


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

    `answers` has each replica's answer to the seed. `triggers` has, by the digest of its sample,
    each triggering input found from the seed and the answers by replica: an input that several
    devices found is there once, in the order of the first of them.
    """

    seed_id: str
    answers: dict[str, Output] = field(default_factory=dict)
    triggers: dict[str, dict[str, TriggerAnswer]] = field(default_factory=dict)


SurveyKey: TypeAlias = tuple[str, str, int]
"""What names an input of a survey within a replica: seed, phase, number."""

SurveyPhase: TypeAlias = Literal["survey", "pursuit", "check"]
"""The even survey, the pursuit of what it saw, and the check of a fault's description."""

OWN: Final = "seed"
"""The phase of a reference's answers to the seeds as they are; a seed's number is 0."""
ReferencePhase: TypeAlias = Literal[SurveyPhase, "seed"]

_Share: TypeAlias = Annotated[float, Field(ge=0, le=1.000001)]


@dataclass(frozen=True)
class SurveyedSeed(OfSeed):
    """What the survey from one seed cost; it is there once that is finished.

    `phase` and `round` say which part of a survey it was: an even survey has one round.
    `survey_queries` are inputs that the deployed model was asked about, `confirmation_queries`
    repetitions of findings, `host_only_queries` inputs given to the original alone.
    `device_seconds` is the device's own time for them. `detail` says why the original could not
    answer on the inputs, where it could not.
    """

    survey_queries: int = 0
    confirmation_queries: int = 0
    host_only_queries: int = 0
    device_seconds: float = 0.0
    device_name: Name = ""
    detail: str = ""
    phase: SurveyPhase = "survey"
    round: int = 0


@dataclass(frozen=True)
class SurveyRecord(AnsweredInput):
    """Both models' answers to one input far from a seed, at which the original is sure.

    `number` is its place within seed and phase, from 0. `family`, `severity` (1 to 5) and `params`
    (JSON) say how it was made; `sample` is its digest. The bytes are stored where it is a finding,
    else they are made again of the parameters. `deployed` is None, and the decision undecided,
    where the deployed model couldn't answer; `detail` says why then.

    `total_variation` is that of
    both models' probabilities, 0 to 1: 1 where the deployed model's are NaN or infinite, None of
    transcripts and labels without scores. `confident_deviation`: the deployed model decides
    differently, or answers NaN or infinity, and did so in every repetition (`confirmed` counts
    them).
    """

    number: int
    family: Annotated[str, String(100)]
    severity: Annotated[int, Field(ge=1, le=5)]
    params: dict[str, Any]
    sample: SampleDigest
    original: Output
    deployed: Output | None
    decision: Decision
    total_variation: _Share | None = None
    confident_deviation: bool = False
    confirmed: int = 0
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

    reference: ShortName
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


def digest_of(description: dict[str, Any]) -> str:
    """Return the SHA-256, in hex, of a JSON object's canonical text."""
    text = json.dumps(description, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def _check_digest(digest: str, description: dict[str, Any]) -> None:
    if digest_of(description) != digest:
        raise ValueError(f"what the digest {digest} describes has changed")


ReplayKind: TypeAlias = Literal["trigger", "seed"]
"""A triggering input of a campaign, or a seed input on which the models agreed."""


class ReplayResult(NamedTuple):
    """One device's last answer to an input: whether it deviated, and its label or text."""

    deviated: bool
    deployed_label: int | None
    deployed_text: str | None = None


def _or_none(looks: Any) -> Any:
    return looks or {}  # earlier versions stored null


def trigger_id(seed_id: str, replica: str) -> str:
    """Return the id of the triggering input that was found from a seed (by this replica)."""
    return f"trigger:{seed_id}@{replica}" if replica else f"trigger:{seed_id}"


@dataclass(frozen=True, kw_only=True)
class PairOnInput(LabelledInput):
    """An input and what both models decided on it.

    `id` is unique among the inputs of a replay, and the same in every replay. `seed_id` names the
    seed input in its own campaign. `l2` is the distance to the seed input, as `edgeflare.metrics`
    has it. `sample` is the digest of the sample.
    """

    id: str
    l2: float | None = None
    sample: str = ""


@dataclass(frozen=True, kw_only=True)
class InputOfReplay(PairOnInput):
    """An input that is sent again. `deviated`: it did when it was last sent.

    Both texts are those that models return, None of class models.
    """

    kind: ReplayKind
    deviated: bool
    original_text: str | None = None
    deployed_text: str | None = None


@dataclass(frozen=True, kw_only=True)
class ReplayInput(InputOfReplay):
    """An input to be sent to both models again; a replay stores all of it but `sample`.

    `deviated` is of the device `replica` where that isn't ""; both labels, or both texts, are of that
    time. `label` is the seed input's class where that is known. `looks` has each device's last
    answer, by its name, where there is one; the latest comes last.
    """

    label: int | None = None
    looks: Annotated[Mapping[str, ReplayResult], BeforeValidator(_or_none)] = field(
        default_factory=dict
    )
    sample: Annotated[str, Field(exclude=True)] = ""

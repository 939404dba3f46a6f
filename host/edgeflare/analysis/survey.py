"""A campaign's survey in figures: how often the device decides differently far from the seeds."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from edgeflare._internal.records import JsonRecord
from edgeflare.answers import AnswerKind
from edgeflare.answers.metrics import difference_text, text_of, top_label
from edgeflare.campaign.survey.inputs import SurveyInputs
from edgeflare.statistics import clustered_interval
from edgeflare.store import Store, SurveyRecord
from edgeflare.store.records import OfSeed
from edgeflare.survey import SEVERITIES
from edgeflare.types import Decision

_WORST = 10


@dataclass(frozen=True)
class Rate:
    """How many of some inputs are confident deviations.

    `inputs` were made from so many `seeds`; equal ones count once, for the first seed. `low` and
    `high` bound the rate with 95 % confidence, two-sided; that inputs of one seed are alike is
    taken into account, see `edgeflare.statistics.clustered_interval`.
    """

    deviations: int
    inputs: int
    seeds: int
    rate: float
    low: float
    high: float


@dataclass(frozen=True)
class FamilyFigures:
    """The figures of one family of inputs; `group` is what it has in common with others.

    `mean_distance` is the mean total variation of both models' answers, of transcripts the mean
    share of words that differ; None of labels without scores.
    """

    family: str
    group: str
    rate: Rate
    mean_distance: float | None


@dataclass(frozen=True)
class SeverityFigures:
    """The figures of one severity, 1 to 5, over all families; or of those of one `group`."""

    severity: int
    group: str
    rate: Rate
    mean_distance: float | None


@dataclass(frozen=True)
class DeviceRate:
    """The rate of a device that surveyed for itself."""

    device: str
    rate: Rate


@dataclass(frozen=True)
class CellCounts:
    """The inputs of one family and severity, and how many are confident deviations."""

    family: str
    severity: int
    deviations: int
    inputs: int


@dataclass(frozen=True)
class SurveyedInput(OfSeed):
    """One input of the survey; both labels are class indices, of transcripts there are texts.

    `words` say how it was made from the seed. `sample` is its digest, `number` its place among the
    inputs of its seed. `distance` is the `edgeflare.metrics.disagreement` of both answers.
    `difference` has what differs in words, of detections and of values.
    """

    number: int
    family: str
    severity: int
    words: str
    confident_deviation: bool
    original_label: int | None
    deployed_label: int | None
    original_text: str | None
    deployed_text: str | None
    original_margin: float | None
    deployed_margin: float | None
    distance: float | None
    sample: str
    detail: str = ""
    difference: str | None = None


@dataclass(frozen=True)
class SurveyFigures(JsonRecord):
    """What a survey found so far.

    `overall` is the rate of confident deviations among all inputs that both models answered: each
    is one at which the original's margin is at least `sure`. `by_family` has the families in order
    of their rates, the largest first; `others` is the rate of all families without a deviation
    together. `by_severity` is over all families, `by_group` the same for each group of families
    that has a deviation. `by_device` has a rate for each device that surveyed for itself.

    `mean_total_variation` is that of both models' probabilities, `mean_word_difference` the mean
    share of words that differ in two transcripts, `mean_difference` the mean distance of detections
    or values (`edgeflare.metrics.disagreement`); None where they have none. `nonfinite` counts the
    confident deviations with NaN or infinity, `unstable` the deviations that did not repeat,
    `failed` the inputs on which the deployed model can't answer; the latter two are no confident
    deviations, and failed ones are not among the inputs. `repeated` counts inputs that are equal
    to one before, such as an all-white image from another seed; they are left out of all else.

    `seeds` were surveyed, of `seeds_in_all`; from `seeds_unsure` of them no input was made at which
    the original is sure, on those of `seeds_failed` it can't answer. `queries` counts those of the device by kind, and the inputs given to the
    original alone. `worst` are the confident deviations with the largest margins, then the inputs
    with the largest distance of both answers.
    """

    overall: Rate | None
    by_family: tuple[FamilyFigures, ...]
    others: Rate | None
    by_severity: tuple[SeverityFigures, ...]
    by_group: tuple[SeverityFigures, ...]
    by_cell: tuple[CellCounts, ...]
    by_device: tuple[DeviceRate, ...]
    mean_total_variation: float | None
    mean_word_difference: float | None
    nonfinite: int
    unstable: int
    failed: int
    seeds: int
    seeds_in_all: int
    seeds_unsure: int
    sure: float
    queries: dict[str, int]
    worst: tuple[SurveyedInput, ...]
    repeated: int = 0
    seeds_failed: int = 0
    mean_difference: float | None = None

    @property
    def finished(self) -> bool:
        """Whether every seed was surveyed."""
        return self.seeds >= self.seeds_in_all


def survey_figures(store: Store) -> SurveyFigures | None:
    """Return the figures of a campaign's survey; None where it has none. Raises StoreError."""
    counts = store.survey_counts("survey")
    if not counts.seeds:
        return None
    inputs = _Inputs(store)
    every, families = inputs.part(), inputs.families()
    agreeing = [name for name, part in families.items() if not part.found]
    unsure, failed = store.columns.unsure_seeds()
    answered = sum(store.columns.answered_seeds(one) for one in store.state.replicas)
    means = {inputs.kind.distance_name: every.mean_distance}
    return SurveyFigures(
        overall=every.rate if every.inputs else None,
        by_family=tuple(
            sorted(
                (
                    FamilyFigures(name, inputs.group(name), part.rate, part.mean_distance)
                    for name, part in families.items()
                ),
                key=lambda one: (-one.rate.rate, -(one.mean_distance or 0.0), one.family),
            )
        ),
        others=inputs.part(families=agreeing).rate if agreeing else None,
        by_severity=tuple(
            SeverityFigures(one, "", part.rate, part.mean_distance)
            for one in SEVERITIES
            if (part := inputs.part(severity=one)).inputs
        ),
        by_group=tuple(inputs.by_group(families)),
        by_cell=tuple(
            CellCounts(name, severity, part.found, part.inputs)
            for name, severity in product(sorted(families), SEVERITIES)
            if (part := inputs.part(families=[name], severity=severity)).inputs
        ),
        by_device=tuple(inputs.by_device()),
        mean_total_variation=means.get("total_variation"),
        mean_word_difference=means.get("word_difference"),
        nonfinite=inputs.count(Decision.NONFINITE, confident=True),
        unstable=inputs.count(Decision.DEVIATION, Decision.NONFINITE, confident=False),
        failed=inputs.failed,
        seeds=counts.seeds,
        seeds_in_all=max(answered, counts.seeds),
        seeds_unsure=unsure,
        sure=float((store.campaign.get("survey") or {}).get("sure", 0.0)),
        queries={
            "survey": counts.survey,
            "confirmation": counts.confirmation,
            "host_only": counts.host_only,
        },
        worst=tuple(inputs.worst(_WORST)),
        repeated=inputs.repeated,
        seeds_failed=failed,
        mean_difference=means.get("difference"),
    )


class _Part(NamedTuple):
    """Some inputs: whether each deviates, the place of its seed, its distance; NaN: none."""

    deviates: NDArray[np.bool_]
    seed: NDArray[np.int64]
    distance: NDArray[np.float64]

    @property
    def inputs(self) -> int:
        return len(self.seed)

    @property
    def found(self) -> int:
        return int(self.deviates.sum())

    @property
    def rate(self) -> Rate:
        totals = np.bincount(self.seed)
        found = np.bincount(self.seed, self.deviates, len(totals)).astype(np.int64)
        some = totals > 0
        low, high = clustered_interval(found[some].tolist(), totals[some].tolist())
        rate = self.found / self.inputs
        return Rate(self.found, self.inputs, int(some.sum()), rate, low, high)

    @property
    def mean_distance(self) -> float | None:
        known = self.distance[~np.isnan(self.distance)]
        return float(np.mean(known)) if known.size else None


class _Inputs:
    """The inputs of a survey, and parts of those that count: answered ones, each once."""

    def __init__(self, store: Store) -> None:
        self._store, self._inputs = store, SurveyInputs(store)
        columns = self._columns = store.columns.survey("survey")
        self.kind = store.kind
        self._distance = columns.total_variation
        if self.kind.distance_name != "total_variation":  # the column has that alone
            apart = [one.disagreement for one in store.survey(phase="survey")]
            self._distance = np.array(apart, np.float64)
        self._counted = ~(columns.repeated | columns.decision.among(Decision.UNDECIDED))
        self.repeated = int(columns.repeated.sum())
        self.failed = len(columns.repeated) - self.repeated - int(self._counted.sum())

    def part(self, *, families: Sequence[str] | None = None, severity: int | None = None) -> _Part:
        chosen = self._counted
        if families is not None:
            chosen = chosen & self._columns.family.among(*families)
        if severity is not None:
            chosen = chosen & (self._columns.severity == severity)
        return self._part(chosen)

    def families(self) -> dict[str, _Part]:
        parts = {one: self.part(families=[one]) for one in self._columns.family.names}
        return {name: part for name, part in parts.items() if part.inputs}

    def by_group(self, families: Mapping[str, _Part]) -> Iterator[SeverityFigures]:
        groups: dict[str, list[str]] = {}
        for name in families:
            groups.setdefault(self.group(name), []).append(name)
        for group, names in sorted(groups.items()):
            for severity in SEVERITIES if any(families[one].found for one in names) else ():
                if (part := self.part(families=names, severity=severity)).inputs:
                    yield SeverityFigures(severity, group, part.rate, part.mean_distance)

    def by_device(self) -> Iterator[DeviceRate]:
        for name in sorted(self._columns.replica.names):
            part = self._part(self._counted & self._columns.replica.among(name))
            if name and part.inputs:
                yield DeviceRate(name, part.rate)

    def count(self, *decisions: Decision, confident: bool) -> int:
        this = self._columns.confident_deviation == confident
        return int((self._counted & this & self._columns.decision.among(*decisions)).sum())

    def worst(self, most: int) -> Iterator[SurveyedInput]:
        """Yield confident deviations by their margin, then others by their distance."""
        confident = self._columns.confident_deviation
        smaller = np.fmin(self._columns.original_margin, self._columns.deployed_margin)
        size = np.nan_to_num(np.where(confident, smaller, self._distance))
        rows = np.flatnonzero(self._counted)
        rows = rows[np.lexsort((-size[rows], ~confident[rows]))][:most]
        records = self._store.survey_at(self._columns.position[np.sort(rows)].tolist())
        found = dict(zip(np.sort(rows).tolist(), records, strict=True))
        return (surveyed_input(found[row], self._inputs, self.kind) for row in rows.tolist())

    def group(self, family: str) -> str:
        known = self._inputs.families.get(family)
        return "plugin" if known is None else known.group

    def _part(self, chosen: NDArray[np.bool_]) -> _Part:
        columns = self._columns
        return _Part(
            columns.confident_deviation[chosen], columns.seed[chosen], self._distance[chosen]
        )


def surveyed_input(one: SurveyRecord, inputs: SurveyInputs, kind: AnswerKind[Any]) -> SurveyedInput:
    """Return what reports show of an input."""
    return SurveyedInput(
        seed_id=one.seed_id,
        replica=one.replica,
        number=one.number,
        family=one.family,
        severity=one.severity,
        words=inputs.words(one),
        confident_deviation=one.confident_deviation,
        original_label=top_label(one.original),
        deployed_label=top_label(one.deployed),
        original_text=text_of(one.original),
        deployed_text=text_of(one.deployed),
        original_margin=one.original_margin,
        deployed_margin=one.deployed_margin,
        distance=one.disagreement if kind.is_scored else None,
        sample=one.sample,
        detail=one.detail,
        difference=difference_text(one.original, one.deployed),
    )

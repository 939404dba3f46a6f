"""A campaign's survey in figures: how often the device decides differently far from the seeds."""

import heapq
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, NamedTuple

from edgeflare.campaign.survey.inputs import SurveyInputs
from edgeflare.metrics import text_of, top_label
from edgeflare.oracles import Margins
from edgeflare.statistics import clustered_interval, mean
from edgeflare.store import Store, SurveyRecord
from edgeflare.survey import SEVERITIES
from edgeflare.types import Decision, Transcript

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
class SurveyedInput:
    """One input of the survey; both labels are class indices, of transcripts there are texts.

    `words` say how it was made from the seed. `sample` is its digest, `number` its place among the
    inputs of its seed. `distance` is the total variation, of transcripts the share of words.
    """

    seed_id: str
    replica: str
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


@dataclass(frozen=True)
class SurveyFigures:
    """What a survey found so far.

    `overall` is the rate of confident deviations among all inputs that both models answered: each
    is one at which the original's margin is at least `sure`. `by_family` has the families in order
    of their rates, the largest first; `others` is the rate of all families without a deviation
    together. `by_severity` is over all families, `by_group` the same for each group of families
    that has a deviation. `by_device` has a rate for each device that surveyed for itself.

    `mean_total_variation` is that of both models' probabilities, `mean_word_difference` the mean
    share of words that differ in two transcripts; None where they have none. `nonfinite` counts the
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

    @property
    def finished(self) -> bool:
        """Whether every seed was surveyed."""
        return self.seeds >= self.seeds_in_all

    def to_json(self) -> dict[str, Any]:
        """Return a JSON object with the same names."""
        return asdict(self)


def survey_figures(store: Store) -> SurveyFigures | None:
    """Return the figures of a campaign's survey; None where it has none. Raises StoreError."""
    counts = store.survey_counts("survey")
    config = store.campaign.get("survey") or {}
    if not counts.seeds:
        return None
    inputs = SurveyInputs(store)
    figures = _Counting(inputs)
    for one in store.survey(phase="survey"):
        figures.add(one)
    runs = [one for one in store.surveyed_seeds() if one.phase == "survey"]
    without = {(one.replica, one.seed_id) for one in runs if not one.detail} - figures.asked
    replicas = store.fact("replicas") or [""]
    answered = sum(
        seed.outputs is not None for replica in replicas for seed in store.seeds(replica)
    )
    return figures.figures(
        seeds=counts.seeds,
        seeds_in_all=max(answered, counts.seeds),
        seeds_unsure=len(without),
        seeds_failed=sum(bool(one.detail) for one in runs),
        sure=float(config.get("sure", 0.0)),
        queries={
            "survey": counts.survey,
            "confirmation": counts.confirmation,
            "host_only": counts.host_only,
        },
    )


@dataclass
class _Sum:
    """Counts of some inputs by the seed that they were made from."""

    inputs: Counter[str] = field(default_factory=Counter)
    deviations: Counter[str] = field(default_factory=Counter)
    distances: list[float] = field(default_factory=list)

    def add(self, one: SurveyRecord, distance: float | None) -> None:
        self.inputs[one.seed_id] += 1
        self.deviations[one.seed_id] += one.confident_deviation
        if distance is not None:
            self.distances.append(distance)

    def __add__(self, other: "_Sum") -> "_Sum":
        return _Sum(
            self.inputs + other.inputs,
            self.deviations + other.deviations,
            self.distances + other.distances,
        )

    @property
    def rate(self) -> Rate:
        found, total = self.deviations.total(), self.inputs.total()
        low, high = clustered_interval(
            [self.deviations[seed] for seed in self.inputs], list(self.inputs.values())
        )
        return Rate(found, total, len(self.inputs), found / total, low, high)

    @property
    def mean_distance(self) -> float | None:
        return mean(self.distances)


class _Key(NamedTuple):
    """How bad an input is: confident deviations by their margin, then others by their distance."""

    confident: bool
    size: float
    order: tuple[str, str, int]


class _Counting:
    """Counts the answers of a survey one by one."""

    def __init__(self, inputs: SurveyInputs) -> None:
        self._inputs = inputs
        self._families: defaultdict[str, _Sum] = defaultdict(_Sum)
        self._severities: defaultdict[int, _Sum] = defaultdict(_Sum)
        self._groups: defaultdict[tuple[str, int], _Sum] = defaultdict(_Sum)
        self._cells: defaultdict[tuple[str, int], Counter[str]] = defaultdict(Counter)
        self._devices: defaultdict[str, _Sum] = defaultdict(_Sum)
        self._all = _Sum()
        self._speech = False
        self._kinds: Counter[str] = Counter()
        self._worst: list[tuple[_Key, SurveyRecord]] = []
        self._samples: set[tuple[str, str]] = set()
        self.asked: set[tuple[str, str]] = set()

    def add(self, one: SurveyRecord) -> None:
        """Count an answer."""
        self.asked.add((one.replica, one.seed_id))
        if (one.replica, one.sample) in self._samples:
            self._kinds["repeated"] += 1
            return
        self._samples.add((one.replica, one.sample))
        if one.decision is Decision.UNDECIDED:
            self._kinds["failed"] += 1
            return
        self._kinds["nonfinite"] += one.confident_deviation and one.decision is Decision.NONFINITE
        self._kinds["unstable"] += not one.confident_deviation and one.decision in (
            Decision.DEVIATION,
            Decision.NONFINITE,
        )
        self._speech = self._speech or isinstance(one.original, Transcript)
        distance = one.disagreement if self._speech else one.total_variation
        cell = self._cells[one.family, one.severity]
        cell.update(inputs=1, deviations=int(one.confident_deviation))
        for part in (
            self._all,
            self._families[one.family],
            self._severities[one.severity],
            self._groups[self._group(one.family), one.severity],
            *([self._devices[one.replica]] if one.replica else []),
        ):
            part.add(one, distance)
        margins = Margins(one.original_margin, one.deployed_margin)
        size = margins.smaller if one.confident_deviation else distance
        key = _Key(one.confident_deviation, size or 0.0, (one.seed_id, one.replica, -one.number))
        heapq.heappush(self._worst, (key, one))  # keys differ: records are never compared
        if len(self._worst) > _WORST:
            heapq.heappop(self._worst)

    def figures(
        self,
        *,
        seeds: int,
        seeds_in_all: int,
        seeds_unsure: int,
        seeds_failed: int,
        sure: float,
        queries: Mapping[str, int],
    ) -> SurveyFigures:
        """Return the figures of what was counted."""
        means = self._all.mean_distance
        agreeing = [part for part in self._families.values() if not part.deviations.total()]
        return SurveyFigures(
            overall=self._all.rate if self._all.inputs else None,
            by_family=tuple(self._by_family()),
            others=sum(agreeing[1:], agreeing[0]).rate if agreeing else None,
            by_severity=tuple(
                SeverityFigures(one, "", part.rate, part.mean_distance)
                for one in SEVERITIES
                if (part := self._severities.get(one))
            ),
            by_group=tuple(self._by_group()),
            by_cell=tuple(
                CellCounts(*cell, counts["deviations"], counts["inputs"])
                for cell, counts in sorted(self._cells.items())
            ),
            by_device=tuple(
                DeviceRate(name, part.rate) for name, part in sorted(self._devices.items())
            ),
            mean_total_variation=None if self._speech else means,
            mean_word_difference=means if self._speech else None,
            nonfinite=self._kinds["nonfinite"],
            unstable=self._kinds["unstable"],
            failed=self._kinds["failed"],
            seeds=seeds,
            seeds_in_all=seeds_in_all,
            seeds_unsure=seeds_unsure,
            sure=sure,
            queries=dict(queries),
            worst=tuple(
                surveyed_input(one, self._inputs) for _, one in sorted(self._worst, reverse=True)
            ),
            repeated=self._kinds["repeated"],
            seeds_failed=seeds_failed,
        )

    def _by_family(self) -> list[FamilyFigures]:
        found = [
            FamilyFigures(name, self._group(name), part.rate, part.mean_distance)
            for name, part in self._families.items()
        ]
        return sorted(
            found, key=lambda one: (-one.rate.rate, -(one.mean_distance or 0.0), one.family)
        )

    def _by_group(self) -> Iterator[SeverityFigures]:
        deviating = {group for (group, _), part in self._groups.items() if part.deviations.total()}
        for (group, severity), part in sorted(self._groups.items()):
            if group in deviating:
                yield SeverityFigures(severity, group, part.rate, part.mean_distance)

    def _group(self, family: str) -> str:
        known = self._inputs.families.get(family)
        return "plugin" if known is None else known.group


def surveyed_input(one: SurveyRecord, inputs: SurveyInputs) -> SurveyedInput:
    """Return what reports show of an input."""
    speech = isinstance(one.original, Transcript)
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
        distance=one.disagreement if speech else one.total_variation,
        sample=one.sample,
        detail=one.detail,
    )

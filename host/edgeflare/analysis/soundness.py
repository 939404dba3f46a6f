"""Whether a deployed model is worse than healthy references of the same original.

All are compared on the same inputs of the survey, on which the original is sure. The drift of a
model on an input is the total variation distance of its answer from the original's.
"""

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import cycle, islice
from typing import Any, ClassVar, Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from edgeflare._internal import exact
from edgeflare._internal.records import JsonRecord
from edgeflare.answers.parts import worded
from edgeflare.campaign.pair.health import UnusableAnswers
from edgeflare.statistics import binomial_tail, clustered_interval, holm, wilson
from edgeflare.types import Issue

SoundnessVerdict: TypeAlias = Literal["sound", "worse", "cannot-tell"]


EvidenceCode: TypeAlias = Literal[
    "unusable",
    "unhealthy",
    "own",
    "left-out",
    "disagreement",
    "poor-original",
    "many-flips",
    "more-flips",
    "not-asked",
    "unexplained",
    "excess",
    "parts",
    "more-inputs",
    "too-few",
]
"""What a verdict rests on, each with its own fields of `Soundness`."""
EXCESS_MARGIN = 0.025
"""A healthy model's excess drift may be larger than a reference's by this, or twice as large."""
RATE_MARGIN = 0.03
"""Sound needs an unexplained rate below this, or below twice the worst reference's."""
_FACTOR = 2.0
"""A healthy model may have this many times a reference's excess drift, unexplained deviations or flips."""
LEAST_FALL = 5
"""So many inputs fewer that are right, or more that are decided otherwise, are worse than chance:
of models that are alike, each input that tells them apart falls on either side, 1 of 32 times all
five on one."""
_LARGE = 0.25
"""Least excess drift of an unexplained deviation; one that moves little lies at a boundary."""
_SHARES = {"excess": 0.4, "unexplained": 0.4, "parts": 0.2}
"""How the probability of a wrong "worse" is divided among the kinds of evidence."""
_LEAST_SEEDS = 8
"""A family or severity is judged for itself from so many seeds on."""
FEWEST_SEEDS = 10
_DRAWS = 4000
_DRAWN_AT_ONCE = 1 << 15
_MOST_FACTOR = 50

_Drifts: TypeAlias = NDArray[np.float64]
_Flags: TypeAlias = NDArray[np.bool_]


class SurveyScores(NamedTuple):
    """What one model does on N inputs of a survey, in the same order for all models.

    `seed_ids`, `families`, `severities`: of each input. `total_variation`: float64 [N], 0 to 1, of
    the model's answer from the original's; NaN where answers have no probabilities. `deviates`:
    bool [N], whether the two decide differently.
    """

    seed_ids: Sequence[str]
    families: Sequence[str]
    severities: Sequence[int]
    total_variation: NDArray[np.float64]
    deviates: NDArray[np.bool_]


@dataclass(frozen=True)
class OwnFigures:
    """What one model does on the seeds as they are, beside the original.

    On `flips` of `inputs` it decides otherwise, answers NaN or infinity or, on `failed` of them, not
    at all; inputs on which the original is not finite are left out, and a tie of the original is no
    flip. Of `labelled` inputs `original_right` and `right` are each model's right answers; a tie is
    none. `failed_labelled` of `failed` have a label. `lost` are right by the original alone, `won` by this model alone.
    """

    inputs: int = 0
    flips: int = 0
    failed: int = 0
    labelled: int = 0
    original_right: int = 0
    right: int = 0
    lost: int = 0
    won: int = 0
    failed_labelled: int = 0

    @property
    def fall(self) -> int:
        """Labelled inputs right by the original and not by this model, less the reverse."""
        return self.lost - self.won + self.failed_labelled

    @property
    def least_flips(self) -> float:
        """The lower bound of 95 % of the share of flips on inputs like these."""
        return wilson(self.flips, self.inputs)[0] if self.inputs else 0.0

    def has_more_flips(self, reference_flips: Collection[int]) -> bool:
        """Whether it has more than twice as many flips as each reference, and five more."""
        most = max(reference_flips, default=self.flips)
        return self.flips > _FACTOR * most and self.flips - most >= LEAST_FALL


@dataclass(frozen=True)
class Soundness(JsonRecord):
    """Whether a deployed model is worse than its healthy references, and why.

    `verdict`: "sound": no worse than the references by more than the stated margins; "worse";
    "cannot-tell": too little is known. Each at `confidence`. `reasons`: what it rests on, the most
    important one first; `evidence` has a sentence of each.

    `drift` and `reference_drift` are mean total variation distances, of the deployed model and of
    `worst_reference`. `excess` is the root mean square of how much farther the deployed model
    drifts than every reference, input by input, with `excess_low` and `excess_high` as its bounds,
    each on its side at `confidence`; `reference_excess` is the largest such figure of a reference
    against the others, `allowed_excess` what a healthy model may have. All of these are from 0 to
    1, and None without probabilities. `unexplained` counts inputs on which the deployed model
    deviates, far from every reference, while all references agree with the original;
    `reference_unexplained` is the largest such count of a reference against the others;
    `unexplained_high` is the upper bound of the rate. `parts` names the families and severities in
    which the model is worse. `more_inputs`: about how many inputs more might tell; None where that
    is no question, or nobody can say. `devices`: of so many devices that surveyed for themselves,
    each judged alone at `confidence`, this is the one with the worst verdict.

    `own`: what the deployed model does on the seeds as they are, which comes before the survey:
    where it fell there it is worse; `own_references`: the same of the references that were asked
    about them, by name. `left_out`: those that fell there as well; they are not among `references`,
    which there may be none of then.

    `static` counts the references whose excess drift enlarges what is allowed. `replica` is the
    device that was judged, "" where there is one verdict for all. `unusable`: whose answers can't be
    used; `unhealthy`: the references that were themselves judged worse than theirs; `disagreement`:
    why both models differ more on the seeds than compression explains.
    """

    verdict: SoundnessVerdict
    confidence: float
    reasons: tuple[EvidenceCode, ...]
    inputs: int
    seeds: int
    references: tuple[str, ...]
    drift: float | None = None
    reference_drift: float | None = None
    worst_reference: str | None = None
    excess: float | None = None
    excess_low: float | None = None
    excess_high: float | None = None
    reference_excess: float | None = None
    allowed_excess: float | None = None
    unexplained: int = 0
    reference_unexplained: int = 0
    unexplained_high: float | None = None
    parts: tuple[str, ...] = ()
    more_inputs: int | None = None
    devices: int = 1
    own: OwnFigures | None = None
    own_references: dict[str, OwnFigures] = field(default_factory=dict)
    left_out: tuple[str, ...] = ()
    static: int = 0
    replica: str = ""
    unusable: UnusableAnswers | None = None
    unhealthy: tuple[str, ...] = ()
    disagreement: Issue | None = None

    words = worded("soundness:soundness_words")
    """The verdict in words, without the evidence."""
    evidence = worded("soundness:evidence_words")
    """The reasons, a sentence each."""
    json_instead: ClassVar = {
        "reasons": "evidence",
        **dict.fromkeys(("static", "replica", "unusable", "unhealthy", "disagreement"), ""),
    }


def judge(
    deployed: SurveyScores,
    references: Mapping[str, SurveyScores],
    *,
    confidence: float = 0.95,
    explaining: Collection[str] = (),
) -> Soundness:
    """Return whether the deployed model is worse than every healthy reference.

    The excess drift of a model on an input is how much farther it drifts than all references; that
    of a reference is taken against the others, of a single one against the deployed model. A model
    may have up to twice the excess of the worst reference, or `EXCESS_MARGIN` more. `explaining`
    names references that explain drift and deviations like the others, but whose own don't enlarge
    what is allowed (unless there are no others): those of another kind than the rest, such as
    dynamic int8 beside static.

    "worse" needs, at the stated confidence, one of: more excess drift than allowed, over all inputs
    or within one family or severity (adjusted for their number by Holm, 1979); more unexplained
    deviations than twice the worst reference's. "sound" needs the upper bounds of the excess and of
    the unexplained rate to lie below what is allowed. Inputs of a seed are alike, so seeds are
    resampled whole (cluster bootstrap, always the same draws), and an unexplained deviation counts
    once a seed.

    Raises ValueError without references, or where a reference has other inputs than the deployed
    model.
    """
    if not references:
        raise ValueError("a verdict needs a healthy reference at least")
    if any(
        list(reference.seed_ids) != list(deployed.seed_ids) for reference in references.values()
    ):
        raise ValueError("the references were asked about other inputs than the deployed model")
    return _Judgement(deployed, references, confidence, explaining).result()


class _Excess(NamedTuple):
    """Root mean square excess drifts and bounds; `above` are those of excess less allowed, and `p`
    is that it isn't above what is allowed."""

    deployed: float
    low: float
    high: float
    reference: float
    allowed: float
    above: tuple[float, float]
    p: float


class _Unexplained(NamedTuple):
    """Numbers of unexplained deviations, the bound of the rate, and what is allowed of that."""

    inputs: int
    reference: int
    rate_high: float
    allowed_rate: float
    p: float


class _Judgement:
    """One judgement. Row 0 of the arrays is the deployed model, the others are the references."""

    def __init__(
        self,
        deployed: SurveyScores,
        references: Mapping[str, SurveyScores],
        confidence: float,
        explaining: Collection[str],
    ) -> None:
        models = [deployed, *references.values()]
        self._names = tuple(references)
        self._rows = [row for row, name in enumerate(references, 1) if name not in explaining]
        self._rows = self._rows or [*range(1, len(models))]
        self._about = deployed
        self._confidence = confidence
        self._drifts = np.array([model.total_variation for model in models], np.float64)
        self._deviates = np.array([model.deviates for model in models], np.bool_)
        self._inputs = len(deployed.seed_ids)
        self._has_drift = not np.isnan(self._drifts).any()
        _, self._seed = np.unique(np.asarray(deployed.seed_ids, np.str_), return_inverse=True)
        self._seeds = int(self._seed.max(initial=-1)) + 1
        self._excess, self._unexplained = self._against_others()

    def result(self) -> Soundness:
        if self._seeds < FEWEST_SEEDS:
            return self._too_few()
        excesses = self._excesses() if self._has_drift else {}
        excess = excesses.get("")
        unexplained = self._count_unexplained()
        parts = self._worse_parts(excesses)
        alpha = 1 - self._confidence
        by_excess = excess is not None and excess.p <= alpha * _SHARES["excess"]
        by_count = unexplained.p <= alpha * _SHARES["unexplained"]
        verdict: SoundnessVerdict = "cannot-tell"
        if by_excess or by_count or parts:
            verdict = "worse"
        elif (excess is None or excess.above[1] <= 0) and (
            unexplained.rate_high <= unexplained.allowed_rate
        ):
            verdict = "sound"
        more = self._more_inputs(excess, unexplained) if verdict == "cannot-tell" else None
        decides: dict[EvidenceCode, bool] = {"unexplained": by_count}
        decides |= {} if excess is None else {"excess": by_excess}
        decides |= {"parts": True} if parts else {}
        reasons = tuple(sorted(decides, key=lambda reason: not decides[reason]))
        if verdict == "cannot-tell":
            reasons = (*reasons, "more-inputs")
        found = Soundness(
            verdict,
            self._confidence,
            reasons,
            self._inputs,
            self._seeds,
            self._names,
            static=len(self._rows),
            unexplained=unexplained.inputs,
            reference_unexplained=unexplained.reference,
            unexplained_high=unexplained.rate_high,
            parts=parts,
            more_inputs=more,
        )
        if excess is None:
            return found
        means = self._drifts.mean(axis=1)
        worst = int(np.argmax(means[1:]))
        return replace(
            found,
            drift=float(means[0]),
            reference_drift=float(means[1 + worst]),
            worst_reference=self._names[worst],
            excess=excess.deployed,
            excess_low=excess.low,
            excess_high=excess.high,
            reference_excess=excess.reference,
            allowed_excess=excess.allowed,
        )

    def _too_few(self) -> Soundness:
        return Soundness(
            "cannot-tell", self._confidence, ("too-few",), self._inputs, self._seeds, self._names
        )

    def _against_others(self) -> tuple[_Drifts, _Flags]:
        """Return each model's excess drift on each input, and where it deviates unexplained."""
        count = len(self._deviates)
        drifts = self._drifts if self._has_drift else self._deviates.astype(np.float64)
        excess = np.zeros(drifts.shape)
        unexplained = np.zeros(drifts.shape, np.bool_)
        for model in range(count):
            others = [one for one in range(1, count) if one != model] or [0]
            excess[model] = np.maximum(drifts[model] - drifts[others].max(axis=0), 0.0)
            alone = self._deviates[model] & ~self._deviates[others].any(axis=0)
            unexplained[model] = alone & (excess[model] >= _LARGE)
        return excess, unexplained

    def _excesses(self) -> dict[str, _Excess]:
        """Return the excess drifts over all inputs ("") and over each family and severity."""
        groups = dict(self._groups())
        weights = [np.ones(self._inputs), *np.square(self._excess)]
        sums: _Drifts = np.stack(
            [
                np.bincount(self._seed[group], row[group], minlength=self._seeds)
                for group in groups.values()
                for row in weights
            ],
            axis=1,
        )
        shape = (-1, len(groups), len(weights))
        whole = _root_means(sums.sum(axis=0).reshape(shape))[0]
        resampled = _root_means(_resampled_sums(sums).reshape(shape))
        return {
            name: self._excess_of(whole[place], resampled[:, place])
            for place, name in enumerate(groups)
        }

    def _excess_of(self, whole: _Drifts, resampled: _Drifts) -> _Excess:
        """Return the figures of one group, from the excesses of the models, and as resampled."""
        above = resampled[:, 0] - _allowed(resampled[:, self._rows].max(axis=1))
        outside = (1 - self._confidence, self._confidence)
        reference = float(whole[self._rows].max())
        low, high = np.quantile(resampled[:, 0], outside)
        least, most = np.quantile(above, outside)
        return _Excess(
            float(whole[0]),
            float(low),
            float(high),
            reference,
            float(_allowed(reference)),
            (float(least), float(most)),
            (1 + int(np.count_nonzero(above <= 0))) / (1 + _DRAWS),
        )

    def _count_unexplained(self) -> _Unexplained:
        """Count unexplained deviations; each reference as if it were like the worst of them."""
        seeds, *others = (
            int(np.unique(self._seed[row]).size) for row in self._unexplained[[0, *self._rows]]
        )
        known, reference = len(others), max(others)
        share = _FACTOR / (_FACTOR + known)
        count = int(self._unexplained[0].sum())
        allowed = max(RATE_MARGIN, _FACTOR * reference / self._inputs)
        p = binomial_tail(seeds, seeds + known * reference, share)
        return _Unexplained(count, reference, self._rate_bound(), allowed, p)

    def _rate_bound(self, factor: float = 1.0) -> float:
        """Return the upper bound of the unexplained rate, were there `factor` times the seeds."""
        totals = np.bincount(self._seed, minlength=self._seeds).tolist()
        found = np.bincount(self._seed, self._unexplained[0], minlength=self._seeds).tolist()
        count = round(factor * self._seeds)
        groups = list(islice(cycle(zip(found, totals, strict=True)), count))
        successes, trials = zip(*groups, strict=True)
        return clustered_interval(successes, trials, level=2 * self._confidence - 1)[1]

    def _worse_parts(self, excesses: Mapping[str, _Excess]) -> tuple[str, ...]:
        """Return the families and severities in which the deployed model is worse."""
        names = [name for name in excesses if name]
        ps = holm([excesses[name].p for name in names])
        most = (1 - self._confidence) * _SHARES["parts"]
        return tuple(name for name, p in zip(names, ps, strict=True) if p <= most)

    def _groups(self) -> Iterator[tuple[str, _Flags]]:
        families, severities = map(np.asarray, (self._about.families, self._about.severities))
        yield "", np.ones(self._inputs, np.bool_)
        groups = [(str(name), families == name) for name in np.unique(families)]
        groups += [(f"severity {one}", severities == one) for one in np.unique(severities)]
        for name, chosen in groups:
            if np.unique(self._seed[chosen]).size >= _LEAST_SEEDS:
                yield name, chosen

    def _more_inputs(self, excess: _Excess | None, unexplained: _Unexplained) -> int | None:
        """Return about how many inputs more might tell, were their answers like those so far."""
        factor = 1.0
        if excess is not None and excess.above[1] > 0:
            distance = excess.deployed - excess.allowed
            half = excess.above[1] - distance if distance < 0 else distance - excess.above[0]
            factor = max(1.0, (half / distance) ** 2) if distance else math.inf
        rate = unexplained.inputs / self._inputs
        while (
            factor <= _MOST_FACTOR
            and rate < unexplained.allowed_rate
            and self._rate_bound(factor) > unexplained.allowed_rate
        ):
            factor *= 1.1
        if factor > _MOST_FACTOR:
            return None
        return max(1, math.ceil((factor - 1) * self._inputs))


def _resampled_sums(sums: _Drifts) -> _Drifts:
    """Return the sums over resampled seeds, [draws, M], of what each seed has, [seeds, M]."""
    seeds = len(sums)
    generator = np.random.default_rng(0)
    rows = max(1, _DRAWN_AT_ONCE // seeds)
    parts = []
    for start in range(0, _DRAWS, rows):
        drawn = generator.integers(seeds, size=(min(rows, _DRAWS - start), seeds))
        drawn += np.arange(len(drawn))[:, None] * seeds
        counts = np.bincount(drawn.ravel(), minlength=drawn.size).reshape(drawn.shape)
        parts.append(exact.matmul(counts.astype(np.float64), sums))
    return np.concatenate(parts)


def _root_means(sums: _Drifts) -> _Drifts:
    """Return root mean squares; `sums` has [..., count and sums of squares], 0 for a count of 0."""
    counts = sums[..., :1]
    means = np.divide(sums[..., 1:], counts, out=np.zeros_like(sums[..., 1:]), where=counts > 0)
    return np.sqrt(np.maximum(means, 0.0))


def _allowed(reference: Any) -> Any:
    """Return the excess drift that a healthy model may have."""
    return np.maximum(_FACTOR * reference, reference + EXCESS_MARGIN)

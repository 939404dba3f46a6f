"""Abstention: below a margin of its own the deployed model leaves the decision to another one.

The threshold is taken from the inputs of one half of the seed inputs and judged on the other half's,
and on the triggering inputs of fresh searches.
"""

import math
from dataclasses import dataclass, replace
from typing import Annotated, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, PlainSerializer

from edgeflare._internal.records import JsonRecord, in_json
from edgeflare.errors import UsageError
from edgeflare.repair.examples import Examples
from edgeflare.statistics import upper_bound
from edgeflare.words.repair import source_text
from edgeflare_agent.repair import Repair

CATCH = 0.95
"""The share of deviations that is to be caught, by default."""
HELD_OUT = "other half"
"""The source of deviations of the half of the seed inputs that the threshold isn't taken from."""
_LEAST = 10
_CURVE = 50


class CurvePoint(NamedTuple):
    """A threshold, and what shares it catches of deviations and defers of inputs."""

    threshold: float
    caught: float
    deferred: float


def _points(curve: tuple[CurvePoint, ...]) -> list[dict[str, float]]:
    return [point._asdict() for point in curve]


@dataclass(frozen=True)
class Caught:
    """`caught` of `deviations` have a margin below the threshold.

    `source` is `HELD_OUT`, or the strategy of a fresh search; JSON has it in words.
    """

    source: Annotated[str, PlainSerializer(source_text)]
    deviations: int
    caught: int

    @in_json
    def share(self) -> float | None:
        """The share that is caught; None without deviations."""
        return self.caught / self.deviations if self.deviations else None


@dataclass(frozen=True)
class Abstention(JsonRecord):
    """A threshold for the deployed model's margin, and what it does to inputs that it isn't taken from.

    Answers with a margin below `threshold` are deferred. It was set on `calibrated_on` deviations to
    catch the share `wanted`. `bound`: of the deviations that the same search finds from seed inputs
    drawn as those were, at least this share is caught on average over calibrations, a conformal
    bound (Vovk et al. 2005); None where there are too few for `wanted`. Of `seeds` other seed inputs
    `deferred` are; the true share is at most `deferred_bound` (95 %, Clopper and Pearson 1934).
    `caught` has the other half's deviations, and those of fresh searches. `curve`: other thresholds,
    on that half, whose seed inputs have the numbers `others`. `size` and `kind` as of `Repair`.
    """

    threshold: float
    wanted: float
    calibrated_on: int
    bound: float | None
    seeds: int
    deferred: int
    deferred_bound: float
    caught: tuple[Caught, ...]
    curve: Annotated[tuple[CurvePoint, ...], PlainSerializer(_points)]
    size: Annotated[int, Field(exclude=True)]
    kind: Annotated[str, Field(exclude=True)]
    others: Annotated[tuple[int, ...], Field(exclude=True)]

    @in_json
    def deferred_share(self) -> float:
        """The share of seed inputs that are deferred."""
        return self.deferred / self.seeds

    @property
    def repair(self) -> Repair:
        """The threshold as a repair."""
        return Repair(self.size, self.kind, below=self.threshold)

    def with_fresh(self, source: str, fresh: Examples) -> "Abstention":
        """Return it with what it catches of a fresh search from the same seed inputs.

        Only triggering inputs that were made from the other half's seed inputs count; `fresh` numbers
        seed inputs as the examples that it was set on.
        """
        counts = fresh.triggering & ~fresh.is_seed & np.isin(fresh.groups, self.others)
        caught = _caught(source, fresh.margins[counts], self.threshold)
        return replace(self, caught=(*self.caught, caught))


def abstention_of(examples: Examples, *, catch: float = CATCH, random_seed: int = 0) -> Abstention:
    """Return a threshold that catches the share `catch` (0 to 1) of deviations on half of the seeds.

    Which half is drawn by `random_seed`. Raises UsageError for a share out of range, and for fewer
    than ten triggering inputs in a half.
    """
    if not 0 < catch <= 1:
        raise UsageError(
            f"the share to catch is {catch:.15g}, but it lies above 0 and up to 1, such as 0.95 or 95%"
        )
    rng = np.random.default_rng(random_seed)
    groups = rng.permutation(np.unique(examples.groups))
    first = np.isin(examples.groups, groups[: len(groups) // 2])
    ours, others = examples.at(first), examples.at(~first)
    deviations = np.sort(ours.margins[ours.triggering])
    fewest = min(len(deviations), int(others.triggering.sum()))
    if fewest < _LEAST:
        raise UsageError(
            f"half of the seed inputs have {fewest} triggering inputs; a threshold needs {_LEAST} "
            "at least, and some hundred for shares that can be relied on: search from more seeds"
        )
    rank = math.ceil((len(deviations) + 1) * catch)
    bound = rank / (len(deviations) + 1) if rank <= len(deviations) else None
    threshold = float(np.nextafter(deviations[min(rank, len(deviations)) - 1], np.inf))
    if threshold > 1:
        raise UsageError(
            f"the deployed model is entirely sure (margin 1) on some of the {catch:.0%} of the "
            "deviations to catch, so that no threshold catches them; lower --catch"
        )
    natural = others.margins[others.is_seed]
    tested = others.margins[others.triggering]
    deferred = int((natural < threshold).sum())
    return Abstention(
        threshold=threshold,
        wanted=catch,
        calibrated_on=len(deviations),
        bound=bound,
        seeds=len(natural),
        deferred=deferred,
        deferred_bound=upper_bound(deferred, len(natural)),
        caught=(_caught(HELD_OUT, tested, threshold),),
        curve=_curve(tested, natural),
        size=examples.scores.shape[1],
        kind=examples.kind,
        others=tuple(int(group) for group in groups[len(groups) // 2 :]),
    )


def _caught(source: str, margins: NDArray[np.float64], threshold: float) -> Caught:
    return Caught(source, len(margins), int((margins < threshold).sum()))


def _curve(deviations: NDArray[np.float64], natural: NDArray[np.float64]) -> tuple[CurvePoint, ...]:
    """Return the shares at thresholds that catch, or defer, evenly more."""
    shares = np.linspace(0, 1, _CURVE + 1)
    both = [np.quantile(one, shares) for one in (deviations, natural)]
    thresholds = np.nextafter(np.unique(both), np.inf)
    return tuple(
        CurvePoint(
            float(threshold),
            float((deviations < threshold).mean()),
            float((natural < threshold).mean()),
        )
        for threshold in thresholds
    )

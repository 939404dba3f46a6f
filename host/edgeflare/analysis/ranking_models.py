"""The figures of one candidate, over the seeds that all of them have finished."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from edgeflare.analysis.ranking_read import OfSeed, Searched
from edgeflare.analysis.statistics import bootstrap_interval, median
from edgeflare.campaign.statistics import wilson
from edgeflare.types import Status


@dataclass(frozen=True)
class Estimate:
    """A figure with the ends of its confidence interval."""

    value: float
    low: float
    high: float

    @classmethod
    def of(cls, values: Sequence[float], level: float) -> "Estimate":
        """Return the mean with its bootstrap interval."""
        low, high = bootstrap_interval([[value] for value in values], level=level)
        return cls(float(np.mean(values)), low, high)

    @classmethod
    def median_of(cls, values: Sequence[float], level: float) -> "Estimate":
        """Return the median with the interval between two of the values (Conover, 1999, section 3.2)."""
        ranked = sorted(values)
        reach = NormalDist().inv_cdf((1 + level) / 2) * math.sqrt(len(ranked)) / 2
        low = max(0, math.floor(len(ranked) / 2 - reach) - 1)
        high = min(len(ranked) - 1, math.ceil(len(ranked) / 2 + reach))
        return cls(float(np.median(ranked)), ranked[low], ranked[high])


@dataclass(frozen=True)
class Accuracy:
    """How many of `labelled` seeds are `right`, the rate, and its Wilson interval of 95 %."""

    right: int
    labelled: int
    rate: float
    low: float
    high: float


@dataclass(frozen=True)
class ModelFigures:
    """What was found with a candidate.

    `queries` and `queries_median` are those of the searches that found a trigger, up to the first one, as
    the paper has them (None of none); `queries_counted` is the mean of what the measure queries counts.
    `disagreement` and `severity` are means over all seeds, `l2` the median over the found triggers, on a
    scale of pixels from 0 to 1. `seed_deviates` counts searches whose seed is a trigger as it is, `success_rate` is
    the share of the others' `searched` that `found` one. `seconds_per_inference` is the device's own time.
    """

    accuracy: Accuracy | None
    disagreement: float
    severity: float
    queries_counted: float
    queries: Estimate | None
    queries_median: Estimate | None
    seed_deviates: int
    searched: int
    found: int
    success_rate: float | None
    l2: float | None
    device_queries: int
    seconds_per_inference: float | None


def figures_of(seeds: Sequence[OfSeed], level: float) -> ModelFigures:
    """Return the figures of what was found from these seeds."""
    outcomes = [outcome for seed in seeds for outcome in seed.outcomes]
    found = [one for one in outcomes if one.status is Status.FOUND]
    queries = [one.queries for one in found]
    searched = sum(one.searched for one in outcomes)
    asked = sum(one.device_queries for one in outcomes)
    seconds = sum(one.device_seconds for one in outcomes)
    return ModelFigures(
        accuracy=accuracy_of([seed.deployed_right for seed in seeds]),
        disagreement=_mean(outcomes, "disagreement"),
        severity=_mean(outcomes, "severity"),
        queries_counted=_mean(outcomes, "queries"),
        queries=Estimate.of(queries, level) if queries else None,
        queries_median=Estimate.median_of(queries, level) if queries else None,
        seed_deviates=sum(one.status is Status.SEED_DEVIATES for one in outcomes),
        searched=searched,
        found=len(found),
        success_rate=len(found) / searched if searched else None,
        l2=median([one.l2 for one in found]),
        device_queries=asked,
        seconds_per_inference=seconds / asked if asked and seconds > 0 else None,
    )


def accuracy_of(right: Sequence[bool | None]) -> Accuracy | None:
    """Return the accuracy over those that are known, None of none."""
    known = [one for one in right if one is not None]
    if not known:
        return None
    return Accuracy(
        sum(known), len(known), sum(known) / len(known), *wilson(sum(known), len(known))
    )


def _mean(outcomes: Sequence[Searched], name: str) -> float:
    return float(np.mean([getattr(one, name) for one in outcomes]))

"""A candidate's campaign in numbers, by seed sample."""

import json
import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import NormalDist
from typing import Any, NamedTuple

import numpy as np

from edgeflare.analysis.campaign_verdict import campaign_soundness
from edgeflare.analysis.outcome_stats import answer_figures
from edgeflare.analysis.soundness import Soundness
from edgeflare.answers import AnswerKind
from edgeflare.answers.detections.figures import DifferenceCounts
from edgeflare.answers.metrics import decides_equally, disagreement
from edgeflare.answers.oracles import margins
from edgeflare.campaign.pair.health import ranking_problem
from edgeflare.campaign.settings.config import SearchConfig
from edgeflare.campaign.status import replica_names
from edgeflare.errors import UsageError
from edgeflare.statistics import bootstrap_interval, median, wilson
from edgeflare.store import OutcomeRecord, SeedRecord, Store
from edgeflare.store.database import decoding
from edgeflare.types import TRIGGERS, Status

_WITHOUT_ANSWER = frozenset({Status.FAILED, Status.UNSTABLE})
"""Results without an answer, or without one that repeats, are not compared."""
_NOTHING_FOUND = frozenset(Status) - TRIGGERS - {Status.NONFINITE}
_WORST = 1.0
"""The disagreement and severity of NaN or infinity, of values see `nonfinite_as_worst`."""
_ROUNDING = 1e-6
"""Largest difference of probability of one model's answers in two runtimes."""


class ComparedSearch(NamedTuple):
    """One outcome: `queries` up to the first triggering input, else the most that were allowed.
    `disagreement` and `severity` are those of the trigger, 0 where there is none. `searched` is
    False where the seed is a finding itself. `device_queries` were answered in `device_seconds`.
    """

    status: Status
    searched: bool
    queries: float
    disagreement: float
    severity: float
    l2: float | None
    device_seconds: float
    device_queries: int

    @property
    def unsuccessful(self) -> bool:
        """Whether nothing was found, so that the needed queries are not known."""
        return self.status in _NOTHING_FOUND


class SeedResults(NamedTuple):
    """Results of one seed sample, one for each replica, and which model gives its label."""

    outcomes: tuple[ComparedSearch, ...]
    original_right: bool | None = None
    deployed_right: bool | None = None


@dataclass(frozen=True)
class CandidateCampaign:
    """A candidate's campaign, finished or not.

    `seeds` are the digests of all seed samples, `done` what is known of those that every replica
    has finished with an answer, `unanswered` how many ended without one; `alike` says that on those
    that are done both models give the same probabilities, or words, and nothing was found. `search`
    has every setting of the search; `devices` are fingerprints without the runtime,
    which is the candidate's own. `differences` are those of detectors on all seeds as they are,
    None of other models.
    """

    folder: Path
    original: Mapping[str, Any]
    deployed: Mapping[str, Any]
    search: Mapping[str, Any]
    devices: frozenset[str]
    seeds: frozenset[str]
    all_seeds: bool
    done: Mapping[str, SeedResults]
    unanswered: int
    timeouts: int
    alike: bool
    kind: AnswerKind[Any]
    differences: DifferenceCounts | None = None
    soundness: Soundness | None = None

    @property
    def finished(self) -> bool:
        """Whether nothing is left of it."""
        return self.all_seeds and len(self.done) + self.unanswered >= len(self.seeds)


def read_campaign(store: Store) -> CandidateCampaign:
    """Read what a comparison needs. Raises UsageError without any answer that can be used, and
    StoreError."""
    models = store.models
    if not models:
        raise UsageError(
            f"{store.folder} has no answers yet, so that nothing can be compared; go on with it first "
            "(`edgeflare resume`)"
        )
    if problem := ranking_problem(store):
        raise UsageError(
            f"{store.folder} can't be ranked: {problem.words}; leave that candidate out"
        )
    with decoding(store.folder, "the setting search"):
        search = SearchConfig.model_validate(store.campaign.get("search", {}))
    replicas = set(replica_names(store))
    seeds = {(replica, seed.id): seed for replica in replicas for seed in store.seeds(replica)}
    expected: dict[str, int] = defaultdict(int)
    for seed in seeds.values():
        expected[seed.sample] += 1
    ended: dict[str, list[ComparedSearch]] = defaultdict(list)
    right: dict[str, tuple[bool | None, bool | None]] = {}
    for outcome in store.outcomes():
        of = seeds.get((outcome.replica, outcome.seed_id))
        if of is not None:
            ended[of.sample].append(_compared_search(outcome, of, search.max_queries))
            right.setdefault(of.sample, _right(of, store.kind))
    done, unanswered = {}, 0
    for sample, outcomes in ended.items():
        if any(one.status in _WITHOUT_ANSWER for one in outcomes):
            unanswered += 1
        elif len(outcomes) == expected[sample]:
            done[sample] = SeedResults(tuple(outcomes), *right[sample])
    answers = answer_figures(store)
    return CandidateCampaign(
        folder=store.folder,
        original=models["original"],
        deployed=models["deployed"],
        search=search.model_dump(mode="json"),
        devices=frozenset(
            json.dumps({**device.fingerprint, "runtime": None}, sort_keys=True)
            for device in store.devices()
        ),
        seeds=frozenset(expected),
        all_seeds=store.state.seeds_complete,
        done=done,
        unanswered=unanswered,
        timeouts=sum(
            one.status is Status.TIMEOUT for outcomes in ended.values() for one in outcomes
        ),
        kind=store.kind,
        differences=None if answers is None else store.kind.seed_differences(answers),
        soundness=campaign_soundness(store),
        alike=bool(done)
        and all(one.status in _NOTHING_FOUND for of in done.values() for one in of.outcomes)
        and all(_same_answers(seed) for seed in seeds.values() if seed.sample in done),
    )


def nonfinite_as_worst(campaigns: Sequence[CandidateCampaign]) -> list[CandidateCampaign]:
    """Return the campaigns, those of values with NaN or infinity further apart than any distance.

    A distance of values has no largest one in general, so that they count as twice the largest one
    found with any of the candidates, and as 1 at least.
    """
    apart = [
        outcome.disagreement
        for campaign in campaigns
        for seed in campaign.done.values()
        for outcome in seed.outcomes
        if outcome.status is not Status.NONFINITE and math.isfinite(outcome.disagreement)
    ]
    worst = max(_WORST, 2 * max(apart, default=0.0))

    def counted(seed: SeedResults) -> SeedResults:
        outcomes = (
            outcome._replace(disagreement=worst) if outcome.status is Status.NONFINITE else outcome
            for outcome in seed.outcomes
        )
        return seed._replace(outcomes=tuple(outcomes))

    return [
        replace(campaign, done={sample: counted(seed) for sample, seed in campaign.done.items()})
        if math.isinf(campaign.kind.largest_distance)
        else campaign
        for campaign in campaigns
    ]


def _compared_search(outcome: OutcomeRecord, seed: SeedRecord, max_queries: int) -> ComparedSearch:
    original, deployed = outcome.original, outcome.deployed
    deviates = outcome.status is Status.SEED_DEVIATES
    if deviates and seed.outputs is not None:
        original, deployed = seed.outputs.original, seed.outputs.deployed
    if outcome.status is Status.NONFINITE:
        apart = severity = _WORST
    elif outcome.status in TRIGGERS and original is not None and deployed is not None:
        apart, severity = (
            disagreement(original, deployed),
            margins(original, deployed).smaller or 0.0,
        )
    else:
        apart = severity = 0.0
    if deviates or outcome.status is Status.NONFINITE:
        queries = outcome.search_queries
    elif outcome.status is Status.FOUND:
        queries = outcome.first_queries
    else:
        queries = max(outcome.search_queries, max_queries)
    return ComparedSearch(
        status=outcome.status,
        searched=outcome.searched,
        queries=float(queries),
        disagreement=apart,
        severity=severity,
        l2=outcome.l2 if outcome.status is Status.FOUND else None,
        device_seconds=outcome.device_seconds,
        device_queries=outcome.search_queries + outcome.confirmation_queries,
    )


def _same_answers(seed: SeedRecord) -> bool:
    if seed.outputs is None:
        return False
    original, deployed = seed.outputs.original, seed.outputs.deployed
    if original is None or deployed is None or not decides_equally(original, deployed):
        return False
    return disagreement(original, deployed) <= _ROUNDING


def _right(seed: SeedRecord, kind: AnswerKind[Any]) -> tuple[bool | None, bool | None]:
    if seed.label is None or seed.outputs is None:
        return None, None
    original, deployed, _ = seed.outputs
    if original is None or deployed is None:
        return None, None
    return kind.is_right(original, seed.label), kind.is_right(deployed, seed.label)


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
        """Return the median with its interval (Conover, 1999, section 3.2)."""
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

    `queries` and `queries_median` are those of the searches that found a trigger, up to the first
    one, as the paper has them (None of none); `queries_counted` is the mean of what the measure
    queries counts. `disagreement` and `severity` are means over all seeds, `l2` the median over the
    found triggers, on a scale of pixels from 0 to 1. `seed_deviates` counts searches whose seed is
    a trigger as it is, `success_rate` is the share of the others' `searched` that `found` one.
    `seconds_per_inference` is the device's own time.
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


def figures_of(seeds: Sequence[SeedResults], level: float) -> ModelFigures:
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


def _mean(outcomes: Sequence[ComparedSearch], name: str) -> float:
    return float(np.mean([getattr(outcome, name) for outcome in outcomes]))

"""Seed priority: which seeds are worth the device's time, by what the host knows before it is asked."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from edgeflare.answers.metrics import is_finite, is_scores
from edgeflare.answers.oracles import margin
from edgeflare.errors import ModelError, UsageError
from edgeflare.models import Spec
from edgeflare.models.tensors import ModelGraph
from edgeflare.types import Output, PriorityMeasure, Sample, SeedInput
from edgeflare_whitebox.activations import (
    Activations,
    activations_of,
    activations_or_errors,
    model_digest,
    penultimate_layer,
)
from edgeflare_whitebox.importance import IDC, IMPORTANT_UNITS, important_units
from edgeflare_whitebox.relevance import RelevanceModel, check_traceable, total_relevance
from edgeflare_whitebox.surprise import DSC

PRIORITY_MEASURES: Mapping[PriorityMeasure, str] = {
    "margin": "the original's top-1 minus top-2 probability, smallest first",
    "gini": "1 minus the sum of the original's squared probabilities, largest first",
    "surprise": "how far the original's activations are from those of the other half of the seeds, farthest first",
    "rarity": "the combination of the original's important units, rarest first",
    "drift": "how much the two models' answers to the survey differ, most first",
}
"""The measures, each in a few words: `priorities` computes all but drift, which `drift_priorities` does."""
_BATCH = 64
_T = TypeVar("_T")


class InspectedOriginal(NamedTuple):
    """An original whose layers are read: its file, its graph, its input.

    `label` makes the predicted class of a raw output, `predicted_class` where it is None.
    """

    path: Path
    graph: ModelGraph
    spec: Spec
    label: Callable[[NDArray[Any]], int] | None = None

    @staticmethod
    def check(measure: PriorityMeasure, path: Path) -> None:
        """Raise UsageError for a measure that can't look inside this model; its name alone is read."""
        if measure == "rarity":
            check_traceable(path)


def priorities(
    measure: PriorityMeasure,
    seeds: Iterable[SeedInput],
    scores: Callable[[Sequence[Sample]], Sequence[Output | None]],
    inside: InspectedOriginal | None = None,
) -> NDArray[np.float64]:
    """Return how promising each seed is by a measure, float64 [seeds]: higher is more promising.

    `seeds` is iterated once, by ``rarity`` three times; 64 samples are held at once, and by
    ``surprise`` and ``rarity`` the activations of one layer on all seeds. `scores` returns the
    original's probabilities, float64 [classes], for each of several samples, None for one that it
    can't answer. `inside` is for ``surprise`` and ``rarity``. NaN for a seed on which there is no
    such measure.

    - ``margin``: minus the `edgeflare.oracles.margin`, -1 to 0;
    - ``gini``: 1 - sum(p ** 2), 0 to 1 - 1 / classes (Feng et al., "DeepGini", ISSTA 2020);
    - ``surprise``: `surprise_priorities` at the `penultimate_layer`;
    - ``rarity``: `rarity_priorities` of the clusters (`IDC`) that the 6 most relevant units of that layer
      are in, with relevance summed over the seeds, of labelled ones over those that are decided
      correctly.

    Raises UsageError for ``drift``, for transcripts, without `inside` where that is needed, and as
    `default_layers`, `RelevanceModel` and `IDC` do; ModelError as `RelevanceModel.relevances`.
    """
    if measure == "drift":
        raise UsageError("drift isn't known of the original alone: see drift_priorities")
    if measure == "margin":
        found = (_margin(answer) for answer in _answers(seeds, scores))
        return np.array([np.nan if one is None else -one for one in found], np.float64)
    if measure == "gini":
        return np.array([gini(answer) for answer in _answers(seeds, scores)], np.float64)
    if measure not in PRIORITY_MEASURES:
        raise UsageError(
            f"there is no measure {measure} to order seeds by; take {', '.join(PRIORITY_MEASURES)}"
        )
    if inside is None:
        raise UsageError(f"{measure} looks into the original: name its file and its graph")
    layer = penultimate_layer(inside.graph)
    if measure == "surprise":
        return surprise_priorities(
            _activations(seeds, inside, layer), model_digest(inside.path), layer
        )
    return rarity_priorities(
        _combinations(seeds, inside, layer), [_margin(answer) for answer in _answers(seeds, scores)]
    )


def _margin(output: Output | None) -> float | None:
    return None if output is None else margin(output)


def gini(output: Output | None) -> float:
    """Return 1 - sum(p ** 2) of probabilities, float64 [classes]: 0 (sure) to 1 - 1 / classes.

    NaN for no answer, and for one with NaN or infinity. Source: Feng et al., "DeepGini", ISSTA
    2020, equation 1.
    """
    if not is_scores(output) or not is_finite(output):
        return np.nan
    return float(1 - np.sum(output**2))


def surprise_priorities(
    activations: Sequence[Activations | None], model: str, layer: str
) -> NDArray[np.float64]:
    """Return the distance-based surprise of each seed, float64 [seeds], 0 to infinity.

    Each half of the seeds is the profile of the other one: of the seeds of one predicted class the
    first, third, fifth ... are in one half. `model` is the `model_digest`. Infinite where the other
    half has no seed of the predicted class, or of no other one; NaN without activations, and where
    the layer isn't finite. See `DSC`, its errors, and its source.
    """
    found = np.full(len(activations), np.nan)
    halves: tuple[list[int], list[int]] = ([], [])
    seen: Counter[int] = Counter()
    for place, one in enumerate(activations):
        if one is not None and np.isfinite(one.layers[layer].units).all():
            halves[seen[one.label] % 2].append(place)
            seen[one.label] += 1
    for own, other in (halves, halves[::-1]):
        criterion = DSC(model, [layer])
        criterion.fit(one for one in (activations[place] for place in other) if one is not None)
        for place in own:
            one = activations[place]
            assert one is not None  # noqa: S101 - it is in a half
            found[place] = criterion.surprise(one) if other else np.inf
    return found


def rarity_priorities(
    combinations: Sequence[tuple[int, ...] | None], margins: Sequence[float | None]
) -> NDArray[np.float64]:
    """Return ranks by how rare each seed's combination is, float64 [seeds], whole numbers from 0.

    `combinations` are those of important units' clusters (`IDC.combination`), None or NaN where
    there is no such thing: NaN then. A combination that fewer seeds have ranks higher; of equally
    rare ones the seed with the smaller of the original's `margins` does, one without a margin
    lowest. Seeds that are equal in both have the same rank. Raises UsageError where the two differ
    in length.
    """
    if len(combinations) != len(margins):
        raise UsageError(
            f"there are {len(combinations):,} combinations and {len(margins):,} margins: give one of "
            "each for each seed"
        )
    counts = Counter(combination for combination in combinations if combination is not None)
    keys = [
        None if one is None else (-counts[one], -(np.inf if sure is None else sure))
        for one, sure in zip(combinations, margins, strict=True)
    ]
    ranks = {key: rank for rank, key in enumerate(sorted({key for key in keys if key is not None}))}
    return np.array([np.nan if key is None else ranks[key] for key in keys], np.float64)


def drift_priorities(variations: Iterable[Sequence[float]]) -> NDArray[np.float64]:
    """Return the mean of each seed's total variations, float64 [seeds], 0 to 1; NaN without any.

    They are of both models' probabilities on inputs made from the seed
    (`SurveyRecord.total_variation`).
    """
    return np.array(
        [np.mean(variation) if len(variation) else np.nan for variation in variations], np.float64
    )


def order_of(found: NDArray[np.float64]) -> NDArray[np.intp]:
    """Return the places of seeds, most promising first, of their priorities [seeds].

    Infinity is first, NaN last; of equal ones the one that comes first in the source.
    """
    return np.argsort(-found, kind="stable")


def apfd(order: Sequence[int] | NDArray[np.intp], found: Iterable[int]) -> float:
    """Return the average percentage of faults detected, 0 to 1: higher where findings come early.

    `order` has the places of all n seeds, each once; `found` the places of the m seeds that have a
    finding. It is 1 - sum(TF_i) / (n * m) + 1 / (2 * n), where TF_i is the 1-based place of the
    i-th finding in the order; random order gives 0.5 on average.

    Source: Rothermel et al., "Prioritizing Test Cases For Regression Testing", IEEE TSE 2001; each
    seed with a finding counts as one fault. Raises UsageError where nothing is found, and for an
    order that isn't one or lacks a finding.
    """
    first = np.flatnonzero(_are_found(order, found)) + 1
    return float(1 - first.sum() / (len(order) * len(first)) + 1 / (2 * len(order)))


def found_within(
    order: Sequence[int] | NDArray[np.intp],
    found: Iterable[int],
    share: float,
    costs: Sequence[float] | NDArray[np.number] | None = None,
) -> float:
    """Return the share of all findings, 0 to 1, that are found within a share of the whole budget.

    `order` and `found` as `apfd` takes them. `costs` has what each seed costs, [seeds], 1 each
    where it is None; those seeds count that are paid for wholly before the budget is spent. Raises
    UsageError as `apfd`, for a share that isn't from 0 to 1, and for costs of other seeds or below
    0.
    """
    if not 0 <= share <= 1:
        raise UsageError(f"a share of the budget is from 0 to 1, not {share}")
    hits = _are_found(order, found)
    each = np.ones(len(order)) if costs is None else np.asarray(costs, np.float64)
    if each.shape != hits.shape or not (each >= 0).all():
        raise UsageError("a budget needs a cost of 0 or more for each seed")
    spent = np.cumsum(each[np.asarray(order)])
    paid = spent <= share * spent[-1] * (1 + 1e-12)
    return float(np.count_nonzero(hits & paid) / np.count_nonzero(hits))


def _are_found(order: Sequence[int] | NDArray[np.intp], found: Iterable[int]) -> NDArray[np.bool_]:
    """Return for each place of the order whether that seed has a finding. Raises UsageError."""
    places, wanted = np.asarray(order), sorted(set(found))
    if not np.array_equal(np.sort(places), np.arange(len(places))):
        raise UsageError("an order names the places of all seeds from 0, each once")
    hits: NDArray[np.bool_] = np.isin(places, wanted)
    if not wanted or np.count_nonzero(hits) != len(wanted):
        raise UsageError("an order is judged by one finding or more, of seeds that it has")
    return hits


def _combinations(
    seeds: Iterable[SeedInput], inside: InspectedOriginal, layer: str
) -> list[tuple[int, ...] | None]:
    """Return each seed's combination of the important units' clusters."""
    path, graph, spec, _ = inside
    labelled = ((seed.sample, seed.label) for seed in seeds)
    totals, _ = total_relevance(RelevanceModel(path, graph), spec, labelled, [layer])
    if layer not in totals:
        return []
    relevance = totals[layer]
    units = important_units(relevance, min(IMPORTANT_UNITS, relevance.size))
    criterion = IDC(model_digest(path), layer, units)
    found = _activations(seeds, inside, layer)
    criterion.fit(one for one in found if one is not None)
    if not criterion.profiled:
        return [None] * len(found)
    return [None if one is None else criterion.combination(one) for one in found]


def _activations(
    seeds: Iterable[SeedInput], inside: InspectedOriginal, layer: str
) -> list[Activations | None]:
    """Return each seed's activations; None where the original can't answer on it."""
    samples = (seed.sample for seed in seeds)
    read = activations_of(inside.graph, inside.spec, samples, [layer], label=inside.label)
    found = activations_or_errors(read)
    return [None if isinstance(one, ModelError) else one for one in found]


def _answers(
    seeds: Iterable[SeedInput], scores: Callable[[Sequence[Sample]], Sequence[Output | None]]
) -> Iterator[Output | None]:
    """Yield the original's answers to all seeds. Raises UsageError for transcripts."""
    for batch in _batches(seeds):
        for score in scores([seed.sample for seed in batch]):
            if score is not None and not is_scores(score):
                raise UsageError(
                    "seeds are ordered by probabilities of classes, and the original returns text, "
                    "boxes or values"
                )
            yield score


def _batches(items: Iterable[_T]) -> Iterator[Sequence[_T]]:
    iterator = iter(items)
    while batch := list(islice(iterator, _BATCH)):
        yield batch

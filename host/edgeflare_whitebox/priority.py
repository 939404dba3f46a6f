"""Orders of seeds by what happens within the original: how surprising it is, and how rare."""

from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from edgeflare.answers.oracles import margin
from edgeflare.campaign.priority import (
    Answerer,
    InspectedOriginal,
    SeedPriority,
    answers,
    drift_priorities,
    gini,
    order_of,
    priorities,
)
from edgeflare.errors import ModelError, UsageError
from edgeflare.types import SeedInput
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
from edgeflare_whitebox.words.names import PRIORITY_MEASURES

__all__ = [
    "PRIORITY_MEASURES",
    "InspectedOriginal",
    "Rarity",
    "Surprise",
    "drift_priorities",
    "gini",
    "order_of",
    "priorities",
    "rarity_priorities",
    "surprise_priorities",
]


class Surprise(SeedPriority):
    """`surprise_priorities` at the `penultimate_layer`."""

    needs_several_scores = True

    def __call__(
        self, seeds: Iterable[SeedInput], scores: Answerer, original: InspectedOriginal
    ) -> NDArray[np.float64]:
        """Return the priorities, float64 [seeds]. Raises UsageError as `default_layers` does."""
        del scores
        layer = penultimate_layer(original.graph)
        found = _activations(seeds, original, layer)
        return surprise_priorities(found, model_digest(original.path), layer)


class Rarity(SeedPriority):
    """`rarity_priorities` of the clusters (`IDC`) that the 6 most relevant units of a layer are in.

    It is the `penultimate_layer`, with relevance summed over the seeds, of labelled ones over those
    that are decided correctly.
    """

    def check(self, original: Path) -> None:
        """Raise UsageError for what is no ONNX model."""
        check_traceable(original)

    def __call__(
        self, seeds: Iterable[SeedInput], scores: Answerer, original: InspectedOriginal
    ) -> NDArray[np.float64]:
        """Return the priorities, float64 [seeds].

        Raises UsageError as `default_layers`, `RelevanceModel` and `IDC`, ModelError as
        `RelevanceModel.relevances`.
        """
        layer = penultimate_layer(original.graph)
        combinations = _combinations(seeds, original, layer)
        known = answers(seeds, scores)
        margins = [None if answer is None else margin(answer) for answer in known]
        return rarity_priorities(combinations, margins)


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
    halves: tuple[dict[int, Activations], dict[int, Activations]] = ({}, {})
    seen: Counter[int] = Counter()
    for place, one in enumerate(activations):
        if one is not None and np.isfinite(one.layers[layer].units).all():
            halves[seen[one.label] % 2][place] = one
            seen[one.label] += 1
    for own, profile in (halves, halves[::-1]):
        criterion = DSC(model, [layer])
        criterion.fit(profile.values())
        for place, one in own.items():
            found[place] = criterion.surprise(one) if profile else np.inf
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

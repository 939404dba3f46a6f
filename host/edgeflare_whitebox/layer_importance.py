"""What matters in each layer: its important units, and which of their combinations inputs reach."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from math import prod
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from edgeflare.errors import ModelError, UsageError
from edgeflare.models import Spec
from edgeflare.models.tensors import ModelGraph
from edgeflare.types import Sample
from edgeflare_agent.image_spec import InputSpec
from edgeflare_whitebox.activations import (
    Activations,
    activations_of,
    activations_or_errors,
    model_digest,
    prepared,
)
from edgeflare_whitebox.importance import IDC, IMPORTANT_UNITS, important_units
from edgeflare_whitebox.relevance import (
    RelevanceModel,
    relevance_map,
    total_relevance,
    without_relevant,
)

UNION = "union"
"""The name of all sets of inputs together."""
_MOVED = 100
"""Images whose most relevant pixels are changed."""
_DRAWS = 200
Samples = Callable[[], Iterable[Sample]]
"""Begins to read samples, each time from the first."""


@dataclass(frozen=True)
class Movement:
    """How far units move, Euclidean, where an image's most relevant pixels are changed; means over images.

    `important` is the distance over the important units, `random` over as many units drawn at
    random; `images` says of how many images.
    """

    important: float
    random: float
    images: int


@dataclass(frozen=True)
class LayerImportance:
    """One layer: its tensor, its number of `units`, and the `important` ones, the most important first.

    `share` is their part of all positive relevance, 0 to 1. `clusters` are the important units'
    numbers of clusters, whose product is the number of `combinations`. `covered` is the share of
    the clusters' combinations that each set of inputs reaches, by the sets' names, and ``union`` of
    all of them. `movement` is None of audio.
    """

    layer: str
    units: int
    important: tuple[int, ...]
    share: float
    clusters: tuple[int, ...]
    covered: Mapping[str, float]
    movement: Movement | None

    @property
    def combinations(self) -> int:
        """The number of all combinations of clusters; far beyond float where there are many units."""
        return prod(self.clusters)


def importance_of_layers(
    path: Path,
    graph: ModelGraph,
    spec: Spec,
    profile: Samples,
    labels: Sequence[int | None],
    sets: Mapping[str, Samples],
    layers: Sequence[str],
    *,
    number: int = IMPORTANT_UNITS,
    random_seed: int = 0,
) -> tuple[tuple[LayerImportance, ...], int]:
    """Return what matters in these layers, and how many profiling inputs counted.

    `profile` are the profiling inputs, such as training inputs, with their `labels` (None where
    there is none); those that the model decides differently don't count. `sets` are test inputs by
    names. Of each layer `number` units are the important ones, all where it has fewer. A few
    activations at a time are held, and of the profile the important units' activations.

    Raises UsageError as `RelevanceModel` and its `relevances`, without scikit-learn, and where a
    layer has no finite activations; ModelError as `total_relevance`.
    """
    model = RelevanceModel(path, graph)
    relevance, counted = total_relevance(model, spec, zip(profile(), labels, strict=True), layers)
    digest = model_digest(path)
    criteria = {
        name: IDC(
            digest, name, important_units(units, min(number, units.size)), random_seed=random_seed
        )
        for name, units in relevance.items()
    }
    for one in _answered(graph, spec, profile(), layers):
        for criterion in criteria.values():
            criterion.fit([one])
    for name, criterion in criteria.items():
        if not criterion.profiled:
            raise UsageError(
                f"no profiling input has finite activations in the layer {name}: name other layers"
            )
        _ = criterion.centroids  # once, before there are copies
    covered: dict[str, dict[str, float]] = {name: {} for name in criteria}
    union = {name: criterion.emptied() for name, criterion in criteria.items()}
    for set_name, samples in sets.items():
        fresh = {name: criterion.emptied() for name, criterion in criteria.items()}
        for one in _answered(graph, spec, samples(), layers):
            for criterion in fresh.values():
                criterion.update([one])
        for name, criterion in fresh.items():
            covered[name][set_name] = criterion.score
            union[name].merge(criterion)
    for name, criterion in union.items():
        covered[name][UNION] = criterion.score
    moved = _movements(model, graph, spec, profile, criteria, random_seed)
    found = []
    for name, criterion in criteria.items():
        units = relevance[name]
        positive = units.clip(min=0)
        share = positive[list(criterion.units)].sum() / positive.sum() if positive.any() else 0.0
        found.append(
            LayerImportance(
                name,
                units.size,
                criterion.units,
                float(share),
                tuple(len(one) for one in criterion.centroids),
                covered[name],
                moved.get(name),
            )
        )
    return tuple(found), counted


def _answered(
    graph: ModelGraph, spec: Spec, samples: Iterable[Sample], layers: Sequence[str]
) -> Iterator[Activations]:
    """Yield the activations of inputs, without those on which the model can't answer."""
    for one in activations_or_errors(activations_of(graph, spec, samples, layers)):
        if not isinstance(one, ModelError):
            yield one


def _movements(
    model: RelevanceModel,
    graph: ModelGraph,
    spec: Spec,
    profile: Samples,
    criteria: Mapping[str, IDC],
    random_seed: int,
) -> dict[str, Movement]:
    """Return the movement of each layer's units; nothing of audio, and where nothing is finite."""
    if not isinstance(spec, InputSpec):
        return {}

    def pairs() -> Iterator[Sample]:
        """Yield images, each followed by itself with its most relevant pixels changed."""
        for image in islice(profile(), _MOVED):
            with suppress(ModelError):  # its score isn't finite
                found = model.relevances(prepared(image, spec))
                changed = without_relevant(image, relevance_map(found, spec, image.shape))
                yield image
                yield changed

    names = list(criteria)
    moves: dict[str, list[NDArray[np.float64]]] = {name: [] for name in names}
    read = activations_or_errors(activations_of(graph, spec, pairs(), names))
    for old, new in zip(read, read, strict=True):
        if isinstance(old, ModelError) or isinstance(new, ModelError):
            continue
        for name in names:
            units = np.stack([one.layers[name].units for one in (old, new)]).astype(np.float64)
            if np.isfinite(units).all():
                moves[name].append(units[1] - units[0])
    rng = np.random.default_rng(random_seed)
    found = {}
    for name, criterion in criteria.items():
        if not moves[name]:
            continue
        move = np.array(moves[name])
        count = len(criterion.units)
        drawn = [rng.choice(move.shape[1], count, replace=False) for _ in range(_DRAWS)]
        random = np.mean([np.linalg.norm(move[:, units], axis=1).mean() for units in drawn])
        own = np.linalg.norm(move[:, list(criterion.units)], axis=1).mean()
        found[name] = Movement(float(own), float(random), len(move))
    return found

"""What matters in each layer: its important units, and which of their combinations inputs reach."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from edgeflare.errors import ModelError
from edgeflare.inspection.activations import activations_of, model_digest
from edgeflare.inspection.importance import IDC, important_units
from edgeflare.inspection.relevance import (
    RelevanceModel,
    relevance_map,
    total_relevance,
    without_relevant,
)
from edgeflare.models import Spec, prepare
from edgeflare.models.tensors import ModelGraph
from edgeflare.types import Sample
from edgeflare_agent.image_spec import InputSpec

IMPORTANT = 6
"""Important units of a layer, where it has as many (DeepImportance's m)."""
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
    numbers of clusters. `covered` is the share of the clusters' combinations that each set of
    inputs reaches, by the sets' names, and ``union`` of all of them. `movement` is None of audio.
    """

    layer: str
    units: int
    important: tuple[int, ...]
    share: float
    clusters: tuple[int, ...]
    combinations: int
    covered: Mapping[str, float]
    movement: Movement | None


def importance_of_layers(
    path: Path,
    graph: ModelGraph,
    spec: Spec,
    profile: Samples,
    labels: Sequence[int | None],
    sets: Mapping[str, Samples],
    layers: Sequence[str],
    *,
    number: int = IMPORTANT,
    random_seed: int = 0,
) -> tuple[tuple[LayerImportance, ...], int]:
    """Return what matters in these layers, and how many profiling inputs counted.

    `profile` are the profiling inputs, such as training inputs, with their `labels` (None where
    there is none); those that the model decides differently don't count. `sets` are test inputs by
    names. Of each layer `number` units are the important ones, all where it has fewer. A few
    activations at a time are held, and of the profile the important units' activations.

    Raises UsageError as `RelevanceModel` and its `relevances`, and without scikit-learn.
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
    for one in activations_of(graph, spec, profile(), layers):
        for criterion in criteria.values():
            criterion.fit([one])
    covered: dict[str, dict[str, float]] = {name: {} for name in criteria}
    union = {name: criterion.emptied() for name, criterion in criteria.items()}
    for set_name, samples in sets.items():
        fresh = {name: criterion.emptied() for name, criterion in criteria.items()}
        for one in activations_of(graph, spec, samples(), layers):
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
                criterion.combinations,
                covered[name],
                moved.get(name),
            )
        )
    return tuple(found), counted


def _movements(
    model: RelevanceModel,
    graph: ModelGraph,
    spec: Spec,
    profile: Samples,
    criteria: Mapping[str, IDC],
    random_seed: int,
) -> dict[str, Movement]:
    """Return the movement of each layer's units; nothing of audio."""
    if not isinstance(spec, InputSpec):
        return {}

    def changed() -> Iterator[Sample]:
        for image in islice(profile(), _MOVED):
            try:
                found = model.relevances(prepare(image, spec))
            except ModelError:  # its score isn't finite: it moves nothing
                yield image
            else:
                yield without_relevant(image, relevance_map(found, spec, image.shape))

    names = list(criteria)
    before = activations_of(graph, spec, islice(profile(), _MOVED), names)
    after = activations_of(graph, spec, changed(), names)
    moves: dict[str, list[NDArray[np.float64]]] = {name: [] for name in names}
    for old, new in zip(before, after, strict=True):
        for name in names:
            moves[name].append(new.layers[name].units.astype(np.float64) - old.layers[name].units)
    rng = np.random.default_rng(random_seed)
    found = {}
    for name, criterion in criteria.items():
        move = np.array(moves[name])
        count = len(criterion.units)
        drawn = [rng.choice(move.shape[1], count, replace=False) for _ in range(_DRAWS)]
        random = np.mean([np.linalg.norm(move[:, units], axis=1).mean() for units in drawn])
        own = np.linalg.norm(move[:, list(criterion.units)], axis=1).mean()
        found[name] = Movement(float(own), float(random), len(move))
    return found

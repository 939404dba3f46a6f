"""What matters in each layer: its important units, and which of their combinations inputs reach.

Source: Gerasimou, Eniser, Sen and Cakan, "Importance-Driven Deep Learning System Testing", ICSE
2020.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from itertools import islice
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from typing_extensions import TypedDict, Unpack

from edgeflare._internal import extras
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
from edgeflare_whitebox.coverage import CoverageCriterion
from edgeflare_whitebox.relevance import (
    RelevanceModel,
    most_relevant,
    relevance_map,
    total_relevance,
    without_relevant,
)

IMPORTANT_UNITS = 6
"""How many units of a layer are important by default, where it has as many (DeepImportance's m)."""
CLUSTERS = (2, 3, 4)
"""The numbers of clusters of a unit's activations that are tried."""
UNION = "union"
"""The name of all sets of inputs together."""
_MOVED = 100
"""Images whose most relevant pixels are changed."""
_DRAWS = 200
Samples = Callable[[], Iterable[Sample]]
"""Begins to read samples, each time from the first."""


class IDC(CoverageCriterion):
    """Importance-driven coverage: combinations of the important units' clusters that inputs reach.

    Each unit's activations on the profiling inputs are clustered by k-means, in as many clusters as
    have the highest silhouette. An input reaches the combination of its nearest centroids (equation
    6); of equally near ones the lower counts. The score is the share of all combinations, whose
    number is exact. A unit that is constant over the profile has one cluster. An input on which a
    unit isn't finite reaches none.

    Differences: equation 3 of the paper divides by 1 less the size of a cluster; this is
    Rousseeuw's size less 1, and a cluster of a single value has silhouette 0.
    """

    def __init__(
        self,
        model: str,
        layer: str,
        units: Sequence[int],
        *,
        clusters: Sequence[int] = CLUSTERS,
        random_seed: int = 0,
    ) -> None:
        """Take the places of the important units in the layer (`important_units`).

        Raises UsageError for no unit, the same one twice, and numbers of clusters below 2.
        """
        if not units or len(set(units)) != len(units) or min(units) < 0:
            raise UsageError("IDC has one important unit or more, each once")
        if not clusters or min(clusters) < 2:
            raise UsageError("IDC tries numbers of clusters of 2 or more")
        self.units = tuple(int(one) for one in units)
        self.clusters = tuple(sorted({int(one) for one in clusters}))
        self.random_seed = random_seed
        settings = {
            "units": list(self.units),
            "clusters": list(self.clusters),
            "random_seed": random_seed,
        }
        super().__init__("IDC", model, [layer], settings)
        self._centroids: tuple[NDArray[np.float64], ...] = ()

    @property
    def profiled(self) -> int:
        """The number of profiling inputs on which all important units are finite."""
        return len(self._profile)

    @property
    def centroids(self) -> tuple[NDArray[np.float64], ...]:
        """Each unit's centroids, in ascending order.

        Raises UsageError where it was not fitted, or scikit-learn is missing.
        """
        if not self._profile:
            raise UsageError("IDC clusters what profiling inputs do: fit it before")
        if not self._centroids:
            self._centroids = tuple(
                cluster_centroids(values, self.clusters, random_seed=self.random_seed)
                for values in np.stack(self._profile).astype(np.float64).T
            )
        return self._centroids

    @property
    def combinations(self) -> int:
        """The number of all combinations of clusters. Raises UsageError as `centroids`."""
        return prod(map(len, self.centroids))

    def combination(self, activations: Activations) -> tuple[int, ...] | None:
        """Return the places of an input's nearest centroids, None where a unit isn't finite.

        Raises UsageError as `centroids`, and as `fit` for layers.
        """
        values = self._units(activations)
        if not np.isfinite(values).all():
            return None
        return tuple(
            int(np.argmin(np.abs(centroids - value)))
            for centroids, value in zip(self.centroids, values, strict=True)
        )

    def _units(self, activations: Activations) -> NDArray[np.float32]:
        """Return the important units."""
        units = super()._units(activations)
        if max(self.units) >= units.size:
            raise UsageError(
                f"the layer {self.layers[0]} has {units.size} units, and no unit {max(self.units)}"
            )
        return units[list(self.units)]

    def _fit_units(self, units: NDArray[np.float32], label: int) -> None:
        del label
        if np.isfinite(units).all():
            self._profile.append(units)
            self._centroids = ()

    def _cover(self, activations: Activations) -> None:
        combination = self.combination(activations)
        self._covered = self._covered or set()
        if combination is not None:
            self._covered.add(combination)

    def _count(self) -> int:
        return len(self._covered)

    def _total(self) -> int:
        return self.combinations if self._profile else 0


def important_units(relevance: NDArray[np.float64], number: int) -> tuple[int, ...]:
    """Return the places of a layer's units with the largest relevance in all, the largest first.

    `relevance` as `total_relevance` returns it for the layer. Raises UsageError where the layer has
    fewer units.
    """
    if not 1 <= number <= relevance.size:
        raise UsageError(
            f"the layer has {relevance.size} units, of which {number} can't be the important ones"
        )
    return tuple(int(one) for one in most_relevant(relevance, number))


def cluster_centroids(
    values: NDArray[np.float64], clusters: Sequence[int] = CLUSTERS, *, random_seed: int = 0
) -> NDArray[np.float64]:
    """Return the centroids of a unit's activations [N], ascending, as many as suit them best.

    k-means with each number of clusters that the values allow; the highest silhouette decides, the
    smaller number where it is equal. One centroid where no number of clusters does.

    Raises UsageError without scikit-learn.
    """
    cluster = extras.scikit_learn("cluster", "inspection", "clustering activations")
    different = len(np.unique(values))
    best, found = -np.inf, np.array([values.mean()])
    for number in clusters:
        if number > different or number >= len(values):
            continue
        means = cluster.KMeans(number, n_init=10, random_state=random_seed)
        with import_module("threadpoolctl").threadpool_limits(1):  # more take longer here
            means.fit(values[:, np.newaxis])
        score = silhouette(values, means.labels_)
        if score > best:
            best, found = score, np.sort(means.cluster_centers_[:, 0])
    return found


def silhouette(values: NDArray[np.float64], labels: NDArray[np.integer[Any]]) -> float:
    """Return the mean silhouette of clustered numbers [N], -1 to 1; exact, in O(N log N).

    0 for a value that is alone in its cluster. Source: Rousseeuw, J. Comput. Appl. Math. 20, 1987.
    Raises ValueError for fewer than two clusters.
    """
    names = np.unique(labels)
    if len(names) < 2:
        raise ValueError("a silhouette needs two clusters or more")
    own, nearest = np.zeros(len(values)), np.full(len(values), np.inf)
    alone = np.zeros(len(values), bool)
    for name in names:
        inside = labels == name
        total = _distances(values, np.sort(values[inside]))
        count = int(np.count_nonzero(inside))
        alone |= inside & (count == 1)
        own[inside] = total[inside] / max(1, count - 1)
        nearest[~inside] = np.minimum(nearest[~inside], total[~inside] / count)
    largest = np.maximum(own, nearest)
    scores = np.divide(nearest - own, largest, out=np.zeros(len(values)), where=largest > 0)
    return float(np.where(alone, 0.0, scores).mean())


def _distances(values: NDArray[np.float64], ordered: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the sum of each value's distances to ordered ones."""
    sums = np.concatenate([[0.0], np.cumsum(ordered)])
    below = np.searchsorted(ordered, values)
    above = len(ordered) - below
    result: NDArray[np.float64] = (
        values * below - sums[below] + (sums[-1] - sums[below]) - values * above
    )
    return result


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


class ImportanceOptions(TypedDict, total=False):
    """The keyword arguments of `importance_of_layers`.

    Of each layer `number` units are the important ones (6 by default), all where it has fewer.
    `random_seed` (0) is that of the clusters, and of the draws that those units are held against.
    """

    number: int
    random_seed: int


def _stated(number: int = IMPORTANT_UNITS, random_seed: int = 0) -> tuple[int, int]:
    return number, random_seed


def importance_of_layers(
    path: Path,
    graph: ModelGraph,
    spec: Spec,
    profile: Samples,
    labels: Sequence[int | None],
    sets: Mapping[str, Samples],
    layers: Sequence[str],
    **options: Unpack[ImportanceOptions],
) -> tuple[tuple[LayerImportance, ...], int]:
    """Return what matters in these layers, and how many profiling inputs counted.

    `profile` are the profiling inputs, such as training inputs, with their `labels` (None where
    there is none); those that the model decides differently don't count. `sets` are test inputs by
    names. `options` are those of `ImportanceOptions`. A few activations at a time are held, and of
    the profile the important units' activations.

    Raises UsageError as `RelevanceModel` and its `relevances`, without scikit-learn, and where a
    layer has no finite activations; ModelError as `total_relevance`.
    """
    number, random_seed = _stated(**options)  # TypeError for another one
    model = RelevanceModel(path, graph)
    relevance, counted = total_relevance(model, spec, zip(profile(), labels, strict=True), layers)
    digest = model_digest(path)
    criteria = {
        name: IDC(
            digest, name, important_units(units, min(number, units.size)), random_seed=random_seed
        )
        for name, units in relevance.items()
    }

    def answered(samples: Iterable[Sample]) -> Iterator[Activations]:
        """Yield the activations of inputs, without those on which the model can't answer."""
        for activations in activations_or_errors(activations_of(graph, spec, samples, layers)):
            if not isinstance(activations, ModelError):
                yield activations

    for activations in answered(profile()):
        for criterion in criteria.values():
            criterion.fit([activations])
    for name, criterion in criteria.items():
        if not criterion.profiled:
            raise UsageError(
                f"no profiling input has finite activations in the layer {name}: name other layers"
            )
        _ = criterion.centroids  # once, before there are copies
    covered: dict[str, dict[str, float]] = {name: {} for name in criteria}
    union = {name: criterion.emptied() for name, criterion in criteria.items()}
    for set_name, samples in sets.items():
        parts = {name: criterion.emptied() for name, criterion in criteria.items()}
        for activations in answered(samples()):
            for part in parts.values():
                part.update([activations])
        for name, part in parts.items():
            covered[name][set_name] = part.score
            union[name].merge(part)
    moved = _movements(model, graph, spec, profile, criteria, random_seed)
    layers_found = []
    for name, criterion in criteria.items():
        units = relevance[name]
        positive = units.clip(min=0)
        share = positive[list(criterion.units)].sum() / positive.sum() if positive.any() else 0.0
        layers_found.append(
            LayerImportance(
                name,
                units.size,
                criterion.units,
                float(share),
                tuple(map(len, criterion.centroids)),
                {**covered[name], UNION: union[name].score},
                moved.get(name),
            )
        )
    return tuple(layers_found), counted


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

    moves: dict[str, list[NDArray[np.float64]]] = {name: [] for name in criteria}
    read = activations_or_errors(activations_of(graph, spec, pairs(), list(criteria)))
    for old, new in zip(read, read, strict=True):
        if isinstance(old, ModelError) or isinstance(new, ModelError):
            continue
        for name, kept in moves.items():
            units = np.stack([one.layers[name].units for one in (old, new)]).astype(np.float64)
            if np.isfinite(units).all():
                kept.append(units[1] - units[0])
    rng = np.random.default_rng(random_seed)

    def distance(move: NDArray[np.float64], units: Sequence[int] | NDArray[np.intp]) -> float:
        return float(np.linalg.norm(move[:, units], axis=1).mean())

    movements = {}
    for name, criterion in criteria.items():
        if moves[name]:
            move, own = np.array(moves[name]), list(criterion.units)
            drawn = (rng.choice(move.shape[1], len(own), replace=False) for _ in range(_DRAWS))
            random = np.mean([distance(move, units) for units in drawn])
            movements[name] = Movement(distance(move, own), float(random), len(move))
    return movements

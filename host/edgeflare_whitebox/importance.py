"""Importance-driven coverage: which combinations of important units' clusters inputs reach.

Source: Gerasimou, Eniser, Sen and Cakan, "Importance-Driven Deep Learning System Testing", ICSE
2020.
"""

from collections.abc import Sequence
from importlib import import_module
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edgeflare._internal import extras
from edgeflare.errors import UsageError
from edgeflare_whitebox.activations import Activations
from edgeflare_whitebox.coverage import CoverageCriterion
from edgeflare_whitebox.relevance import most_relevant

IMPORTANT_UNITS = 6
"""How many units of a layer are important by default, where it has as many (DeepImportance's m)."""
CLUSTERS = (2, 3, 4)
"""The numbers of clusters of a unit's activations that are tried."""


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

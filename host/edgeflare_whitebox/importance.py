"""Importance-driven coverage: which combinations of important units' clusters inputs reach.

Source: Gerasimou, Eniser, Sen and Cakan, "Importance-Driven Deep Learning System Testing", ICSE
2020.
"""

from collections.abc import Mapping, Sequence
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

    name = "IDC"

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
        super().__init__(model, [layer], settings)
        self._values: list[NDArray[np.float32]] = []
        self._centroids: tuple[NDArray[np.float64], ...] = ()
        self._reached: set[tuple[int, ...]] = set()

    @property
    def profiled(self) -> int:
        """The number of profiling inputs on which all important units are finite."""
        return len(self._values)

    @property
    def centroids(self) -> tuple[NDArray[np.float64], ...]:
        """Each unit's centroids, in ascending order.

        Raises UsageError where it was not fitted, or scikit-learn is missing.
        """
        if not self._values:
            raise UsageError("IDC clusters what profiling inputs do: fit it before")
        if not self._centroids:
            values = np.stack(self._values).astype(np.float64)
            self._centroids = tuple(
                cluster_centroids(one, self.clusters, random_seed=self.random_seed)
                for one in values.T
            )
        return self._centroids

    @property
    def combinations(self) -> int:
        """The number of all combinations of clusters. Raises UsageError as `centroids`."""
        return prod(len(one) for one in self.centroids)

    def combination(self, one: Activations) -> tuple[int, ...] | None:
        """Return the places of an input's nearest centroids, None where a unit isn't finite.

        Raises UsageError as `centroids`, and as `fit` for layers.
        """
        self._check_sizes(one)
        values = self._important(one)
        if not np.isfinite(values).all():
            return None
        return tuple(
            int(np.argmin(np.abs(centroids - value)))
            for centroids, value in zip(self.centroids, values, strict=True)
        )

    def _important(self, one: Activations) -> NDArray[np.float32]:
        units = self._units(one)
        if max(self.units) >= units.size:
            raise UsageError(
                f"the layer {self.layers[0]} has {units.size} units, and no unit {max(self.units)}"
            )
        return units[list(self.units)]

    def _fit_one(self, one: Activations) -> None:
        values = self._important(one)
        if np.isfinite(values).all():
            self._values.append(values)
            self._centroids = ()

    def _clear(self) -> None:
        self._reached = set()
        self._values = list(self._values)

    def _new(self, one: Activations) -> int:
        reached = self.combination(one)
        return int(reached is not None and reached not in self._reached)

    def _cover(self, one: Activations) -> None:
        reached = self.combination(one)
        if reached is not None:
            self._reached.add(reached)

    def _count(self) -> int:
        return len(self._reached)

    def _total(self) -> int:
        return self.combinations if self._values else 0

    def _join(self, other: CoverageCriterion) -> None:
        assert isinstance(other, IDC)  # noqa: S101 - the key says so
        self._reached |= other._reached

    def _stored(self) -> NDArray[Any]:
        return np.array(sorted(self._reached), np.int64).reshape(-1, len(self.units))

    def _restore(self, covered: NDArray[Any]) -> None:
        if covered.dtype != np.int64 or covered.shape[1:] != (len(self.units),):
            raise ValueError("its combinations are of other units")
        numbers = [len(one) for one in self.centroids] if covered.size else 0
        if not ((covered >= 0) & (covered < numbers)).all():
            raise ValueError("its combinations have clusters that there aren't")
        self._reached = {tuple(row) for row in covered.tolist()}

    def _profile(self) -> dict[str, NDArray[Any]]:
        return {"values": np.stack(self._values)} if self._values else {}

    def _set_profile(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        values = arrays.get("values", np.zeros((0, len(self.units)), np.float32))
        if values.dtype != np.float32 or values.shape[1:] != (len(self.units),):
            raise ValueError("its profile is of other units")
        if not np.isfinite(values).all():
            raise ValueError("its profile is not finite")
        self._values = list(values)
        self._centroids = ()


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

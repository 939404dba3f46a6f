"""Surprise adequacy of inputs, and its coverage: how far they are from the profiling inputs.

Source: Kim, Feldt and Yoo, "Guiding Deep Learning System Testing Using Surprise Adequacy", ICSE
2019. Activation traces are the units of the chosen layers, `penultimate_layer` as a rule.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from edgeflare.errors import UsageError
from edgeflare_whitebox.activations import Activations
from edgeflare_whitebox.coverage import SectionCriterion, all_settings

if TYPE_CHECKING:
    from typing_extensions import Self

Surprise: TypeAlias = Callable[[NDArray[np.float64], int], float]
"""Returns the surprise of a finite trace, float64 [units], with its predicted class."""
_VALUES = 1 << 22
"""Values of float64 that are held at once where distances are computed."""
_DENSITY_VALUES = 1 << 26
"""Values of float64 of all densities that are held at once; the oldest are computed again."""


class SurpriseCriterion(SectionCriterion):
    """Surprise coverage by its name in `SURPRISE_RULES`: sections that the surprise of some input falls into.

    They are equal sections of (0, upper]. Surprise of 0 or less and above `upper` covers nothing.
    The profile is the trace and predicted class of every profiling input: float32 [inputs, units].
    A trace that isn't finite is left out.
    """

    def __init__(self, name: str, model: str, layers: Sequence[str], **settings: float) -> None:
        """Raise UsageError for no layers, and for settings that it can't have."""
        measure, by_default = SURPRISE_RULES[name]
        super().__init__(name, model, layers, all_settings(name, by_default, settings))
        own = {key: self.settings[key] for key in self.settings.keys() - {"upper", "sections"}}
        self._measure = partial(measure, **own)
        self._upper = self.settings["upper"]
        self._edges = np.linspace(0, self._upper, int(self.settings["sections"]) + 1)
        self._labels: list[int] = []
        self._surprise: Surprise | None = None

    def surprise(self, activations: Activations) -> float:
        """Return how far an input is from the profiling inputs of its predicted class.

        Infinite where these are too few, NaN where its trace isn't finite. Raises UsageError where
        it was not fitted, and as `fit` for layers.
        """
        trace = self._units(activations).astype(np.float64)
        if not self._profile:
            raise UsageError(f"{self.name} compares with profiling inputs: fit it before")
        surprise = self._of_profile()
        return surprise(trace, activations.label) if np.isfinite(trace).all() else np.nan

    def emptied(self) -> "Self":
        """Return one with the same profile, of which both share what is computed; see `CoverageCriterion`."""
        if self._profile:
            self._of_profile()
        return super().emptied()

    def _of_profile(self) -> Surprise:
        if self._surprise is None:
            traces = np.stack(self._profile)
            self._profile = list(traces)  # views, so that the traces are held once
            self._surprise = self._measure(traces, np.array(self._labels, np.int64))
        return self._surprise

    def sections_of(self, activations: Activations) -> NDArray[np.intp]:
        """Return the section that an input covers, if any. Raises as `update`."""
        surprise = self.surprise(activations)
        if not 0 < surprise <= self._upper:
            return np.zeros(0, np.intp)
        return np.array([np.searchsorted(self._edges, surprise, side="left") - 1], np.intp)

    def _fit_units(self, units: NDArray[np.float32], label: int) -> None:
        if np.isfinite(units).all():
            self._profile.append(units)
            self._labels.append(label)
            self._surprise = None

    def _places(self) -> int:
        return len(self._edges) - 1

    _total = _places


def likelihood_surprise(
    traces: NDArray[np.float32], labels: NDArray[np.int64], *, variance: float, ridge: float
) -> Surprise:
    """Return the surprise (LSA) by the density of traces [N, units] of a class; see `LSC`."""
    densities: dict[int, _Density | None] = {}

    def surprise(trace: NDArray[np.float64], label: int) -> float:
        if label not in densities:
            densities[label] = _density(traces[labels == label], label, variance, ridge)
            while len(densities) > 1 and (
                sum(density.size for density in densities.values() if density) > _DENSITY_VALUES
            ):
                del densities[next(iter(densities))]
        density = densities[label]
        return density.surprise(trace) if density else np.inf

    return surprise


class _Density(NamedTuple):
    """A kernel density estimate over the units `kept`, in which `whiten` makes kernels round.

    `points` are the whitened profiling traces, `log_norm` the logarithm of the kernel's norm.
    """

    kept: NDArray[np.bool_]
    whiten: NDArray[np.float64]
    points: NDArray[np.float64]
    log_norm: float

    @property
    def size(self) -> int:
        """The number of values that it holds."""
        return self.whiten.size + self.points.size

    def surprise(self, trace: NDArray[np.float64]) -> float:
        """Return -log of the density at a trace."""
        exponents = -0.5 * ((self.points - self.whiten @ trace[self.kept]) ** 2).sum(axis=1)
        top = exponents.max()
        mean = np.exp(exponents - top).sum() / len(exponents)
        return float(self.log_norm - top - np.log(mean))


def _density(
    of_class: NDArray[np.float32], label: int, variance: float, ridge: float
) -> _Density | None:
    """Return the density of a class' traces; None of fewer than two, and where no unit varies enough."""
    if len(of_class) < 2:
        return None
    traces = of_class.astype(np.float64)
    variances = traces.var(axis=0)
    kept = (variances >= variance) & (variances > 0)
    if not kept.any():
        return None
    count, size = len(traces), int(np.count_nonzero(kept))
    covariance = np.atleast_2d(np.cov(traces[:, kept], rowvar=False))
    covariance += ridge * np.trace(covariance) / size * np.eye(size)
    bandwidth = count ** (-1 / (size + 4))
    try:
        root = np.linalg.cholesky(covariance) * bandwidth
    except np.linalg.LinAlgError as error:
        raise UsageError(
            f"the covariance of the {count:,} profiling traces of class {label} is singular: "
            "raise the ridge of LSC or profile with more inputs"
        ) from error
    whiten = np.linalg.inv(root)
    log_norm = size / 2 * np.log(2 * np.pi) + np.log(np.diag(root)).sum()
    return _Density(kept, whiten, traces[:, kept] @ whiten.T, float(log_norm))


def distance_surprise(traces: NDArray[np.float32], labels: NDArray[np.int64]) -> Surprise:
    """Return the surprise (DSA) by the distance to traces [N, units]; see `DSC`."""
    to_others: dict[int, float] = {}

    def surprise(trace: NDArray[np.float64], label: int) -> float:
        same = labels == label
        if not same.any() or same.all():
            return np.inf
        distance, nearest = _nearest(trace, traces, np.flatnonzero(same))
        if nearest not in to_others:
            start = traces[nearest].astype(np.float64)
            to_others[nearest] = _nearest(start, traces, np.flatnonzero(~same))[0]
        return distance / to_others[nearest] if to_others[nearest] > 0 else np.inf

    return surprise


def _nearest(
    trace: NDArray[np.float64], traces: NDArray[np.float32], among: NDArray[np.intp]
) -> tuple[float, int]:
    """Return the least distance to some of the traces, and which one it is."""
    best, which = np.inf, -1
    step = max(1, _VALUES // trace.size)
    for start in range(0, len(among), step):
        rows = among[start : start + step]
        distances = ((traces[rows] - trace) ** 2).sum(axis=1)
        place = int(np.argmin(distances))
        if distances[place] < best:
            best, which = float(distances[place]), int(rows[place])
    return float(np.sqrt(best)), which


SURPRISE_RULES: Mapping[str, tuple[Callable[..., Surprise], Mapping[str, float]]] = {
    "LSC": (
        likelihood_surprise,
        {"upper": 2000.0, "sections": 1000, "variance": 1e-5, "ridge": 1e-6},
    ),
    "DSC": (distance_surprise, {"upper": 2.0, "sections": 1000}),
}
"""The criteria of surprise: what takes profiling traces, their classes, and the settings but two.

Those two, `upper` and `sections`, divide surprise.
"""

LSC = partial(SurpriseCriterion, "LSC")
"""Likelihood-based surprise coverage; settings are `upper`, `sections`, `variance` and `ridge`.

Surprise (LSA) is -log of a Gaussian kernel density estimate, with Scott's bandwidth, over the
profiling traces of the same predicted class. Units whose variance in a class is below `variance`
are dropped for that class. A class with one trace or without such units has no density: its surprise
is infinite.

Source: Kim et al., ICSE 2019, whose threshold of the variance is the default; `upper` and `sections`
as in Gerasimou et al., ICSE 2020.

Differences: `ridge` times the mean variance is added to each variance, so that a class with fewer
traces than units has a density, too; in directions where its traces don't differ, surprise is large.
"""
DSC = partial(SurpriseCriterion, "DSC")
"""Distance-based surprise coverage; settings are `upper` and `sections`.

Surprise (DSA) is a / b: a is the distance to the nearest profiling trace of the same predicted
class, b the distance from that one to the nearest of another class (Euclidean; of equally near ones
the first). Infinite where either doesn't exist or b is 0.

Source: Kim et al., ICSE 2019; `upper` and `sections` as in Gerasimou et al., ICSE 2020.
"""

"""Surprise adequacy of inputs, and its coverage: how far they are from the profiling inputs.

Source: Kim, Feldt and Yoo, "Guiding Deep Learning System Testing Using Surprise Adequacy", ICSE
2019. Activation traces are the units of the chosen layers, `penultimate_layer` as a rule.
"""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from edgeflare.errors import UsageError
from edgeflare_whitebox.activations import Activations
from edgeflare_whitebox.coverage import SectionCriterion

_VALUES = 1 << 22
"""Values of float64 that are held at once where distances are computed."""
_DENSITY_VALUES = 1 << 26
"""Values of float64 of all densities that are held at once; the oldest are computed again."""


class SurpriseCriterion(SectionCriterion):
    """Surprise coverage: equal sections of (0, upper] that the surprise of some input falls into.

    Surprise of 0 or less and above `upper` covers nothing. The profile is the trace and predicted
    class of every profiling input: float32 [inputs, units]. A trace that isn't finite is left out.
    """

    def __init__(
        self,
        model: str,
        layers: Sequence[str],
        *,
        upper: float,
        sections: int,
        settings: Mapping[str, float],
    ) -> None:
        """Raise UsageError for an upper bound of 0 or less, no section, and no layers."""
        if not 0 < upper < np.inf:
            raise UsageError(f"the upper bound of {self.name} is above 0, not {upper}")
        if sections < 1:
            raise UsageError(f"{self.name} has one section or more, not {sections}")
        common = {"upper": upper, "sections": sections}
        super().__init__(model, layers, {**common, **settings})
        self.upper, self.sections = upper, sections
        self._edges = np.linspace(0, upper, sections + 1)
        self._traces: list[NDArray[np.float32]] = []
        self._labels: list[int] = []

    def surprise(self, one: Activations) -> float:
        """Return how far an input is from the profiling inputs of its predicted class.

        Infinite where these are too few, NaN where its trace isn't finite. Raises UsageError where
        it was not fitted, and as `fit` for layers.
        """
        self._check_sizes(one)
        if not self._traces:
            raise UsageError(f"{self.name} compares with profiling inputs: fit it before")
        trace = self._units(one).astype(np.float64)
        return self._surprise(trace, one.label) if np.isfinite(trace).all() else np.nan

    @abstractmethod
    def _surprise(self, trace: NDArray[np.float64], label: int) -> float:
        """Return the surprise of a finite trace whose predicted class is `label`."""

    @abstractmethod
    def _forget(self) -> None:
        """Forget what was computed of the profile."""

    def _clear(self) -> None:
        super()._clear()
        self._traces, self._labels = list(self._traces), list(self._labels)

    def _fit_one(self, one: Activations) -> None:
        units = self._units(one)
        if np.isfinite(units).all():
            self._traces.append(units)
            self._labels.append(one.label)
            self._forget()

    def _covers(self, one: Activations) -> NDArray[np.intp]:
        surprise = self.surprise(one)
        if not 0 < surprise <= self.upper:
            return np.zeros(0, np.intp)
        return np.array([np.searchsorted(self._edges, surprise, side="left") - 1], np.intp)

    def _number(self) -> int:
        return self.sections

    def _total(self) -> int:
        return self.sections

    def _profile(self) -> dict[str, NDArray[Any]]:
        if not self._traces:
            return {}
        return {"traces": np.stack(self._traces), "labels": np.array(self._labels, np.int64)}

    def _set_profile(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        self._traces = list(arrays.get("traces", ()))
        self._labels = [int(one) for one in arrays.get("labels", ())]
        self._forget()


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


class LSC(SurpriseCriterion):
    """Likelihood-based surprise coverage.

    Surprise (LSA) is -log of a Gaussian kernel density estimate, with Scott's bandwidth, over the
    profiling traces of the same predicted class. Units whose variance in a class is below
    `variance` are dropped for that class. A class with one trace or without such units has no
    density: its surprise is infinite.

    Source: Kim et al., ICSE 2019, whose threshold of the variance is the default; `upper` and
    `sections` as in Gerasimou et al., ICSE 2020.

    Differences: `ridge` times the mean variance is added to each variance, so that a class with
    fewer traces than units has a density, too; in directions where its traces don't differ,
    surprise is large.
    """

    name = "LSC"

    def __init__(
        self,
        model: str,
        layers: Sequence[str],
        *,
        upper: float = 2000.0,
        sections: int = 1000,
        variance: float = 1e-5,
        ridge: float = 1e-6,
    ) -> None:
        """Raise UsageError as `SurpriseCriterion`, and for a negative variance or ridge."""
        if variance < 0 or ridge < 0:
            raise UsageError("the variance and the ridge of LSC are 0 or more")
        settings = {"variance": variance, "ridge": ridge}
        super().__init__(model, layers, upper=upper, sections=sections, settings=settings)
        self.variance, self.ridge = variance, ridge
        self._densities: dict[int, _Density | None] = {}

    def _surprise(self, trace: NDArray[np.float64], label: int) -> float:
        if label not in self._densities:
            self._densities[label] = self._density(label)
            sizes = [one.size for one in self._densities.values() if one is not None]
            while sum(sizes) > _DENSITY_VALUES and len(self._densities) > 1:
                oldest = self._densities.pop(next(iter(self._densities)))
                sizes = sizes if oldest is None else sizes[1:]
        density = self._densities[label]
        return np.inf if density is None else density.surprise(trace)

    def _forget(self) -> None:
        self._densities = {}

    def _density(self, label: int) -> _Density | None:
        of_class = [
            trace for trace, one in zip(self._traces, self._labels, strict=True) if one == label
        ]
        if len(of_class) < 2:
            return None
        traces = np.stack(of_class).astype(np.float64)
        variances = traces.var(axis=0)
        kept = (variances >= self.variance) & (variances > 0)
        if not kept.any():
            return None
        count, size = len(traces), int(np.count_nonzero(kept))
        covariance = np.atleast_2d(np.cov(traces[:, kept], rowvar=False))
        covariance += self.ridge * np.trace(covariance) / size * np.eye(size)
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


class DSC(SurpriseCriterion):
    """Distance-based surprise coverage.

    Surprise (DSA) is a / b: a is the distance to the nearest profiling trace of the same predicted
    class, b the distance from that one to the nearest of another class (Euclidean; of equally near
    ones the first). Infinite where either doesn't exist or b is 0.

    Source: Kim et al., ICSE 2019; `upper` and `sections` as in Gerasimou et al., ICSE 2020.
    """

    name = "DSC"

    def __init__(
        self, model: str, layers: Sequence[str], *, upper: float = 2.0, sections: int = 1000
    ) -> None:
        """Raise UsageError as `SurpriseCriterion`."""
        super().__init__(model, layers, upper=upper, sections=sections, settings={})
        self._stacked: NDArray[np.float32] | None = None
        self._classes: NDArray[np.int64] = np.zeros(0, np.int64)
        self._to_others: dict[int, float] = {}

    def _surprise(self, trace: NDArray[np.float64], label: int) -> float:
        if self._stacked is None:
            self._stacked = np.stack(self._traces)
            self._traces = list(self._stacked)
            self._classes = np.array(self._labels, np.int64)
        same = self._classes == label
        if not same.any() or same.all():
            return np.inf
        distance, nearest = self._nearest(trace, np.flatnonzero(same))
        if nearest not in self._to_others:
            start = self._stacked[nearest].astype(np.float64)
            self._to_others[nearest] = self._nearest(start, np.flatnonzero(~same))[0]
        to_others = self._to_others[nearest]
        return distance / to_others if to_others > 0 else np.inf

    def _forget(self) -> None:
        self._stacked = None
        self._to_others = {}

    def _nearest(self, trace: NDArray[np.float64], among: NDArray[np.intp]) -> tuple[float, int]:
        """Return the least distance to some of the traces, and which one it is."""
        assert self._stacked is not None  # noqa: S101
        best, which = np.inf, -1
        step = max(1, _VALUES // trace.size)
        for start in range(0, len(among), step):
            rows = among[start : start + step]
            distances = ((self._stacked[rows] - trace) ** 2).sum(axis=1)
            place = int(np.argmin(distances))
            if distances[place] < best:
                best, which = float(distances[place]), int(rows[place])
        return float(np.sqrt(best)), which

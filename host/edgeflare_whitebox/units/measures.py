"""Measures of how much units go with hypotheses, updated with a block of inputs at a time."""

import warnings
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from math import comb, log
from statistics import NormalDist
from typing import Any, Literal, NamedTuple, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

from edgeflare._internal import extras
from edgeflare.statistics import upper_bound

_Floats = NDArray[np.float64]
_Groups = NDArray[np.int64]

MeasureName: TypeAlias = Literal["pearson", "mutual-information", "f1"]
MEASURE_NAMES: tuple[MeasureName, ...] = get_args(MeasureName)
BINS = 8
"""Bins of a unit's activation, and of a hypothesis with more values, for mutual information."""
JOINT_RECORDS = 4096
"""Inputs that the joint measure looks at, the first ones: half to train on, half held out. Their
activations are held, as float32: of 20,000 units 330 MB."""
FEWEST = 10
"""Number of inputs of either value that a binary hypothesis needs for a score."""
_ORDER = 4
_CONSTANT = 1e-12
"""A variance is 0 below this share of the mean square."""
_NEAREST_ONE = 1 - 1e-12


class Scores(NamedTuple):
    """The score of each pair and the interval about it: float64 [hypotheses, units or groups].

    NaN where there is no score: the unit or the hypothesis is constant over the inputs.
    """

    score: _Floats
    low: _Floats
    high: _Floats

    @property
    def error(self) -> _Floats:
        """The distance from the score to the farther end of its interval; NaN without a score."""
        return np.maximum(self.high - self.score, self.score - self.low)


class Measure(ABC):
    """A measure of affinity (DeepBase): of each unit, or jointly of a group of units.

    `name` is that of the command, `about` says what it is.
    """

    name: MeasureName
    about: str
    is_joint = False

    @abstractmethod
    def update(self, units: _Floats, values: _Floats, groups: _Groups) -> None:
        """Take a block of inputs: activations [inputs, units], hypotheses [inputs, hypotheses].

        A value is NaN where the hypothesis says nothing of the input. `groups` numbers the groups of
        inputs that are alike, [inputs]. The first block fixes shifts, scales and bins.
        """

    @abstractmethod
    def scores(self, alpha: float, effects: _Floats | None = None) -> Scores:
        """Return the scores, with intervals that each miss with a probability of about `alpha`.

        An interval is that of so many inputs divided by the hypothesis' design effect, [hypotheses],
        see `design_effects`; None: of inputs that are independent.
        """

    @property
    def is_full(self) -> bool:
        """Whether further inputs change nothing."""
        return False


class Pearson(Measure):
    """Pearson's correlation of a unit's activation and a hypothesis, -1 to 1.

    Sums of powers up to the fourth order are kept, of activations less the first input's and in
    terms of the first block's range, so that they merge by adding and nothing cancels (shifted
    data: Chan, Golub and LeVeque, The American Statistician 37, 1983). The interval is Fisher's on
    the scale of artanh. Its standard error is the larger of 1 / sqrt(n - 3), which holds for
    normal variables, and of that by the influence function of r, which holds for any (Devlin,
    Gnanadesikan and Kettenring, Biometrika 62, 1975).

    Differences: Fisher's standard error alone, the usual one, is too small for rare hypotheses and
    sparse units (docs/research/inspection-units.md has how often either interval misses).
    """

    name = "pearson"
    about = "correlation of a unit's activation and the hypothesis, -1 to 1"

    def __init__(self) -> None:
        self._sums: dict[tuple[int, int], Any] = {}

    def update(self, units: _Floats, values: _Floats, groups: _Groups) -> None:  # noqa: D102
        del groups
        known = np.isfinite(values)
        if not self._sums:
            self._units, self._values = _shift_and_scale(units), _shift_and_scale(values)
        x = (units - self._units[0]) / self._units[1]
        y = np.where(known, (values - self._values[0]) / self._values[1], 0.0)
        power: _Floats = known.astype(np.float64)
        for b in range(_ORDER + 1):
            raised = np.ones_like(x)
            for a in range(_ORDER + 1 - b):
                added = power.T @ raised if a else power.sum(axis=0)[:, None]
                self._sums[a, b] = self._sums.get((a, b), 0.0) + added
                raised = raised * x
            power = power * y

    def scores(self, alpha: float, effects: _Floats | None = None) -> Scores:  # noqa: D102
        n = self._sums[0, 0]
        with np.errstate(divide="ignore", invalid="ignore"):
            mean = {key: one / n for key, one in self._sums.items()}
            central = {
                (a, b): _central(mean, a, b)
                for a in range(_ORDER + 1)
                for b in range(_ORDER + 1 - a)
                if a + b in (2, _ORDER)
            }
            xx, yy = central[2, 0], central[0, 2]
            varies = (xx > _CONSTANT * mean[2, 0]) & (yy > _CONSTANT * mean[0, 2]) & (n > _ORDER)
            xx, yy = np.where(varies, xx, np.nan), np.where(varies, yy, np.nan)
            x, y = np.sqrt(xx), np.sqrt(yy)
            r = np.clip(central[1, 1] / (x * y), -_NEAREST_ONE, _NEAREST_ONE)
            m22 = central[2, 2] / (xx * yy)
            influence = (
                m22
                - r * (central[3, 1] / (xx * x * y) + central[1, 3] / (x * yy * y))
                + r * r / 4 * (central[4, 0] / xx**2 + 2 * m22 + central[0, 4] / yy**2)
            )
            of_any = np.sqrt(np.maximum(influence, 0) / n) / (1 - r * r)
            half = _quantile(alpha) * np.maximum(of_any, 1 / np.sqrt(n - 3))
            if effects is not None:
                half = half * np.sqrt(effects)[:, None]
            z = np.arctanh(r)
            return Scores(r, np.tanh(z - half), np.tanh(z + half))


def _shift_and_scale(block: _Floats) -> tuple[_Floats, _Floats]:
    """Return each column's first known value, and its largest distance from there, 1 if it is 0."""
    known = np.isfinite(block)
    first = np.where(known.any(axis=0), block[known.argmax(axis=0), np.arange(block.shape[1])], 0.0)
    scale = np.abs(np.where(known, block - first, 0.0)).max(axis=0)
    return first, np.where(scale > 0, scale, 1.0)


def _central(mean: Mapping[tuple[int, int], Any], a: int, b: int) -> Any:
    """Return the mean of (x - mean x)^a (y - mean y)^b, of the means of x^i y^j."""
    x, y = mean[1, 0], mean[0, 1]
    return sum(
        comb(a, i) * comb(b, j) * (-x) ** (a - i) * (-y) ** (b - j) * mean[i, j]
        for i in range(a + 1)
        for j in range(b + 1)
    )


class MutualInformation(Measure):
    """Mutual information of a unit's activation and a hypothesis, in bits, both in bins.

    The bins are fixed by the first block: eighths of the units' activations by rank, and of a
    hypothesis with more than 8 values; else its values. The estimate from counts is too high by
    about (k - kx - ky + 1) / (2 n ln 2), k the numbers of cells and bins that are not empty, and
    that is taken away (Miller, 1955); it stays within 0 and what so many bins can tell. The interval's half-width is
    the normal one (from the variance of the cells' pointwise information), and with it the
    bound of a chi-squared variable (Laurent and Massart, Annals of Statistics 28, 2000), which is
    what the estimate follows where there is no information.
    """

    name = "mutual-information"
    about = f"information of a unit's activation in {BINS} bins on the hypothesis, in bits"

    def __init__(self) -> None:
        self._counts: Any = None

    def update(self, units: _Floats, values: _Floats, groups: _Groups) -> None:  # noqa: D102
        del groups
        if self._counts is None:
            shares = np.arange(1, BINS) / BINS
            self._edges = np.quantile(units, shares, axis=0, method="inverted_cdf")
            self._cuts = [_cuts(column[np.isfinite(column)]) for column in values.T]
            self._counts = np.zeros((values.shape[1], BINS, BINS, units.shape[1]), np.float32)
        bins = (units > self._edges[:, None, :]).sum(axis=0)
        hot = np.zeros((len(values), values.shape[1], BINS), np.float32)
        for h, cuts in enumerate(self._cuts):
            known = np.flatnonzero(np.isfinite(values[:, h]))
            hot[known, h, np.searchsorted(cuts, values[known, h])] = 1
        of_bins = bins[:, None, :] == np.arange(BINS)[:, None]
        counts = hot.reshape(len(values), -1).T @ of_bins.reshape(len(values), -1).astype(
            np.float32
        )
        self._counts += counts.reshape(self._counts.shape)

    def scores(self, alpha: float, effects: _Floats | None = None) -> Scores:  # noqa: D102
        each = [1.0] * len(self._cuts) if effects is None else effects.tolist()
        found = [self._scores(h, alpha, effect) for h, effect in enumerate(each)]
        return Scores(*(np.array(one) for one in zip(*found, strict=True)))

    def _scores(self, h: int, alpha: float, effect: float) -> tuple[_Floats, _Floats, _Floats]:
        """Return the scores of one hypothesis, and their bounds."""
        counts = self._counts[h].astype(np.float64)
        n = max(counts[:, :, 0].sum(), 1.0)
        p = counts / n
        of_value, of_unit = p.sum(axis=1, keepdims=True), p.sum(axis=0, keepdims=True)
        with np.errstate(divide="ignore", invalid="ignore"):
            pointwise = np.where(p > 0, np.log2(p / (of_unit * of_value)), 0.0)
        plain = (p * pointwise).sum(axis=(0, 1))
        variance = (p * pointwise**2).sum(axis=(0, 1)) - plain**2
        cells, kx, ky = (np.count_nonzero(one, axis=(0, 1)) for one in (p, of_unit, of_value))
        scale = 2 * n * log(2)
        score = np.maximum(plain - (cells - kx - ky + 1) / scale, 0.0)
        free, tail = (kx - 1) * (ky - 1), -log(alpha)
        half = _quantile(alpha) * np.sqrt(np.maximum(variance, 0) / n * effect)
        half = half + (2 * np.sqrt(free * tail) + 2 * tail) / scale * effect
        none = (kx < 2) | (ky < 2)
        most = np.log2(np.maximum(np.minimum(kx, ky), 1))  # what so many bins can tell
        score = np.minimum(score, most)
        return (
            np.where(none, np.nan, score),
            np.where(none, np.nan, np.maximum(score - half, 0.0)),
            np.where(none, np.nan, np.minimum(score + half, most)),
        )


def _cuts(values: _Floats) -> _Floats:
    """Return what separates a hypothesis' bins: a value is in the first bin whose cut it isn't above."""
    distinct = np.unique(values)
    if not distinct.size or set(distinct.tolist()) <= {0.0, 1.0}:
        return np.array([0.5])
    if distinct.size <= BINS:
        return (distinct[1:] + distinct[:-1]) / 2 if distinct.size > 1 else distinct
    return np.unique(np.quantile(values, np.arange(1, BINS) / BINS, method="inverted_cdf"))


class LogisticF1(Measure):
    """F1 of predicting a binary hypothesis from all units of a layer by logistic regression, 0 to 1.

    Of the groups of inputs, which come in random order, every other one trains (L2, C = 1, classes
    weighted by their rarity, activations standardised), the others are held out; F1 is theirs, for
    the rarer value of the hypothesis. `guess` is F1 of always saying the rarer value. The interval is
    Clopper and Pearson's of tp / (tp + fp + fn), of which F1 is a monotone function, for the
    model trained. The first `JOINT_RECORDS` inputs count.

    Differences: the model is trained anew at each look, rather than on with each block of inputs.
    """

    name = "f1"
    about = "how well all units of a layer together predict a binary hypothesis on held-out inputs"
    is_joint = True

    def __init__(self, groups: Sequence[slice]) -> None:
        self._model = extras.scikit_learn("linear_model", "inspection", "the measure f1")
        self._groups = groups
        self._blocks: list[tuple[NDArray[np.float32], _Floats, _Groups]] = []
        self._records = 0
        self.guess: _Floats = np.zeros(0)

    @property
    def is_full(self) -> bool:  # noqa: D102
        return self._records >= JOINT_RECORDS

    def update(self, units: _Floats, values: _Floats, groups: _Groups) -> None:  # noqa: D102
        some = slice(JOINT_RECORDS - self._records)
        if not self.is_full:
            self._blocks.append((units[some].astype(np.float32), values[some], groups[some]))
            self._records += len(self._blocks[-1][0])

    def scores(self, alpha: float, effects: _Floats | None = None) -> Scores:  # noqa: D102
        units, values, groups = (np.concatenate(one) for one in zip(*self._blocks, strict=True))
        found = np.full((3, values.shape[1], len(self._groups)), np.nan)
        self.guess = np.full(values.shape[1], np.nan)
        for h, column in enumerate(values.T):
            known = np.flatnonzero(np.isfinite(column))
            if not is_scorable(column) or not is_binary(column):
                continue
            truth = column[known] == (np.mean(column[known]) <= 0.5)
            self.guess[h] = 2 * truth.mean() / (1 + truth.mean())
            for g, group in enumerate(self._groups):
                trains = groups[known] % 2 == 0
                effect = 1.0 if effects is None else float(effects[h])
                found[:, h, g] = self._f1(units[known, group], truth, trains, alpha, effect)
        return Scores(*found)

    def _f1(
        self,
        units: NDArray[np.float32],
        truth: NDArray[np.bool_],
        trains: NDArray[np.bool_],
        alpha: float,
        effect: float,
    ) -> tuple[float, float, float]:
        train, held = units[trains].astype(np.float64), units[~trains].astype(np.float64)
        if len(np.unique(truth[trains])) < 2 or not len(held):
            return (np.nan,) * 3
        mean, spread = train.mean(axis=0), train.std(axis=0)
        spread[spread == 0] = 1.0
        model = self._model.LogisticRegression(class_weight="balanced", max_iter=200)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that it has not converged
            model.fit((train - mean) / spread, truth[trains])
        said = model.predict((held - mean) / spread)
        hits = int(np.count_nonzero(said & truth[~trains]))
        trials = int(np.count_nonzero(said | truth[~trains]))
        if not trials:
            return (np.nan,) * 3
        low = 1 - upper_bound((trials - hits) / effect, trials / effect, level=1 - alpha / 2)
        high = upper_bound(hits / effect, trials / effect, level=1 - alpha / 2)
        return _f1_of(hits / trials), _f1_of(max(low, 0.0)), _f1_of(high)


def _f1_of(jaccard: float) -> float:
    return 2 * jaccard / (1 + jaccard)


MEASURES: Mapping[MeasureName, str] = {
    one.name: one.about for one in (Pearson, MutualInformation, LogisticF1)
}
"""The measures by name, in words; the last one is of a whole layer."""


def measure_of(name: MeasureName, groups: Sequence[slice]) -> Measure:
    """Return a measure by its name in `MEASURES`; `groups` are the units of each layer."""
    if name == LogisticF1.name:
        return LogisticF1(groups)
    return Pearson() if name == Pearson.name else MutualInformation()


def is_binary(values: _Floats) -> bool:
    """Whether a hypothesis' values are all 0 or 1; NaN are none."""
    known = values[np.isfinite(values)]
    return bool(np.isin(known, (0.0, 1.0)).all())


def is_scorable(values: _Floats) -> bool:
    """Whether a hypothesis' values tell anything: of a binary one at least `FEWEST` of either."""
    known = values[np.isfinite(values)]
    if is_binary(values):
        ones = int(known.sum())
        return min(ones, len(known) - ones) >= FEWEST
    return len(known) >= FEWEST and bool(np.ptp(known) > 0)


def design_effects(values: _Floats, groups: _Groups) -> _Floats:
    """Return by how much the inputs of each hypothesis count less for being alike: [hypotheses].

    It is 1 + (m - 1) r: m is the size of the group that an input is in, on average over the inputs, r
    the correlation of the hypothesis within groups by the analysis of variance, 0 to 1. For a
    correlation with a unit the effect is 1 + (m - 1) r s, where s is the unit's correlation within
    groups: so this is too large rather than too small.
    """
    return np.array([_design_effect(column, groups) for column in values.T])


def _design_effect(values: _Floats, groups: _Groups) -> float:
    known = np.isfinite(values)
    _, of, sizes = np.unique(groups[known], return_inverse=True, return_counts=True)
    n, k = len(of), len(sizes)
    if k in (n, 1):
        return 1.0
    size = float((sizes**2).sum() / n)
    means = np.bincount(of, values[known]) / sizes
    within = float(((values[known] - means[of]) ** 2).sum() / (n - k))
    between = float((sizes * (means - values[known].mean()) ** 2).sum() / (k - 1))
    usual = (n - size) / (k - 1)
    total = between + (usual - 1) * within
    correlation = (between - within) / total if total > 0 else 0.0
    return 1 + (size - 1) * min(max(correlation, 0.0), 1.0)


def _quantile(alpha: float) -> float:
    """Return the normal quantile of a two-sided interval."""
    return NormalDist().inv_cdf(1 - alpha / 2)

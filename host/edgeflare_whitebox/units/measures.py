"""Measures of how much units go with hypotheses: functions of activations and of hypotheses' values."""

import warnings
from collections.abc import Callable, Mapping, Sequence
from itertools import accumulate
from math import comb, log
from statistics import NormalDist
from typing import Any, Literal, NamedTuple, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

from edgeflare._internal import extras
from edgeflare.statistics import upper_bound
from edgeflare_whitebox.words.names import MEASURES_OF_UNITS

_Floats = NDArray[np.float64]
_Groups = NDArray[np.int64]

MeasureName: TypeAlias = Literal["pearson", "mutual-information", "f1"]
MEASURE_NAMES: tuple[MeasureName, ...] = get_args(MeasureName)
BINS = 8
"""Bins of a unit's activation, and of a hypothesis with more values, for mutual information."""
BINNED_BY = 64
"""The first inputs, of which the bins are made."""
JOINT_RECORDS = 4096
"""Inputs that F1 looks at, the first ones: half to train on, half held out."""
FEWEST = 10
"""Number of inputs of either value that a binary hypothesis needs for a score."""
MEASURES: Mapping[MeasureName, str] = {
    name: MEASURES_OF_UNITS[name].format(bins=BINS) for name in MEASURE_NAMES
}
"""The measures by name, in words; the last one is of a whole layer."""
_ORDER = 4
_CONSTANT = 1e-12
"""A variance is 0 below this share of the mean square."""
_NEAREST_ONE = 1 - 1e-12
_COLUMNS, _ROWS = 256, 2048
"""Units, and inputs, whose float64 copies and bins are held at once: some 100 MB of 10,000 inputs."""


class Scores(NamedTuple):
    """The score of each pair and the interval about it: float64 [hypotheses, units or layers].

    NaN where there is no score: the unit or the hypothesis is constant over the inputs.
    """

    score: _Floats
    low: _Floats
    high: _Floats

    @property
    def error(self) -> _Floats:
        """The distance from the score to the farther end of its interval; NaN without a score."""
        return np.maximum(self.high - self.score, self.score - self.low)


def pearson(units: NDArray[Any], values: _Floats, alpha: float, effects: _Floats) -> Scores:
    """Return Pearson's correlation of each unit and hypothesis, -1 to 1.

    `units` is [inputs, units], `values` [inputs, hypotheses], NaN where a hypothesis says nothing of
    an input. Intervals miss with a probability of about `alpha` each; they are those of so many
    inputs divided by `effects`, [hypotheses], see `design_effects`: Fisher's on the scale of artanh.
    The standard error is the larger of 1 / sqrt(n - 3), which holds for normal variables, and of
    that by the influence function of r, which holds for any (Devlin, Gnanadesikan and Kettenring,
    Biometrika 62, 1975).

    Differences: Fisher's standard error alone, the usual one, is too small for rare hypotheses and
    sparse units (docs/research/inspection-units.md has how often either interval misses).
    """
    known = np.isfinite(values)
    x, y = _from_first(np.asarray(units, np.float64)), _from_first(values)
    n = known.sum(axis=0).astype(np.float64)[:, None]
    mean, power = {}, known.astype(np.float64)
    raised = list(accumulate([x] * _ORDER, np.multiply))
    with np.errstate(divide="ignore", invalid="ignore"):
        for b in range(_ORDER + 1):
            for a in range(_ORDER + 1 - b):
                mean[a, b] = (power.T @ raised[a - 1] if a else power.sum(axis=0)[:, None]) / n
            power = power * y
        xx, yy = _central(mean, 2, 0), _central(mean, 0, 2)
        varies = (xx > _CONSTANT * mean[2, 0]) & (yy > _CONSTANT * mean[0, 2]) & (n > _ORDER)
        xx, yy = np.where(varies, xx, np.nan), np.where(varies, yy, np.nan)
        both = np.sqrt(xx) * np.sqrt(yy)
        r = np.clip(_central(mean, 1, 1) / both, -_NEAREST_ONE, _NEAREST_ONE)
        m22 = _central(mean, 2, 2) / (xx * yy)
        influence = (
            m22
            - r * (_central(mean, 3, 1) / (xx * both) + _central(mean, 1, 3) / (both * yy))
            + r * r / 4 * (_central(mean, 4, 0) / xx**2 + 2 * m22 + _central(mean, 0, 4) / yy**2)
        )
        of_any = np.sqrt(np.maximum(influence, 0) / n) / (1 - r * r)
        half = _quantile(alpha) * np.maximum(of_any, 1 / np.sqrt(n - 3))
        half = half * np.sqrt(effects)[:, None]
        z = np.arctanh(r)
        return Scores(r, np.tanh(z - half), np.tanh(z + half))


def _from_first(columns: _Floats) -> _Floats:
    """Return columns less their first known value, within -1..1, 0 where not known: no power cancels."""
    known = np.isfinite(columns)
    first = columns[known.argmax(axis=0), np.arange(columns.shape[1])]
    moved = np.where(known, columns - first, 0.0)
    scale = np.abs(moved).max(axis=0, initial=0.0)
    return np.asarray(moved / np.where(scale > 0, scale, 1.0))


def _central(mean: Mapping[tuple[int, int], Any], a: int, b: int) -> Any:
    """Return the mean of (x - mean x)^a (y - mean y)^b, of the means of x^i y^j."""
    x, y = mean[1, 0], mean[0, 1]
    return sum(
        comb(a, i) * comb(b, j) * (-x) ** (a - i) * (-y) ** (b - j) * mean[i, j]
        for i in range(a + 1)
        for j in range(b + 1)
    )


def information(units: NDArray[Any], values: _Floats, alpha: float, effects: _Floats) -> Scores:
    """Return the mutual information of each unit and hypothesis, in bits, both in bins.

    Arguments are as of `pearson`. Bins are made of the first inputs: eighths of the units'
    activations by rank, and of a hypothesis with more than 8 values; else its values. The estimate
    from counts is too high by about (k - kx - ky + 1) / (2 n ln 2), k the numbers of cells and bins
    that are not empty, and that is taken away (Miller, 1955); it stays within 0 and what so many
    bins can tell. The interval's half-width is the normal one (from the variance of the cells'
    pointwise information), and with it the bound of a chi-squared variable (Laurent and Massart,
    Annals of Statistics 28, 2000), which is what the estimate follows where there is no information.
    """
    first = np.asarray(units[:BINNED_BY], np.float64)
    edges = np.quantile(first, np.arange(1, BINS) / BINS, axis=0, method="inverted_cdf")
    hypotheses = values.shape[1]
    counts = np.zeros((hypotheses * BINS, BINS * units.shape[1]), np.float32)
    for start in range(0, len(units), _ROWS):
        some = values[start : start + _ROWS]
        hot = np.zeros((len(some), hypotheses, BINS), np.float32)
        for h in range(hypotheses):
            known = np.flatnonzero(np.isfinite(some[:, h]))
            hot[known, h, np.searchsorted(_cuts(values[:BINNED_BY, h]), some[known, h])] = 1
        bins = (units[start : start + _ROWS] > edges[:, None, :]).sum(axis=0)
        of_bins = (bins[:, None, :] == np.arange(BINS)[:, None]).astype(np.float32)
        counts += hot.reshape(len(some), -1).T @ of_bins.reshape(len(some), -1)
    cells = counts.reshape(hypotheses, BINS, BINS, -1)
    found = [_of_counts(*one, alpha) for one in zip(cells, effects, strict=True)]
    return Scores(*(np.array(part) for part in zip(*found, strict=True)))


def _of_counts(counts: NDArray[np.float32], effect: float, alpha: float) -> tuple[_Floats, ...]:
    """Return the scores of one hypothesis, and their bounds; `counts` is [its bins, bins, units]."""
    n = max(counts[:, :, 0].sum(dtype=np.float64), 1.0)
    p = counts.astype(np.float64) / n
    of_value, of_unit = p.sum(axis=1, keepdims=True), p.sum(axis=0, keepdims=True)
    with np.errstate(divide="ignore", invalid="ignore"):
        pointwise = np.where(p > 0, np.log2(p / (of_unit * of_value)), 0.0)
    plain = (p * pointwise).sum(axis=(0, 1))
    variance = (p * pointwise**2).sum(axis=(0, 1)) - plain**2
    cells, kx, ky = (np.count_nonzero(one, axis=(0, 1)) for one in (p, of_unit, of_value))
    scale = 2 * n * log(2)
    free, tail = (kx - 1) * (ky - 1), -log(alpha)
    half = _quantile(alpha) * np.sqrt(np.maximum(variance, 0) / n * effect)
    half = half + (2 * np.sqrt(free * tail) + 2 * tail) / scale * effect
    most = np.log2(np.maximum(np.minimum(kx, ky), 1))  # what so many bins can tell
    score = np.minimum(np.maximum(plain - (cells - kx - ky + 1) / scale, 0.0), most)
    ends = (score, np.maximum(score - half, 0.0), np.minimum(score + half, most))
    return tuple(np.where((kx < 2) | (ky < 2), np.nan, one) for one in ends)


def _cuts(values: _Floats) -> _Floats:
    """Return what separates a hypothesis' bins: a value is in the first bin whose cut it isn't above."""
    values = values[np.isfinite(values)]
    distinct = np.unique(values)
    if not distinct.size or set(distinct.tolist()) <= {0.0, 1.0}:
        return np.array([0.5])
    if distinct.size <= BINS:
        return (distinct[1:] + distinct[:-1]) / 2 if distinct.size > 1 else distinct
    return np.unique(np.quantile(values, np.arange(1, BINS) / BINS, method="inverted_cdf"))


BY_UNIT: Mapping[MeasureName, Callable[[NDArray[Any], _Floats, float, _Floats], Scores]] = {
    "pearson": pearson,
    "mutual-information": information,
}
"""What scores each unit by itself."""


def scores_by_unit(
    name: MeasureName, units: NDArray[np.float32], values: _Floats, alpha: float, effects: _Floats
) -> Scores:
    """Return the scores of all units by a measure in `BY_UNIT`, whose copies are of some at a time."""
    starts = range(0, units.shape[1], _COLUMNS)
    parts = [BY_UNIT[name](units[:, at : at + _COLUMNS], values, alpha, effects) for at in starts]
    return Scores(*(np.concatenate(part, axis=1) for part in zip(*parts, strict=True)))


def logistic_regression() -> Any:
    """Return scikit-learn's class, which f1 needs. Raises UsageError where it is missing."""
    return extras.scikit_learn("linear_model", "inspection", "the measure f1").LogisticRegression


def logistic_f1(
    layers: Sequence[NDArray[Any]],
    values: _Floats,
    groups: _Groups,
    alpha: float,
    effects: _Floats,
) -> tuple[Scores, _Floats]:
    """Return F1 of predicting binary hypotheses from all units of a layer by logistic regression, 0 to 1.

    `layers` are the activations of each, [inputs, units]; the other arguments are as of `pearson`.
    Of the `groups` of inputs, [inputs] numbers, which come in random order, every other one trains
    (L2, C = 1, classes weighted by their rarity, activations standardised), the others are held
    out; F1 is theirs, for the rarer value of the hypothesis. The interval is Clopper and Pearson's of
    tp / (tp + fp + fn), of which F1 is a monotone function, for the model trained. The first
    `JOINT_RECORDS` inputs count. The second result is F1 of always saying the rarer value. Raises
    UsageError without scikit-learn.
    """
    regression = logistic_regression()
    values, groups = values[:JOINT_RECORDS], groups[:JOINT_RECORDS]
    found = np.full((3, values.shape[1], len(layers)), np.nan)
    guesses = np.full(values.shape[1], np.nan)
    for h, column in enumerate(values.T):
        known = np.flatnonzero(np.isfinite(column))
        if not is_scorable(column) or not is_binary(column):
            continue
        truth = column[known] == (np.mean(column[known]) <= 0.5)
        guesses[h] = 2 * truth.mean() / (1 + truth.mean())
        trains = groups[known] % 2 == 0
        if len(np.unique(truth[trains])) < 2 or trains.all():
            continue
        for place, layer in enumerate(layers):
            units = np.asarray(layer[known], np.float64)
            mean, spread = units[trains].mean(axis=0), units[trains].std(axis=0)
            scaled = (units - mean) / np.where(spread == 0, 1.0, spread)
            model = regression(class_weight="balanced", max_iter=200)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # that it has not converged
                model.fit(scaled[trains], truth[trains])
            said, true = model.predict(scaled[~trains]), truth[~trains]
            hits, trials = int((said & true).sum()), int((said | true).sum())
            if trials:
                count, level = trials / effects[h], 1 - alpha / 2
                low = 1 - upper_bound((trials - hits) / effects[h], count, level=level)
                high = upper_bound(hits / effects[h], count, level=level)
                jaccard = np.array([hits / trials, max(low, 0.0), high])
                found[:, h, place] = 2 * jaccard / (1 + jaccard)
    return Scores(*found), guesses


def is_binary(values: _Floats) -> bool:
    """Whether a hypothesis' values are all 0 or 1; NaN are none."""
    return bool(np.isin(values[np.isfinite(values)], (0.0, 1.0)).all())


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

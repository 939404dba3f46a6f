"""Measures of pairs of classes: distance, leak, confusion and bias, as matrices [classes, classes].

All of them are symmetric but those that are called directional; NaN is what isn't known, and the
diagonal of directional ones is what a class keeps.
"""

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from edgeflare.errors import UsageError
from edgeflare_whitebox.activations import Activations
from edgeflare_whitebox.coverage import scaled_units

Pairs: TypeAlias = NDArray[np.float64]
"""A figure for each pair of classes, float64 [classes, classes]."""
_Disparity: TypeAlias = Callable[[Pairs, Pairs], Pairs]

LEAST_INPUTS = 10
"""Pairs of fewer inputs than this have no confusion."""
_CLOSE = 1e-6
"""Squares of distances below this share of those of the vectors are not taken from products."""


class ActivationProbabilities:
    """The neuron activation probability matrix of a model, from one input after the other.

    Each layer's tensor is scaled to 0..1 by its own minimum and maximum on each input, then each
    channel is averaged over space; a unit is active where that is above `threshold`. A layer that
    is constant over an input has no active unit. Inputs count for the classes that the model
    predicts for them, so that no labels are needed.

    Source: Tian et al., "Testing DNN Image Classifiers for Confusion & Bias Errors", ICSE 2020,
    section III-A and equations 1 and 2; threshold 0.5 and the scaling as in its section V.
    """

    def __init__(self, layers: Sequence[str], classes: int, *, threshold: float = 0.5) -> None:
        """`layers` are names of tensors, such as `pre_activation_layers`; `classes` their number.

        Raises UsageError for no layers, less than two classes, and a threshold outside 0..1.
        """
        if not layers:
            raise UsageError("activation probabilities are those of one layer or more")
        if classes < 2:
            raise UsageError(f"there are two classes or more, not {classes}")
        if not 0 <= threshold <= 1:
            raise UsageError(f"the threshold of activity is from 0 to 1, not {threshold}")
        self.layers = tuple(layers)
        self.classes = classes
        self.threshold = threshold
        self.inputs: NDArray[np.int64] = np.zeros(classes, np.int64)
        """The number of inputs of each predicted class, int64 [classes]."""
        self._active: NDArray[np.int32] | None = None

    def update(
        self, inputs: Iterable[Activations], predicted: Iterable[Collection[int]] | None = None
    ) -> None:
        """Count inputs for their predicted classes.

        `predicted` has the classes of each input in a multi-label task: the input counts once for
        each of them. None: the one class that its activations tell; an input without one (below 0)
        counts for nothing.

        Raises UsageError for a class that there isn't, for another number of predictions than of
        inputs, and where a layer is missing or its number of units differs.
        """
        own = ((one, (one.label,) if one.label >= 0 else ()) for one in inputs)
        for one, labels in own if predicted is None else _both(inputs, predicted):
            several = set(labels)
            if unknown := [label for label in several if not 0 <= label < self.classes]:
                raise UsageError(
                    f"there is no class {unknown[0]}, classes are 0 to {self.classes - 1}"
                )
            if missing := [name for name in self.layers if name not in one.layers]:
                raise UsageError(
                    f"the activations have no layer {missing[0]!r}, which is asked for"
                )
            units = np.concatenate([scaled_units(one.layers[name]) for name in self.layers])
            if self._active is None:
                self._active = np.zeros((self.classes, units.size), np.int32)
            if units.size != self._active.shape[1]:
                raise UsageError(
                    f"these layers have {units.size:,} units, and had {self._active.shape[1]:,} before"
                )
            for label in several:
                self._active[label] += units > self.threshold
                self.inputs[label] += 1

    @property
    def matrix(self) -> NDArray[np.float64]:
        """The probabilities, float64 [units, classes], 0..1; NaN of a class without inputs.

        Raises UsageError before the first input.
        """
        classes, columns = self._columns()
        found = np.full((columns.shape[1], self.classes), np.nan)
        found[:, classes] = columns.T
        return found

    @property
    def distances(self) -> NDArray[np.float64]:
        """The distances of classes, see `napvd`; NaN of a class without inputs.

        Raises UsageError before the first input.
        """
        classes, columns = self._columns()
        found = np.full((self.classes, self.classes), np.nan)
        found[np.ix_(classes, classes)] = napvd(columns.T)
        return found

    def _columns(self) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
        """Return the classes with inputs, and their probabilities, float64 [those, units]."""
        classes = np.flatnonzero(self.inputs)
        if self._active is None or not classes.size:
            raise UsageError("no input has been counted yet")
        return classes, self._active[classes] / self.inputs[classes, None]


def napvd(probabilities: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the neuron activation probability vector distance of all pairs of classes.

    `probabilities` is float64 [units, classes], as `ActivationProbabilities.matrix`; the distances
    are Euclidean, float64 [classes, classes], NaN of a class without inputs. A small one means that
    the model may confuse the two classes. Source: Tian et al., ICSE 2020, equation 2.
    """
    rows = np.ascontiguousarray(np.asarray(probabilities, np.float64).T)
    sums = np.square(rows).sum(axis=1)
    both = sums[:, None] + sums
    squares = np.maximum(both - 2 * (rows @ rows.T), 0.0)
    for first, second in np.argwhere(squares <= _CLOSE * both).tolist():  # rounding would show
        squares[first, second] = np.square(rows[first] - rows[second]).sum()
    return np.asarray(np.sqrt(squares))


def _both(
    inputs: Iterable[Activations], predicted: Iterable[Collection[int]]
) -> Iterable[tuple[Activations, Collection[int]]]:
    try:
        yield from zip(inputs, predicted, strict=True)
    except ValueError as error:
        raise UsageError("each input needs the classes that are predicted for it") from error


def memberships(labels: ArrayLike, classes: int) -> NDArray[np.bool_]:
    """Return which classes each input has, bool [inputs, classes].

    `labels` are class indices [inputs], -1 of an input without one, or bool [inputs, classes]
    already. Raises UsageError for anything else.
    """
    given = np.asarray(labels)
    if given.dtype == bool and given.ndim == 2 and given.shape[1] == classes:
        return given
    if given.ndim != 1 or (given.size and given.dtype.kind not in "iu"):
        raise UsageError(
            f"labels are class indices [inputs] or bool [inputs, {classes}], not {given.dtype} "
            f"{list(given.shape)}"
        )
    if given.size and not -1 <= given.min() <= given.max() < classes:
        raise UsageError(f"labels are from 0 to {classes - 1}, or -1 where there is none")
    found: NDArray[np.bool_] = given[:, None] == np.arange(classes)
    return found


def directional_type1_confusion(
    labels: ArrayLike, predicted: ArrayLike, classes: int, *, least: int = LEAST_INPUTS
) -> Pairs:
    """Return how often the model says b in place of a, by a (row) and b (column), 0..1.

    That is the share, among inputs that have a and not b, of those for which b is predicted and a
    isn't; NaN where there are fewer than `least` such inputs, and on the diagonal. `labels` and
    `predicted` are as `memberships` takes them. Source: Tian et al., ICSE 2020, section IV-B.
    """
    truth, said = _pair_of(labels, predicted, classes)
    return _shares(truth & ~said, ~truth & said, truth, least)


def directional_type2_confusion(
    labels: ArrayLike, predicted: ArrayLike, classes: int, *, least: int = LEAST_INPUTS
) -> Pairs:
    """Return how often the model says b beside a, by a (row) and b (column), 0..1.

    That is the share, among inputs that have a and not b, of those for which both are predicted;
    for multi-label tasks, else as `directional_type1_confusion`.
    """
    truth, said = _pair_of(labels, predicted, classes)
    return _shares(truth & said, ~truth & said, truth, least)


def both_directions(directional: Pairs) -> Pairs:
    """Return the mean of both directions, of one where the other isn't known."""
    either = np.stack([directional, directional.T])
    known = np.isfinite(either).sum(axis=0)
    total = np.where(np.isfinite(either), either, 0.0).sum(axis=0)
    return np.where(known > 0, total / np.maximum(known, 1), np.nan)


def directional_leak(
    scores: NDArray[np.float64], members: NDArray[np.bool_], *, least: int = 1
) -> Pairs:
    """Return the mean probability of b among the inputs of a, by a (row) and b (column).

    `scores` are probabilities, float64 [inputs, classes], `members` bool [inputs, classes], such as
    what the model decides: then no labels are needed, nor a look into the model. NaN where a has
    fewer than `least` inputs. This is the black-box baseline beside NAPVD.
    """
    counts = members.sum(axis=0)
    sums = members.T.astype(np.float64) @ scores
    return np.where(counts[:, None] >= least, sums / np.maximum(counts, 1)[:, None], np.nan)


def avg_bias(distances: Pairs, *, nearer_than: float | None = None) -> Pairs:
    """Return the average bias of all pairs (a, b) over third classes c, 0..1; NaN on the diagonal.

    It is the mean of abs(D(c, a) - D(c, b)) / (D(c, a) + D(c, b)) over all other classes c; one for
    which both distances are 0 counts as 0. With `nearer_than` a c counts as 0 as well where neither
    a nor b is nearer to it than that; the paper takes the mean less a standard deviation of all
    distances, `near_distance`. Classes without distances are left out. Source: Tian et al., ICSE
    2020, equations 3 and 4, section IV-C.

    Differences: the authors' release halves the figure, and leaves out third classes with which
    neither a nor b is confused in the *ground truth*, which isn't known to whoever asks.
    """

    def disparity(first: Pairs, second: Pairs) -> Pairs:
        total = first + second
        found = np.abs(first - second) / np.where(total > 0, total, 1.0)
        if nearer_than is not None:
            found = np.where((first < nearer_than) | (second < nearer_than), found, 0.0)
        return found

    return _over_third_classes(distances, disparity)


def near_distance(distances: Pairs) -> float:
    """Return the mean less one standard deviation (population) of the distances of all pairs."""
    known = pair_values(distances)
    known = known[np.isfinite(known)]
    return float(known.mean() - known.std()) if known.size else float("nan")


def avg_cd(confusion: Pairs) -> Pairs:
    """Return the average confusion disparity of all pairs (a, b), 0..1; NaN on the diagonal.

    It is the mean over all other classes c of how much more one of the two is confused with c than
    the other; `confusion` is symmetric, see `both_directions`. Where it isn't known of a c, that is
    left out of the mean. Source: Tian et al., ICSE 2020, section IV-B.
    """
    return _over_third_classes(confusion, lambda first, second: np.abs(first - second))


def pair_values(pairs: Pairs) -> NDArray[np.float64]:
    """Return the figures of pairs a < b, in the order of `class_pairs`."""
    found: NDArray[np.float64] = pairs[np.triu_indices(len(pairs), 1)]
    return found


def class_pairs(classes: int) -> list[tuple[int, int]]:
    """Return all pairs a < b: those of the first class first."""
    first, second = np.triu_indices(classes, 1)
    return list(zip(first.tolist(), second.tolist(), strict=True))


def _pair_of(
    labels: ArrayLike, predicted: ArrayLike, classes: int
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    truth, said = memberships(labels, classes), memberships(predicted, classes)
    if len(truth) != len(said):
        raise UsageError(f"there are labels of {len(truth)} inputs, and answers to {len(said)}")
    return truth, said


def _shares(
    of_a: NDArray[np.bool_], of_b: NDArray[np.bool_], truth: NDArray[np.bool_], least: int
) -> Pairs:
    """Return the share of inputs with both `of_a` and `of_b` among those that have a and not b."""
    real = np.float64
    inputs = truth.T.astype(real) @ (~truth).astype(real)
    found = of_a.T.astype(real) @ of_b.astype(real)
    return np.where(inputs >= max(1, least), found / np.maximum(inputs, 1), np.nan)


def _over_third_classes(pairs: Pairs, disparity: _Disparity) -> Pairs:
    """Return the mean of `disparity` over third classes, for all pairs; rows are taken one by one."""
    classes = len(pairs)
    symmetric = np.array(pairs, np.float64)
    np.fill_diagonal(symmetric, np.nan)  # so that no class is a third one beside itself
    found = np.full((classes, classes), np.nan)
    for a in range(classes):
        values = disparity(symmetric[a], symmetric)
        known = np.isfinite(symmetric[a]) & np.isfinite(symmetric)
        counts = known.sum(axis=1)
        sums = np.where(known, values, 0.0).sum(axis=1)
        found[a] = np.where(counts > 0, sums / np.maximum(counts, 1), np.nan)
    np.fill_diagonal(found, np.nan)
    return found

"""How often each unit is active, by the predicted class, and how far classes are apart by it."""

from collections.abc import Collection, Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from edgeflare.errors import UsageError
from edgeflare_whitebox.activations import Activations
from edgeflare_whitebox.coverage import scaled_units

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
        self._active: dict[int, NDArray[np.int64]] = {}

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
        if predicted is None:
            for one in inputs:
                self._count(one, (one.label,) if one.label >= 0 else ())
            return
        for one, labels in _both(inputs, predicted):
            self._count(one, labels)

    def _count(self, one: Activations, labels: Collection[int]) -> None:
        unknown = [label for label in labels if not 0 <= label < self.classes]
        if unknown:
            raise UsageError(f"there is no class {unknown[0]}, classes are 0 to {self.classes - 1}")
        missing = [name for name in self.layers if name not in one.layers]
        if missing:
            raise UsageError(f"the activations have no layer {missing[0]!r}, which is asked for")
        units = np.concatenate([scaled_units(one.layers[name]) for name in self.layers])
        active = units > self.threshold
        for label in set(labels):
            known = self._active.setdefault(label, np.zeros(active.size, np.int64))
            if known.size != active.size:
                raise UsageError(
                    f"these layers have {active.size:,} units, and had {known.size:,} before"
                )
            known += active
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

    def _columns(self) -> tuple[list[int], NDArray[np.float64]]:
        """Return the classes with inputs, and their probabilities, float64 [those, units]."""
        if not self._active:
            raise UsageError("no input has been counted yet")
        classes = sorted(self._active)
        rows = [self._active[one] / self.inputs[one] for one in classes]
        return classes, np.stack(rows)


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

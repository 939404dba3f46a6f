"""How the weights of an operator compare with those of the original's: rounded, moved, others, or of another model."""

from itertools import permutations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edgeflare.models.tensors.graph import ModelStructure, Operator
from edgeflare.triage.agreement import decibels
from edgeflare.triage.pair import Pair
from edgeflare.triage.traced import WORST

_SAME_NUMBERS, _OTHER_WEIGHTS, _OTHER_ROUNDED, _WEIGHTS_OF = 30.0, 60.0, 40.0, 20.0
_FEWEST_WEIGHTS, _UNRELATED, _UNLIKE_WEIGHTS = 64, 0.25, 10.0
_HALF_STEP, _ROUNDED = 0.51, 0.97
"""So many weights of a quantised layer are at most so many of its steps from the original's."""
_MOST_AXES = 5


def compared_weights(
    pair: Pair, first: ModelStructure, second: ModelStructure, there: Operator, operator: Operator
) -> dict[str, Any]:
    """Return how the weights of both operators compare."""
    originals, deployed = _weights_of(first, there), _weights_of(second, operator)
    if not originals or not deployed or originals[0].size != deployed[0].size:
        return {}
    fit = best_axes(originals[0], deployed[0])
    if fit is None or not fit[1]:  # no order of axes fits
        return {}
    is_float = pair.number_format == "float32"
    if originals[0].shape == deployed[0].shape and _have_one_layout(there, operator):
        stated = min(120.0, _ratio(originals[0], deployed[0]))
        if stated < _UNLIKE_WEIGHTS <= fit[0]:
            return {"weights": "other-order"}
        fit = stated, tuple(range(deployed[0].ndim))
    turned = originals[0].transpose(fit[1]).reshape(deployed[0].shape)
    is_folded = any("batchnorm" in step.kind.lower().replace("_", "") for step in first.operators)
    if not is_float and _is_rounded(turned, deployed[0], is_scaled=is_folded):
        return {"weights": "rounded"}
    ordered = _ratio(np.sort(originals[0].ravel()), np.sort(deployed[0].ravel()))
    # equal when sorted and unlike in any order of axes: the numbers were moved, as by another layout
    if fit[0] < _UNLIKE_WEIGHTS and ordered > _SAME_NUMBERS:
        return {"weights": "other-order"}
    if fit[0] < (_OTHER_WEIGHTS if is_float else _OTHER_ROUNDED):
        whose = None
        for name, weights in first.constants.items():
            if weights.size == deployed[0].size and weights.ndim == deployed[0].ndim:
                near = best_axes(weights, deployed[0])
                if near is not None and near[0] > _WEIGHTS_OF:
                    whose = name
                    break
        is_unrelated = whose is None and _are_unrelated(turned, deployed[0])
        weights_are = "unrelated" if is_unrelated else "differ"
        return {"weights": weights_are, "weights_fit": fit[0], "weights_of": whose}
    return {"weights": "same"} if is_float else {}


def _weights_of(structure: ModelStructure, operator: Operator) -> list[NDArray[np.float32]]:
    constants = (structure.constants.get(name) for name in operator.inputs)
    return [weights for weights in constants if weights is not None and weights.size > 1]


def weights_fit(
    first: ModelStructure, second: ModelStructure, there: Operator, operator: Operator
) -> float:
    """Return how well the weights of two operators agree in their best order of axes, in dB."""
    pairs = [
        best_axes(a, b) for a in _weights_of(first, there) for b in _weights_of(second, operator)
    ]
    return max((fit[0] for fit in pairs if fit is not None), default=WORST)


def _have_one_layout(first: Operator, second: Operator) -> bool:
    """Whether both keep weights in one order of axes, as one operator of one format does."""
    kinds = {first.kind, second.kind}
    turned = [bool(operator.attributes.get("transB")) for operator in (first, second)]
    return (len(kinds) == 1 or kinds == {"Gemm", "MatMul"}) and turned[0] == turned[1]


def _is_rounded(
    original: NDArray[np.float32], deployed: NDArray[np.float32], *, is_scaled: bool
) -> bool:
    """Whether weights are the original's, rounded to steps, one for all or one for each channel.

    `is_scaled`: each channel may have a factor, as of a batch normalisation that became part of it.
    """
    for axis in (None, *range(deployed.ndim)):
        rows = [
            weights.reshape(1, -1)
            if axis is None
            else np.moveaxis(weights, axis, 0).reshape(weights.shape[axis], -1)
            for weights in (original, deployed)
        ]
        if is_scaled:
            squares = (rows[0] ** 2).sum(axis=1) + 1e-20
            rows[0] = rows[0] * ((rows[0] * rows[1]).sum(axis=1) / squares)[:, None]
        steps = np.array([_step(row) for row in rows[1]])
        # a channel that was rounded to zero altogether tells no step of its own
        steps = np.where(
            np.isfinite(steps), steps, np.max(steps, initial=0, where=np.isfinite(steps))
        )
        near = np.abs(rows[0] - rows[1]) <= _HALF_STEP * steps[:, None] + 1e-7
        if float(near.mean()) >= _ROUNDED:
            return True
    return False


def _are_unrelated(original: NDArray[np.float32], deployed: NDArray[np.float32]) -> bool:
    """Whether weights have nothing in common: neither those of this operator nor a part of them."""
    both = np.stack([original.ravel(), deployed.ravel()]).astype(np.float64)
    spread = both.std(axis=1)
    if both.shape[1] < _FEWEST_WEIGHTS or not 1 / 3 < (spread[1] + 1e-20) / (spread[0] + 1e-20) < 3:
        return False
    return abs(float(np.asarray(np.corrcoef(both))[0, 1])) < _UNRELATED


def _step(weights: NDArray[np.float32]) -> float:
    """Return the least difference between two weights that aren't the same; infinity where all are."""
    levels = np.unique(weights)
    apart = np.diff(levels)
    apart = apart[apart > 1e-6 * float(np.abs(levels).max())]
    return float(apart.min()) if apart.size else np.inf


def _ratio(first: NDArray[Any], second: NDArray[Any]) -> float:
    error = float(((first - second) ** 2).mean())
    return decibels(10 * np.log10((float(first.var()) + 1e-30) / (error + 1e-30)))


def best_axes(
    first: NDArray[np.float32], second: NDArray[np.float32]
) -> tuple[float, tuple[int, ...]] | None:
    """Return how well two weights agree in the best order of axes, in dB, and that order.

    None for other sizes. Axes of length 1 don't count.
    """
    if first.size != second.size or first.ndim > _MOST_AXES:
        return None
    best: tuple[float, tuple[int, ...]] = (WORST, ())
    sizes = tuple(n for n in second.shape if n != 1)
    for axes in permutations(range(first.ndim)):
        turned = first.transpose(axes)
        if tuple(n for n in turned.shape if n != 1) == sizes:
            best = max(best, (min(120.0, _ratio(turned.reshape(second.shape), second)), axes))
    return best

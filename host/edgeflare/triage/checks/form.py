"""Whether the deployed model's output is the original's in another form: axes, units, a softmax.

A form is fitted on every second seed where it has numbers, and judged on the others. There is no
offset: with one, a second sigmoid passes for a unit.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import permutations
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from edgeflare.triage.agreement import GAIN, Values, agreement, by_seed, in_shape_of
from edgeflare.triage.cause import CORRECTED, Cause
from edgeflare.triage.pair import Pair

_CHANNELS, _UNITS = (3, 128), (2, 64)
_BOX_CHANNELS = 4
_UNIT = 0.1
_BETTER = 3.0
_STEADY, _CHANGING = 1e-3, 1e-2
_STEEP = 60.0
_TINY = 1e-12
_LOWEST = -20.0
Boxes = Callable[[Values], Sequence[Values]]
BOXES: Mapping[str, Boxes] = {
    "corners-to-centre": lambda v: [(v[0] + v[2]) / 2, (v[1] + v[3]) / 2, v[2] - v[0], v[3] - v[1]],
    "centre-to-corners": lambda v: [
        *(v[0] - v[2] / 2, v[1] - v[3] / 2),
        *(v[0] + v[2] / 2, v[1] + v[3] / 2),
    ],
    "x-y-exchanged": lambda v: [v[1], v[0], v[3], v[2]],
    "corner-size-to-corners": lambda v: [v[0], v[1], v[0] + v[2], v[1] + v[3]],
    "corners-to-corner-size": lambda v: [v[0], v[1], v[2] - v[0], v[3] - v[1]],
}
"""What four channels of boxes may be in place of what they are."""


class Form(NamedTuple):
    """Another form of an output: both models' values brought to one, and the numbers of it."""

    what: str
    original: Values
    deployed: Values
    numbers: Mapping[str, Any] = {}


def forms(pair: Pair) -> Iterator[Cause]:
    """Yield the form of each output in which the pair agrees; note how many don't fit."""
    tried, best_of_all = 0, -np.inf
    for place, (first, second) in enumerate(zip(*pair.both, strict=False)):
        stated = agreement(first, in_shape_of(second, first))
        if stated >= pair.expected:
            continue
        best: tuple[float, Form] | None = None
        judged = np.arange(len(first)) % 2 == 1
        for form in _forms(first, second, is_classes=pair.classes_at == place):
            if form.original.shape != form.deployed.shape:
                continue
            reached = agreement(form.original[judged], form.deployed[judged])
            tried, best_of_all = tried + 1, max(best_of_all, reached)
            clear = reached - max(stated, pair.agreement) >= GAIN
            if reached >= pair.expected and clear and (best is None or reached > best[0] + _BETTER):
                best = reached, form
        if best is not None:
            reached, form = best
            yield Cause(
                *("interface", form.what, "corrected", CORRECTED),
                names=(pair.deployed.outputs[place].name,),
                evidence={"agreement": reached, "stated": stated, **form.numbers},
                gain=reached - max(stated, _LOWEST),
            )
    if tried and best_of_all < pair.expected:
        pair.ruled_out["forms"] = {"tried": tried, "best": best_of_all, "needed": pair.expected}


def _forms(first: Values, second: Values, *, is_classes: bool) -> Iterator[Form]:
    yield from _turned(first, second)
    yield from _one_more(first, second)
    second = in_shape_of(second, first)
    if first.shape != second.shape:
        return
    with np.errstate(all="ignore"):
        yield from _functions(first, second, is_classes=is_classes)
        yield from _renumbered(first, second)
        yield from _boxes(first, second)
        yield from _units(first, second)


def _turned(first: Values, second: Values) -> Iterator[Form]:
    shapes = first.shape[1:], second.shape[1:]
    if len(shapes[0]) < 2 or sorted(shapes[0]) != sorted(shapes[1]):
        return
    for axes in permutations(range(len(shapes[1]))):
        turned = second.transpose(0, *(axis + 1 for axis in axes))
        if axes != tuple(range(len(axes))) and turned.shape == first.shape:
            yield Form("axes", first, turned, {"axes": axes})


def _one_more(first: Values, second: Values) -> Iterator[Form]:
    """Yield the outputs without one class that only one of them has: a background."""
    if first.ndim != second.ndim or first.shape == second.shape:
        return
    axes = [at for at in range(1, first.ndim) if first.shape[at] != second.shape[at]]
    if len(axes) != 1 or abs(first.shape[axes[0]] - second.shape[axes[0]]) != 1:
        return
    is_deployed = second.shape[axes[0]] > first.shape[axes[0]]
    count = max(first.shape[axes[0]], second.shape[axes[0]])
    for which, kept in (("first", np.arange(1, count)), ("last", np.arange(count - 1))):
        numbers = {"which": which, "side": "deployed" if is_deployed else "original"}
        original, deployed = (
            (first, np.take(second, kept, axes[0]))
            if is_deployed
            else (np.take(first, kept, axes[0]), second)
        )
        yield Form("one-class-more", original, deployed, numbers)


def _functions(first: Values, second: Values, *, is_classes: bool) -> Iterator[Form]:
    for axis in (-1,) if first.ndim < 3 else (-1, 1):
        yield Form("form", first, _softmax(second, axis), {"function": "softmax"})
    yield Form(
        "form", first, 1 / (1 + np.exp(-np.clip(second, -_STEEP, _STEEP))), _named("sigmoid")
    )
    yield Form("form", first, np.exp(np.clip(second, -_STEEP, _STEEP)), _named("exp"))
    yield Form("form", first, np.log(np.clip(second, _TINY, None)), _named("log"))
    lengths = [np.linalg.norm(by_seed(output), axis=1) for output in (first, second)]
    steady = [float(length.std()) < _STEADY * float(length.mean()) for length in lengths]
    changing = [float(length.std()) > _CHANGING * float(length.mean()) for length in lengths]
    shape = (-1, *(1,) * (first.ndim - 1))
    if steady[0] and changing[1]:
        yield Form("form", first, second / lengths[1].reshape(shape), _named("normalised"))
    if steady[1] and changing[0]:
        yield Form("form", first / lengths[0].reshape(shape), second, _named("original-normalised"))
    if is_classes:
        yield Form("form", _softmax(first, -1), second, _named("original-softmax"))
        yield Form("form", np.log(np.clip(first, _TINY, None)), second, _named("original-log"))
        logarithms = [
            np.log(np.clip(_softmax(scores, -1), _TINY, None)) for scores in (first, second)
        ]
        yield Form("form", logarithms[0], second, _named("original-log-softmax"))
        yield Form("form", first, logarithms[1], _named("log-softmax"))


def _named(function: str) -> Mapping[str, Any]:
    return {"function": function}


def _renumbered(first: Values, second: Values) -> Iterator[Form]:
    """Yield a dense output whose channels are renumbered, assigned on every second seed."""
    fitted = np.arange(len(first)) % 2 == 0
    for axis in range(1, first.ndim):
        count = first.shape[axis]
        if first.ndim < 3 or not _CHANNELS[0] <= count <= _CHANNELS[1]:
            continue
        rows = [
            np.moveaxis(output[fitted], axis, 0).reshape(count, -1) for output in (first, second)
        ]
        standard = [_standard(row) for row in rows]
        likeness = standard[0] @ standard[1].T / rows[0].shape[1] + 1e-3 * np.eye(count)
        order = linear_sum_assignment(-likeness)[1]
        moved = {at: int(number) for at, number in enumerate(order) if at != number}
        if len(moved) >= 2:
            yield Form(
                "classes-exchanged",
                first,
                np.take(second, order, axis),
                {"classes": moved, "axis": axis},
            )


def _standard(rows: Values) -> Values:
    spread = rows.std(axis=1, keepdims=True) + _TINY
    return np.asarray((rows - rows.mean(axis=1, keepdims=True)) / spread)


def _boxes(first: Values, second: Values) -> Iterator[Form]:
    for axis in range(1, first.ndim):
        if first.ndim < 3 or not _BOX_CHANNELS <= first.shape[axis] <= _CHANNELS[1]:
            continue
        channels = np.moveaxis(second, axis, 0)
        for name, make in BOXES.items():
            changed = [np.stack(make(channels[:_BOX_CHANNELS])), channels[_BOX_CHANNELS:]]
            turned = np.moveaxis(np.concatenate(changed), 0, axis)
            yield Form("boxes", first, turned, {"boxes": name, "axis": axis})


def _units(first: Values, second: Values) -> Iterator[Form]:
    """Yield one factor for all values, and one for each channel of an axis."""
    fitted = np.arange(len(first)) % 2 == 0
    every = tuple(range(first.ndim))
    groups: list[tuple[int | None, tuple[int, ...]]] = [(None, every)]
    groups += [
        (axis, tuple(each for each in every if each != axis))
        for axis in range(1, first.ndim)
        if _UNITS[0] <= first.shape[axis] <= _UNITS[1]
    ]
    for axis, rest in groups:
        original, deployed = first[fitted], second[fitted]
        size = (deployed**2).sum(axis=rest, keepdims=True) + 1e-30
        factors: NDArray[np.float64] = (original * deployed).sum(axis=rest, keepdims=True) / size
        if (factors > 0).all() and (np.abs(factors - 1) > _UNIT).any():
            numbers = {"factors": factors.ravel().tolist(), "axis": axis}
            yield Form("units", first, second * factors, numbers)


def _softmax(values: Values, axis: int) -> Values:
    raised = np.exp(values - values.max(axis=axis, keepdims=True))
    return np.asarray(raised / raised.sum(axis=axis, keepdims=True))

"""What is exchanged between the two models: inputs, outputs, or the classes' numbers."""

from collections.abc import Iterator, Sequence
from itertools import permutations
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from edgeflare.triage.agreement import (
    GAIN,
    Outputs,
    Values,
    agreement,
    by_seed,
    in_shape_of,
    least_agreement,
    stacked,
)
from edgeflare.triage.cause import CORRECTED, MOST_LIKE, Cause, Proof
from edgeflare.triage.pair import Pair

_MOST_INPUTS, _MOST_OUTPUTS, _MOST_CLASSES = 4, 8, 200
_QUANTILES = np.linspace(0, 1, 41)
_NEAR, _CLEAR = 0.5, 3.0
_FEWEST_SEEDS, _SAME_CLASS = 12, 0.8
_MORE = 0.3
_ACTIVE = 0.02
_MOST_SLOTS = 300
"""Detections of one image may come in another order: so many slots are matched before outputs are compared."""


def exchanged_inputs(pair: Pair) -> Iterator[Cause]:
    """Yield the order of the deployed model's inputs in which the pair agrees."""
    inputs = pair.deployed.inputs
    count = len(inputs)
    if not 1 < count <= _MOST_INPUTS or len(pair.original.inputs) != count:
        return
    tried, best = 0, -np.inf
    for order in permutations(range(count)):
        kinds = [(tensor.shape, tensor.dtype) for tensor in inputs]
        if order == tuple(range(count)) or [kinds[place] for place in order] != kinds:
            continue
        runs = []
        for seed in pair.places:
            tensors = pair.tensors(pair.deployed, seed)
            runs.append(pair.deployed.run([tensors[place] for place in order]))
        answers = stacked(runs)
        reached = -np.inf if answers is None else least_agreement(pair.both[0], answers)
        tried, best = tried + 1, max(best, reached)
        if pair.corrects(reached):
            yield Cause(
                *("interface", "inputs-exchanged", "corrected", CORRECTED),
                names=tuple(inputs[place].name for place in order),
                evidence={"agreement": reached, "stated": pair.agreement},
                change=_stated_order(pair, order),
                gain=reached - pair.agreement,
            )
    if tried and not pair.corrects(best):
        pair.ruled_out["input-orders"] = {"tried": tried, "best": best, "needed": pair.expected}


def _stated_order(pair: Pair, order: tuple[int, ...]) -> dict[str, Any]:
    """Return the inputs in that order, and what states it where samples become all of them."""
    names = [one.name for one in pair.deployed.inputs]
    change: dict[str, Any] = {"inputs": [names[place] for place in order]}
    parts = pair.deployed.file.given.names
    if len(parts) == len(names):
        stated = [names[order.index(names.index(part))] for part in parts]
        change["input_name"] = ",".join(stated)
    return change


def exchanged_outputs(pair: Pair) -> Iterator[Cause]:
    """Yield outputs that hold what others of the original do, by their values; names may mislead."""
    first, second = pair.both
    if not 1 < len(first) == len(second) <= _MOST_OUTPUTS:
        return
    cost = np.array([[_apart(output, candidate) for candidate in second] for output in first])
    rows, columns = linear_sum_assignment(cost)
    moved = [int(row) for row, column in zip(rows, columns, strict=True) if row != column]
    if not moved:
        return
    now, then = cost[moved, moved], cost[moved, columns[moved]]
    if then.max() >= _NEAR or not (now.min() > _NEAR or now.sum() > _CLEAR * then.sum() + _NEAR):
        return
    ordered = tuple(in_shape_of(second[at], first[place]) for place, at in enumerate(columns))
    reached = least_agreement(first, with_matched_slots(first, ordered))
    pair.exchanged_outputs, pair.output_order = ordered, tuple(map(int, columns))
    yield Cause(
        *("interface", "outputs-exchanged", *_proof(pair, reached)),
        names=tuple(pair.deployed.outputs[columns[place]].name for place in moved),
        evidence={
            "holds": [pair.original.outputs[place].name for place in moved],
            "distance": (float(now.mean()), float(then.mean())),
            "agreement": reached,
            "stated": pair.agreement,
        },
        gain=30,
    )


def _proof(pair: Pair, reached: float) -> tuple[Proof, float]:
    """Return proof and strength: of an exchange that leaves the pair off another fault is sought, too."""
    return ("corrected", CORRECTED) if pair.corrects(reached) else ("indicated", MOST_LIKE)


def _apart(first: Values, second: Values) -> float:
    """Return how unlike the values of two outputs are: their quantiles, and what changes by seed."""
    if first[0].size != second[0].size:
        return 1e3
    spread = float(first.std() + second.std()) + 1e-9
    quantiles = np.abs(np.quantile(first, _QUANTILES) - np.quantile(second, _QUANTILES)).mean()
    if first.std() > 0 and second.std() > 0:
        likeness = float(np.corrcoef(first.ravel(), second.ravel())[0, 1])
    else:
        likeness = float(np.allclose(first.ravel(), second.ravel()))
    return float(min(3.0, quantiles / spread) + 1 - np.nan_to_num(likeness))


def exchanged_classes(pair: Pair) -> Iterator[Cause]:
    """Yield the numbers of the deployed model's classes with which both decide alike.

    They are assigned on every second seed, and judged on the others.
    """
    place = pair.classes_at
    if place is None or pair.same_class is None or pair.same_class >= _SAME_CLASS:
        return
    first, second = (by_seed(outputs[place]) for outputs in pair.both)
    count = first.shape[1]
    if not 3 <= count <= _MOST_CLASSES or len(first) < _FEWEST_SEEDS:
        return
    fitted = np.arange(len(first)) % 2 == 0
    order = _assigned(_standard(first)[fitted].T, _standard(second)[fitted].T)
    active = first.std(axis=0) > _ACTIVE * first.std(axis=0).max()
    if (order[active] != np.arange(count)[active]).sum() < 2:
        return
    judged, renumbered = first[~fitted], second[~fitted][:, order]
    same = float((judged.argmax(axis=1) == renumbered.argmax(axis=1)).mean())
    before = float((judged.argmax(axis=1) == second[~fitted].argmax(axis=1)).mean())
    reached = agreement(judged[:, active], renumbered[:, active])
    if same >= _SAME_CLASS and same > before + _MORE and reached > pair.agreement + GAIN:
        moved = {at: int(number) for at, number in enumerate(order) if at != number}
        yield Cause(
            *("interface", "classes-exchanged", *_proof(pair, reached)),
            names=(pair.deployed.outputs[place].name,),
            evidence={"classes": moved, "same_class": (before, same), "agreement": reached},
            gain=reached - pair.agreement - GAIN,  # it has more freedom than a feed that fits
        )


def _standard(values: Values) -> Values:
    return np.asarray((values - values.mean(axis=0)) / (values.std(axis=0) + 1e-9))


def _assigned(first: Values, second: Values) -> NDArray[Any]:
    """Return which row of the second each row of the first is most like; itself where that is even."""
    bonus = 1e-3 * np.eye(len(first))
    return np.asarray(linear_sum_assignment(-(first @ second.T) - bonus)[1])


def with_matched_slots(original: Outputs, deployed: Outputs) -> Outputs:
    """Return the deployed model's detections in the order of the original's, image by image.

    Slots are the longest axis that several outputs share: the second, else the third. Each gets the
    nearest of the deployed model's by all of these outputs together, one to one.
    """
    for axis in (1, 2):
        alike = [
            place
            for place, (first, second) in enumerate(zip(original, deployed, strict=True))
            if first.ndim > axis and first.shape == second.shape
        ]
        lengths = [original[place].shape[axis] for place in alike]
        slots = max(set(lengths), key=lengths.count, default=0)
        together = [place for place in alike if original[place].shape[axis] == slots]
        if len(together) > 1 and 2 <= slots <= _MOST_SLOTS:
            return _slots_matched(original, deployed, together, axis)
    return deployed


def _slots_matched(
    original: Outputs, deployed: Outputs, together: Sequence[int], axis: int
) -> Outputs:
    matched = [output.copy() for output in deployed]

    def rows(values: Values, spread: float) -> Values:
        return np.moveaxis(values, axis - 1, 0).reshape(values.shape[axis - 1], -1) / spread

    for seed in range(len(original[0])):
        cost = np.zeros(())
        for place in together:
            spread = float(original[place].std()) + 1e-9
            first = rows(original[place][seed], spread)[:, None]
            second = rows(deployed[place][seed], spread)[None]
            cost = cost + np.abs(first - second).mean(axis=-1)
        order = linear_sum_assignment(cost)[1]
        for place in together:
            matched[place][seed] = np.take(deployed[place][seed], order, axis=axis - 1)
    return tuple(matched)

"""How well the outputs of two models agree, in decibels, and what healthy pairs reach.

The signal is what changes from seed to seed: an anchor grid, a constant or a bias is none.
"""

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from edgeflare.triage.cause import NumberFormat

Values: TypeAlias = NDArray[np.float64]
Outputs: TypeAlias = tuple[Values, ...]
"""One array an output of a model; its first axis counts the seeds."""

NUMBER_FORMATS: tuple[NumberFormat, ...] = ("int8", "int16", "float16", "float32")
"""The coarsest first: that of a pair is the coarser one of both files."""
HEALTHY: dict[NumberFormat, float] = {"float32": 60.0, "float16": 30.0, "int16": 10.0, "int8": 6.0}
"""What healthy pairs reach: 15 pairs of float32 had 120 dB and more, 6 of float16 36, 3 of int16 29, and
28 of int8 8; 4 of int16 whose quantiser cuts off 2 to 5 % of the input 11 to 20. 11 of 47 faulty int8 pairs lie above it, too: see `MARGIN`."""
MARGIN = 4.0
"""A pair so far below a fresh int8 copy of its original is looked into: healthy ones of one tool chain
were at most 2.5 dB below, faults of one layer 4.2 and more."""
OTHER_TOOLS = 25.0
"""Healthy int8 files of other tool chains were up to 23.4 dB below such a copy."""
GAIN = 6.0
"""What a correction must bring to count: the error is halved twice in amplitude."""
BEST = 150.0
FEWEST_SEEDS = 8
"""Fewer tell nothing of how well a pair agrees."""
_MOST_UNUSABLE = 0.05
_CONSTANT = 1e-12
_TINY = 1e-30


def agreement(original: Values, deployed: Values) -> float:
    """Return how well two outputs agree, in dB, at most 150; minus infinity for other shapes.

    S = 10 log10(sum (a - mean over the seeds of a)^2 / sum (a - b)^2) over all values. A constant
    output counts its own size. Minus infinity, too, where more than 5 % of the values aren't finite;
    fewer count as equal.
    """
    if original.shape != deployed.shape:
        return -np.inf
    unusable = ~(np.isfinite(original) & np.isfinite(deployed))
    if unusable.any():
        if unusable.mean() > _MOST_UNUSABLE:
            return -np.inf
        original, deployed = np.where(unusable, 0, original), np.where(unusable, 0, deployed)
    signal = float(((original - original.mean(axis=0)) ** 2).sum())
    size = float((original**2).sum())
    if signal <= _CONSTANT * size + _TINY:
        signal = size
    error = float(((original - deployed) ** 2).sum())
    return decibels(min(BEST, 10 * np.log10((signal + _TINY) / (error + _TINY))))


def decibels(value: float) -> float:
    """Return a figure in dB to six places: what is behind them differs between processors, and decides nothing."""
    return round(float(value), 6)


def least_agreement(original: Outputs, deployed: Outputs) -> float:
    """Return the least agreement of any output, in dB; minus infinity for other numbers of outputs.

    Axes of length 1 are no difference of shapes.
    """
    if len(original) != len(deployed):
        return -np.inf
    return min(
        agreement(first, in_shape_of(second, first))
        for first, second in zip(original, deployed, strict=True)
    )


def in_shape_of(values: Values, like: Values) -> Values:
    """Return values in the shape of others where only axes of length 1 differ, else as they are."""
    squeezed = [tuple(n for n in output.shape[1:] if n != 1) for output in (values, like)]
    same = squeezed[0] == squeezed[1] and len(values) == len(like)
    return values.reshape(like.shape) if same else values


def stacked(runs: Sequence[Sequence[NDArray[np.float64]]]) -> Outputs | None:
    """Return the answers to several seeds as one array an output; None where shapes change by seed."""
    if len({tuple(output.shape for output in answers) for answers in runs}) != 1:
        return None
    return tuple(np.stack(output) for output in zip(*runs, strict=True))


def coarser(first: NumberFormat, second: NumberFormat) -> NumberFormat:
    """Return the coarser one of two number formats: it limits how well a pair can agree."""
    return min(first, second, key=NUMBER_FORMATS.index)


def by_seed(values: Values) -> Values:
    """Return an output as [seeds, values]."""
    return values.reshape(len(values), -1)

"""Whether the integers of an output can tell apart what the original says: boxes and scores on one scale."""

from collections.abc import Iterator

import numpy as np

from edgeflare.triage.agreement import in_shape_of
from edgeflare.triage.cause import OUTPUT_SCALE, Cause
from edgeflare.triage.pair import Pair

_MOST_LEVELS, _FINER, _STEP = 8, 20, 0.25
_CHANNELS = (2, 128)
_SHARE = 1 / 3
"""So many channels are coarse: a healthy detector has 19 of 85, of rare classes; faults 10 of 14, 52 of 85."""
_DIGITS = 7


def output_scale(pair: Pair) -> Iterator[Cause]:
    """Yield outputs of which a third of the channels take at most 8 values, wide apart."""
    first, second = pair.both
    second = pair.exchanged_outputs or second
    for place, (original, stored) in enumerate(zip(first, second, strict=False)):
        deployed = in_shape_of(stored, original)
        axis = next(
            (
                at
                for at in range(1, original.ndim)
                if _CHANNELS[0] <= original.shape[at] <= _CHANNELS[1]
            ),
            None,
        )
        if original.shape != deployed.shape or original.ndim < 3 or axis is None:
            continue
        count = original.shape[axis]
        rows = [np.moveaxis(output, axis, 0).reshape(count, -1) for output in (original, deployed)]
        coarse = []
        for channel, (fine, coarsely) in enumerate(zip(*rows, strict=True)):
            levels, finer = np.unique(coarsely), len(np.unique(np.round(fine, _DIGITS)))
            if not 1 < len(levels) <= _MOST_LEVELS or finer <= _FINER * len(levels):
                continue
            step, width = float(np.diff(levels).min()), float(np.ptp(fine))
            if step >= _STEP * width > 0:
                coarse.append((channel, len(levels), step))
        if len(coarse) >= _SHARE * count:
            channels = [channel for channel, _, _ in coarse]
            yield Cause(
                *("output-scale", "one-scale", "located", OUTPUT_SCALE),
                names=(pair.deployed.outputs[place].name,),
                evidence={
                    "channels": channels,
                    "of": count,
                    "levels": max(levels for _, levels, _ in coarse),
                    "step": coarse[0][2],
                    "reach": float(rows[1][channels].max()),
                    "original_reach": float(rows[0][channels].max()),
                    "largest": float(np.abs(rows[0]).max()),
                },
                gain=20,
            )

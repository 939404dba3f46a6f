"""Detections of one image may come in another order: slots are matched before outputs are compared."""

from collections.abc import Sequence

import numpy as np
from scipy.optimize import linear_sum_assignment

from edgeflare.triage.agreement import Outputs, Values

_MOST_SLOTS = 300


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

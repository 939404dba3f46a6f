"""From an input to one beside it that differs in a few values by a few levels."""

from collections.abc import Generator

import numpy as np

from edgeflare.search.boundary.placing import Aim
from edgeflare.search.boundary.points import Point, View
from edgeflare.types import Answer, Ask, Sample

_PROBED = 16
_MOST_LEVELS = 3
_ORDERS = 4


def beside(
    view: View, point: Point, aim: Aim, rng: np.random.Generator
) -> Generator[Ask, Answer, Point | None]:
    """Return a point at the aim that differs from a given one as little as can be; None where none fits.

    What deployment does to an input is rough: a larger step, though it leaves the original where it is wanted,
    may undo what the device told. So the original is asked about changes of one level of some values
    drawn at random, and a few of these, by up to 3 levels each, are put together so that they lead to the aim.
    """
    flat = point.sample.ravel()
    places = rng.permutation(flat.size)[:_PROBED]
    signs = np.where(flat[places] < 128, 1, -1)
    probes = [_changed(point.sample, [place], [sign]) for place, sign in zip(places, signs, strict=True)]
    scores = yield from view.scores(probes)
    probed = [
        view.point(point.path, point.t, sample, one)
        for sample, one in zip(probes, scores, strict=True)
    ]
    slopes = np.array([one.lead - point.lead for one in probed]) * signs
    tried = _together(point.sample, places, slopes, aim.lead - point.lead, rng)
    scores = yield from view.scores(tried)
    found = probed + [
        view.point(point.path, point.t, sample, one)
        for sample, one in zip(tried, scores, strict=True)
    ]
    fitting = [one for one in found if aim.fits(one)]
    return min(fitting, key=aim.misses) if fitting else None


def _together(
    sample: Sample, places: np.ndarray, slopes: np.ndarray, wanted: float, rng: np.random.Generator
) -> list[Sample]:
    """Return samples in which probed values are changed so that, by their slopes, the lead changes as wanted."""
    found = []
    for number in range(_ORDERS):
        order = np.argsort(-np.abs(slopes)) if not number else rng.permutation(len(places))
        left, changes = wanted, []
        for one in order:
            if slopes[one] == 0:
                continue
            levels = int(np.clip(np.rint(left / slopes[one]), -_MOST_LEVELS, _MOST_LEVELS))
            if levels:
                changes.append((int(places[one]), levels))
                left -= levels * slopes[one]
        found.append(_changed(sample, [place for place, _ in changes], [by for _, by in changes]))
    return found


def _changed(sample: Sample, places: list[int], by: list[int]) -> Sample:
    changed: Sample = sample.copy()
    flat = changed.ravel()
    for place, levels in zip(places, by, strict=True):
        flat[place] = min(max(int(flat[place]) + levels, 0), 255)
    return changed

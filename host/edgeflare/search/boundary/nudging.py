"""From an input to one beside it that differs in a few values by a few levels."""

from collections.abc import Generator
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from edgeflare.search.boundary.placing import Aim
from edgeflare.search.boundary.points import Floats, Point, View
from edgeflare.search.boundary.space import space_of
from edgeflare.types import Answer, Ask, Sample

_PROBED = 16
_MOST_LEVELS = 3
_ORDERS = 4
_SHARE_OF_SOUND = 0.01
GROUPS = 1024
"""So many groups of values make up a large image."""

Places: TypeAlias = NDArray[np.intp]


def beside(
    view: View, point: Point, aim: Aim, rng: np.random.Generator
) -> Generator[Ask, Answer, Point | None]:
    """Return a point at the aim that differs from a given one as little as can be; None where none fits.

    What deployment does to an input is rough: a larger step, though it leaves the original where it is wanted,
    may undo what the device told. So the original is asked about changes of one level of some values drawn
    at random (in large images of some groups of values, one in a thousand each), and a few of these, by up to
    3 levels each, are put together so that they lead to the aim.
    """
    groups, signs = probes(point.sample, _PROBED, rng)
    samples = [
        changed(point.sample, [(group, sign)]) for group, sign in zip(groups, signs, strict=True)
    ]
    scores = yield from view.scores(samples)
    probed = [
        view.point(point.path, point.t, sample, one)
        for sample, one in zip(samples, scores, strict=True)
    ]
    slopes = np.array([one.lead - point.lead for one in probed]) * np.array(signs)
    tried = _together(point.sample, groups, slopes, aim.lead - point.lead, rng)
    scores = yield from view.scores(tried)
    found = probed + [
        view.point(point.path, point.t, sample, one)
        for sample, one in zip(tried, scores, strict=True)
    ]
    fitting = [one for one in found if aim.fits(one)]
    return min(fitting, key=aim.misses) if fitting else None


def probes(
    sample: Sample, count: int, rng: np.random.Generator, *, groups: int = GROUPS
) -> tuple[list[Places], list[int]]:
    """Return at most `count` groups of values drawn at random, and which way to change each: 1 or -1.

    A group is one value in images of fewer than `groups` values, else as many as make up a share of 1 / `groups`.
    """
    space = space_of(sample)
    flat, middle = space.values(sample).ravel(), space.middle
    size = max(1, flat.size // groups)
    drawn = rng.permutation(flat.size)[: count * size]
    found = np.array_split(drawn, max(1, len(drawn) // size))
    return found, [1 if flat[group].mean() < middle else -1 for group in found]


def changed(sample: Sample, changes: list[tuple[Places, int]]) -> Sample:
    """Return a sample with the values at each of these places changed by so many levels."""
    space = space_of(sample)
    values, step = space.values(sample), _step(sample)
    flat = values.ravel()
    for places, by in changes:
        flat[places] = space.within(flat[places] + step * by)
    return space.sample(values)


def _step(sample: Sample) -> float:
    """Return the levels that are changed at once: 1 of an image, a hundredth of a recording's usual amplitude."""
    if sample.ndim > 1:
        return 1.0
    usual = float(np.sqrt(np.mean(np.square(space_of(sample).values(sample)))))
    return max(1.0, round(_SHARE_OF_SOUND * usual))


def _together(
    sample: Sample, groups: list[Places], slopes: Floats, wanted: float, rng: np.random.Generator
) -> list[Sample]:
    """Return samples in which probed groups are changed so that, by their slopes, the lead changes as wanted."""
    found = []
    for number in range(_ORDERS):
        order = np.argsort(-np.abs(slopes)) if not number else rng.permutation(len(groups))
        left, changes = wanted, []
        for one in order:
            if slopes[one] == 0:
                continue
            by = int(np.clip(np.rint(left / slopes[one]), -_MOST_LEVELS, _MOST_LEVELS))
            if by:
                changes.append((groups[one], by))
                left -= by * slopes[one]
        found.append(changed(sample, changes))
    return found

"""From an input to one next to it that differs in a few values by a few levels."""

from collections.abc import Generator, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from edgeflare._internal import exact
from edgeflare._internal.exact import Floats
from edgeflare.strategies.boundary.paths import TargetMargin
from edgeflare.strategies.boundary.points import OriginalProbe, PathPoint, space_of
from edgeflare.types import Answer, Ask, Sample

_PROBED = 16
_MAX_LEVELS = 3
_ORDERS = 4
_AUDIO_STEP = 0.01
_GROUPS = 1024
"""Number of groups of values that make up a large image."""

_TIE_PROBED = 32
_TIE_PROBED_FINE = 96
_FINE_GROUPS = 8192
_ROUNDS = 3
_ORDERED_SHARE = 2 / 3
_MAX_CHANGES = 16
_CHANGES = (-2, -1, 1, 2)
_MIN_GAIN = 0.99
_ABOVE_FLOOR = 1.3
_TIGHT = 3.0
_CLOSE = 0.03
_MIN_FLOOR = 1e-4
_HANDICAP = 0.2

_Places: TypeAlias = NDArray[np.intp]


def perturb_locally(
    probe: OriginalProbe, point: PathPoint, target: TargetMargin, rng: np.random.Generator
) -> Generator[Ask, Answer, PathPoint | None]:
    """Return a point that meets the target and differs little from a given one, else None.

    What deployment changes is rough: a larger step, though it leaves the original where it is
    wanted, may undo the device's answer. So the original is asked about changes of one
    level of some values drawn at random (in large images of some groups of values, one in a
    thousand each), and a few of these changes, by up to 3 levels each, are combined so that they
    lead to the target.
    """
    groups, signs = _draw_groups(point.sample, _PROBED, rng)
    probed: list[PathPoint] = []
    if probe.has_gradients:
        gradients = yield from probe.gradients(point.sample, (probe.label, point.rival))
        slopes = gradients[0].ravel()[groups].sum(axis=1)
    else:
        probed = yield from probe.points_near(point, _single_changes(point.sample, groups, signs))
        slopes = np.array([one.log_odds - point.log_odds for one in probed]) * signs
    combined = _combine(point.sample, groups, slopes, target.log_odds - point.log_odds, rng)
    return target.best(probed + (yield from probe.points_near(point, combined)))


def _combine(
    sample: Sample, groups: _Places, slopes: Floats, wanted: float, rng: np.random.Generator
) -> list[Sample]:
    """Return samples in which changed groups, by their slopes, shift the log-odds as wanted."""
    found = []
    for number in range(_ORDERS):
        order = np.argsort(-np.abs(slopes)) if not number else rng.permutation(len(groups))
        left, changes = wanted, []
        for one in order:
            if slopes[one] == 0:
                continue
            by = int(np.clip(np.rint(left / slopes[one]), -_MAX_LEVELS, _MAX_LEVELS))
            if by:
                changes.append((groups[one], by))
                left -= by * slopes[one]
        found.append(_changed(sample, changes))
    return found


class TieBreak(NamedTuple):
    """Where several classes tie for the original, the wanted answer next to it.

    The original is to give `winner`, with a margin of `floor` or more, the `others` as likely as
    possible; but the class `handicapped` so much less likely that rounding its scores does not undo
    it. `near`: change as few levels as possible, rather than bring the others as close to the
    winner as possible.
    """

    winner: int
    others: tuple[int, ...]
    floor: float
    near: bool = False
    handicapped: int | None = None

    def is_met_by(self, point: PathPoint) -> bool:
        """Whether the original gives the winner, with the margin."""
        sure = point.margin > 0 and point.margin >= self.floor
        return sure and int(point.log_probs.argmax()) == self.winner

    def log_odds(self, point: PathPoint) -> Floats:
        """Return the log-odds of the others over the winner, plus a handicap; float64 [others]."""
        return self._log_odds(point.log_probs)

    def slopes(self, probed: Sequence[PathPoint], start: PathPoint) -> Floats:
        """Return how these log-odds differ from those at `start`, float64 [points, others]."""
        log_probs = np.array([one.log_probs for one in probed])
        return self._log_odds(log_probs) - self.log_odds(start)

    def _log_odds(self, log_probs: Floats) -> Floats:
        handicap = np.array([_HANDICAP if one == self.handicapped else 0.0 for one in self.others])
        winner = log_probs[..., self.winner, None]
        return np.asarray(log_probs[..., list(self.others)] - winner + handicap)

    def error(self, point: PathPoint) -> float:
        """Return by how much the log-odds of the worst of the others differ from 0."""
        return float(np.abs(self.log_odds(point)).max())

    def gap(self, point: PathPoint) -> float:
        """Return how far the others are behind the winner just above the floor, in log-odds."""
        share = float(exact.exp(point.log_probs[[self.winner, *self.others]]).sum())
        floor = max(self.floor, _MIN_FLOOR)
        return _ABOVE_FLOOR * floor * (1 + len(self.others)) / max(share, floor)

    def is_close(self, point: PathPoint, tolerance: float) -> bool:
        """Whether all others are within `tolerance`, or as close as the floor allows."""
        return self.error(point) <= max(tolerance, _TIGHT * self.gap(point))


def break_tie(
    probe: OriginalProbe, point: PathPoint, wanted: TieBreak, rng: np.random.Generator
) -> Generator[Ask, Answer, PathPoint | None]:
    """Return a point next to a given one with the tie broken as wanted, else None.

    As in `perturb_locally` the original is asked about changes of one level; whole numbers of
    levels that together lead there are searched for greedily, for all other classes at once.
    """
    found: list[PathPoint] = []
    here = point
    count, groups_of = (_TIE_PROBED_FINE, _FINE_GROUPS) if wanted.near else (_TIE_PROBED, _GROUPS)
    for _ in range(_ROUNDS):
        groups, signs = _draw_groups(here.sample, count, rng, groups_of)
        probed: list[PathPoint] = []
        if probe.has_gradients:
            gradients = yield from probe.gradients(here.sample, (wanted.winner, *wanted.others))
            flat = gradients.reshape(len(gradients), -1)
            slopes = -flat[:, groups].sum(axis=2).T
        else:
            samples = _single_changes(here.sample, groups, signs)
            probed = yield from probe.points_near(point, samples)
            slopes = wanted.slopes(probed, here) * signs[:, None]
        change = -wanted.gap(here) - wanted.log_odds(here)
        samples = _combine_greedily(here.sample, groups, slopes, change, rng)
        reached = yield from probe.points_near(point, samples)
        found += [one for one in probed + reached if wanted.is_met_by(one)]
        best = _best(found, point, wanted)
        if best is not None and (wanted.near or wanted.error(best) < _TIGHT * wanted.gap(best)):
            break
        here = min(
            reached, key=lambda one: float(np.abs(wanted.log_odds(one) + wanted.gap(one)).max())
        )
    return _best(found, point, wanted)


def _best(found: Sequence[PathPoint], start: PathPoint, wanted: TieBreak) -> PathPoint | None:
    if not wanted.near:
        return min(found, key=wanted.error, default=None)
    close = [point for point in found if wanted.is_close(point, _CLOSE)]
    space = space_of(start.sample)
    values = space.values(start.sample)
    return min(
        close or found,
        key=lambda point: float(np.abs(space.values(point.sample) - values).sum()),
        default=None,
    )


def _combine_greedily(
    sample: Sample, groups: _Places, slopes: Floats, wanted: Floats, rng: np.random.Generator
) -> list[Sample]:
    """Return samples in which changed groups shift the log-odds of all others as wanted.

    By their slopes [groups, others].
    """
    found = []
    for number in range(_ORDERS):
        used = np.arange(len(groups))
        if number:
            used = rng.permutation(used)[: max(1, round(_ORDERED_SHARE * len(groups)))]
        levels = _whole_levels(slopes[used], wanted)
        changes = [(groups[place], int(by)) for place, by in zip(used, levels, strict=True) if by]
        found.append(_changed(sample, changes))
    return found


def _whole_levels(slopes: Floats, wanted: Floats) -> Floats:
    """Return whole levels from -3 to 3 whose changes come near to what is wanted, greedily."""
    levels = np.zeros(len(slopes))
    steps = np.array(_CHANGES, dtype=np.float64)
    shifts = steps[:, None, None] * slopes
    left = wanted.copy()
    for _ in range(_MAX_CHANGES):
        after = np.abs(left - shifts).max(axis=2)
        after[np.abs(levels + steps[:, None]) > _MAX_LEVELS] = np.inf
        step, place = np.unravel_index(int(after.argmin()), after.shape)
        if after[step, place] >= _MIN_GAIN * np.abs(left).max():
            break
        levels[place] += steps[step]
        left = left - shifts[step, place]
    return levels


def _draw_groups(
    sample: Sample, count: int, rng: np.random.Generator, groups_of: int = _GROUPS
) -> tuple[_Places, Floats]:
    """Return up to `count` random groups of values, and the direction to change each, 1 or -1.

    The groups: [n, values], by their places in the flat sample.

    A group is one value in images of fewer than `groups_of` values, else as many as make up a share
    of 1 / `groups_of`.
    """
    space = space_of(sample)
    flat, middle = space.values(sample).ravel(), space.middle
    size = max(1, flat.size // groups_of)
    drawn = rng.permutation(flat.size)[: count * size]
    found = drawn.reshape(-1, size)
    return found, np.where(flat[found].mean(axis=1) < middle, 1.0, -1.0)


def _single_changes(sample: Sample, groups: _Places, signs: Floats) -> list[Sample]:
    """Return a sample for each group, with the values there changed by a step."""
    space = space_of(sample)
    flat = space.values(sample).ravel()
    after = space.clipped(flat[groups] + _step(sample) * signs[:, None])
    base = sample if sample.ndim > 1 else space.sample(flat)
    found = np.repeat(base.reshape(1, -1), len(groups), axis=0)
    found[np.arange(len(groups))[:, None], groups] = space.sample(after)
    return list(found.reshape(len(groups), *sample.shape))


def _changed(sample: Sample, changes: list[tuple[_Places, int]]) -> Sample:
    """Return a sample with the values at each of these places changed by this number of steps."""
    space = space_of(sample)
    flat, step = space.values(sample).ravel(), _step(sample)
    for places, by in changes:
        flat[places] = space.clipped(flat[places] + step * by)
    return space.sample(flat).reshape(sample.shape)


def _step(sample: Sample) -> float:
    """Return the levels of a step: 1 of an image, 1 % of a recording's mean amplitude (RMS)."""
    if sample.ndim > 1:
        return 1.0
    amplitude = float(np.sqrt(np.mean(np.square(space_of(sample).values(sample)))))
    return max(1.0, round(_AUDIO_STEP * amplitude))

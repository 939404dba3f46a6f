"""The first triggering input: where the original can't decide, the device decides otherwise on one side or the other."""

from collections.abc import Generator

import numpy as np

from edgeflare.search.boundary.asking import Device, Told, least_aim
from edgeflare.search.boundary.expecting import Expected
from edgeflare.search.boundary.limits import Limits
from edgeflare.search.boundary.nudging import beside
from edgeflare.search.boundary.placing import Aim, Bracket, place
from edgeflare.search.boundary.points import Point, View
from edgeflare.types import Answer, Ask

_QUERIES_A_CROSSING = 3
_SMALLEST_DRIFT = 4.0
_WEAK_SHARE = 0.3
_MOST_WEAK = 0.05
_COARSE_SHARE = 0.3


class First:
    """Goes from crossing to crossing; at each one asks about the side that the drift points to, then by what was told."""

    def __init__(
        self,
        view: View,
        device: Device,
        limits: Limits,
        rng: np.random.Generator,
        floor: float,
        *,
        coarse: bool,
    ) -> None:
        self._view = view
        self._device = device
        self._limits = limits
        self._rng = rng
        self.floor = floor
        self._expecting = Expected(view.seed)
        weak = min(_WEAK_SHARE * self._expecting.usual(), _MOST_WEAK)
        self._coarse = _COARSE_SHARE * self._expecting.usual() if coarse else 0.0
        self._weak = max(_SMALLEST_DRIFT * floor, weak)

    def at(self, bracket: Bracket) -> Generator[Ask, Answer, bool]:
        """Ask the device about a crossing; return whether it triggers there."""
        drift = self._expected(bracket.outside)
        keeps_label = bool(self._rng.integers(2)) if drift is None else drift < 0
        aim = self.least(keeps_label)
        point = yield from self.placed(bracket, aim)
        if point is None:  # such as where the seed itself is all but on the boundary
            start = bracket.inside if keeps_label else bracket.outside
            point = yield from self._beside(start, bracket, aim)
        for query in range(_QUERIES_A_CROSSING):
            if point is None or not self._device.is_new(point):
                return False
            told = yield from self._device.ask((point,))
            if not told or told[0].margin > 0:
                return bool(told)
            if told[0].drift is None:
                if query:
                    return False
                keeps_label = not keeps_label
            elif abs(told[0].drift) < self._weak:
                return False  # hardly any drift here: another place is better
            else:
                keeps_label = told[0].drift < 0
            aim = self.least(keeps_label)
            point = yield from self._beside(point, bracket, aim)
        return False

    def least(self, keeps_label: bool) -> Aim:
        """Return the aim just beyond the floor on one side."""
        return least_aim(self.floor, keeps_label, self._coarse)

    def placed(self, bracket: Bracket, aim: Aim) -> Generator[Ask, Answer, Point | None]:
        """Return a point at the aim that the limits allow."""
        point = yield from place(self._view, bracket, aim, self._rng)
        return point if point is not None and self._limits.hold(point.sample) else None

    def _beside(
        self, point: Point, bracket: Bracket, aim: Aim
    ) -> Generator[Ask, Answer, Point | None]:
        """Return a point at the aim, next to another one, that the limits allow."""
        if point.path.pure:
            return (yield from self.placed(bracket, aim))
        found = yield from beside(self._view, point, aim, self._rng)
        return found if found is not None and self._limits.hold(found.sample) else None

    def _expected(self, point: Point) -> float | None:
        """Return the drift at the last point with this rival, else as the seeds' answers tell it."""
        known: list[Told] = [told for told in self._device.told if told.point.rival == point.rival]
        if known:
            return known[-1].drift
        return self._expecting.drift(point.logs, self._view.label, point.rival)

"""The first triggering input: where the original can't decide, the device decides otherwise on one side or the other."""

from collections.abc import Generator

import numpy as np

from edgeflare.search.boundary.asking import Told, least_aim
from edgeflare.search.boundary.expecting import Expected
from edgeflare.search.boundary.ground import Ground
from edgeflare.search.boundary.placing import Aim, Bracket
from edgeflare.search.boundary.points import Point
from edgeflare.types import Answer, Ask

_QUERIES_A_CROSSING = 3
_SMALLEST_DRIFT = 4.0
_WEAK_SHARE = 0.3
_MOST_WEAK = 0.05
_COARSE_SHARE = 0.3
_LEAST_SEVERITY = 1.2


class First:
    """Goes from crossing to crossing; at each one asks about the side that the drift points to, then by what was told.

    `expecting`: the drift that the seeds' answers foretell; `weak`: with less than this another crossing is better.
    """

    def __init__(self, ground: Ground, *, coarse: bool) -> None:
        self._ground = ground
        self.expecting = Expected(ground.view.seed)
        usual = self.expecting.usual()
        self._coarse = _COARSE_SHARE * usual if coarse else 0.0
        self.weak = max(_SMALLEST_DRIFT * ground.floor, min(_WEAK_SHARE * usual, _MOST_WEAK))

    def at(self, bracket: Bracket) -> Generator[Ask, Answer, bool]:
        """Ask the device about a crossing; return whether it triggers there."""
        ground = self._ground
        drift = self._expected(bracket.outside)
        keeps_label = bool(ground.rng.integers(2)) if drift is None else drift < 0
        point = yield from ground.placed_or_beside(bracket, self.least(bracket, keeps_label))
        for query in range(_QUERIES_A_CROSSING):
            if point is None or ground.device.left <= 0:
                return False
            told = yield from ground.device.ask((point,))
            if not told or told[0].margin > 0:
                return bool(told)
            if told[0].drift is None:
                if query:
                    return False
                keeps_label = not keeps_label
            elif self._is_hopeless(told[0]):
                return False
            else:
                keeps_label = told[0].drift < 0
            point = yield from ground.beside(point, bracket, self.least(bracket, keeps_label))
        return False

    def _is_hopeless(self, told: Told) -> bool:
        """Whether there is so little drift, or so little margin to be had of it, that another place is better."""
        assert told.drift is not None  # noqa: S101 - it was looked at
        return abs(told.drift) < self.weak or told.severity < _LEAST_SEVERITY * self._ground.floor

    def both_sides(self, bracket: Bracket) -> Generator[Ask, Answer, list[Point]]:
        """Return the points just beyond the floor on either side, those that there are."""
        found = []
        for keeps_label in (True, False):
            aim = self.least(bracket, keeps_label)
            point = yield from self._ground.placed_or_beside(bracket, aim)
            if point is not None:
                found.append(point)
        return found

    def least(self, bracket: Bracket, keeps_label: bool) -> Aim:
        """Return the aim just beyond the floor on one side."""
        likely = float(
            np.exp(bracket.outside.logs[[bracket.outside.rival, self._ground.view.label]]).sum()
        )
        return least_aim(self._ground.floor, keeps_label, likely=likely, coarse=self._coarse)

    def _expected(self, point: Point) -> float | None:
        """Return the drift at the last point with this rival, else as the seeds' answers tell it."""
        known: list[Told] = [
            told for told in self._ground.device.told if told.point.rival == point.rival
        ]
        if known:
            return known[-1].drift
        return self.expecting.drift(point.logs, self._ground.view.label, point.rival)

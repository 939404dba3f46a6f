"""What one search stands on: its seed, the device, the bounds, the floor, and its generator of randomness."""

from collections.abc import Generator
from dataclasses import dataclass

import numpy as np

from edgeflare.search.boundary.asking import Device
from edgeflare.search.boundary.leaning import Lean, leaning
from edgeflare.search.boundary.limits import Limits
from edgeflare.search.boundary.nudging import beside
from edgeflare.search.boundary.placing import Aim, Bracket, place
from edgeflare.search.boundary.points import Point, View
from edgeflare.types import Answer, Ask

_NEAR = 0.1
_NEAR_SHARE = 4.0


@dataclass(frozen=True)
class Ground:
    """Brings points to an aim, within the bounds, and none to the device a second time."""

    view: View
    device: Device
    limits: Limits
    rng: np.random.Generator
    floor: float

    def placed(self, bracket: Bracket, aim: Aim) -> Generator[Ask, Answer, Point | None]:
        """Return a new point of a bracket's path at the aim."""
        point = yield from place(self.view, bracket, aim, self.rng)
        return self._allowed(point)

    def beside(
        self, point: Point, bracket: Bracket, aim: Aim
    ) -> Generator[Ask, Answer, Point | None]:
        """Return a new point at the aim, next to another one; of a pure path, on that path."""
        if point.path.pure:
            return (yield from self.placed(bracket, aim))
        found = yield from beside(self.view, point, aim, self.rng)
        if found is None or aim.misses(found) > max(_NEAR, _NEAR_SHARE * abs(aim.lead)):
            return None
        return self._allowed(found)

    def leaning(self, point: Point, lean: Lean) -> Generator[Ask, Answer, Point | None]:
        """Return a new point beside another one, where classes tie, that leans to one of them."""
        return self._allowed((yield from leaning(self.view, point, lean, self.rng)))

    def placed_or_beside(self, bracket: Bracket, aim: Aim) -> Generator[Ask, Answer, Point | None]:
        """Return a new point at the aim; next to the bracket's end where its path has none.

        So where the seed itself is all but on the boundary.
        """
        point = yield from self.placed(bracket, aim)
        if point is None:
            end = bracket.inside if aim.lead > 0 else bracket.outside
            point = yield from self.beside(end, bracket, aim)
        return point

    def _allowed(self, point: Point | None) -> Point | None:
        if point is None or not self.device.is_new(point) or not self.limits.hold(point.sample):
            return None
        return point

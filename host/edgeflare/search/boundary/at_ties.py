"""The first triggering input where three classes tie for the original: the device is off on two of three such inputs.

Where the device is off by as much for each class, independently, it likes each of the tied classes best as often
as the others: it decides otherwise than the original, which leans to one of them, in two cases of three (measured: .57 to
.72, ties on the device being the rest; beside a boundary of two classes .31 to .53).
"""

from collections.abc import Generator

import numpy as np

from edgeflare.search.boundary.asking import Told
from edgeflare.search.boundary.crossings import Crossing
from edgeflare.search.boundary.expecting import Expected
from edgeflare.search.boundary.ground import Ground
from edgeflare.search.boundary.leaning import Lean
from edgeflare.search.boundary.placing import Bracket
from edgeflare.search.boundary.points import logs_of
from edgeflare.search.boundary.tying import Tie
from edgeflare.types import Answer, Ask

_QUERIES_A_TIE = 3
_MOST_SPREAD = 3.0
_CLOSE = 0.15


class AtTies:
    """Asks about inputs at ties that lean to one class and then, by what the device tells, to another.

    `weak`: with less drift than this between the tied classes another place is better.
    """

    def __init__(self, ground: Ground, expecting: Expected, weak: float) -> None:
        self._ground = ground
        self._expecting = expecting
        self._weak = weak

    def at(self, bracket: Bracket, ways: Crossing) -> Generator[Ask, Answer, bool]:
        """Ask about a tie of a third class with the two of a crossing; return whether there was one to ask about.

        The original leans to the class that the device is expected to like least, then to the one that it told it
        likes least, of several rather to one not yet tried. Where the device likes two best alike, one of these is
        taken out of the other's way.
        """
        ground = self._ground
        if bracket.outside.path.pure:
            return False
        found = yield from ways.tied(bracket)
        if (
            found is None
            or found.spread > _MOST_SPREAD
            or not ground.limits.hold(found.point.sample)
        ):
            return False
        point, winner, back = found.point, self._least_expected(found), None
        tried: set[int] = set()
        for query in range(_QUERIES_A_TIE):
            lean = Lean(winner, found.others(winner), ground.floor, query > 0, back)
            leaning = yield from ground.leaning(point, lean)
            if leaning is None or not lean.is_close(leaning, _CLOSE) or ground.device.left <= 0:
                return query > 0
            told = yield from ground.device.ask((leaning,))
            if not told or told[0].margin > 0 or self._is_hopeless(told[0], found):
                return True
            point = leaning
            tried.add(winner)
            winner = self._least_liked(told[0], found, tried)
            back = self._in_the_way(told[0], found, winner)
        return True

    def _least_expected(self, found: Tie) -> int:
        """Return the class that the seeds' answers say the device likes least; any one where they can't tell."""
        if not self._expecting.reliable:
            return int(self._ground.rng.choice(found.classes))
        label, logs = self._ground.view.label, found.point.logs
        drift = [
            self._expecting.drift(logs, one, label) if one != label else 0.0
            for one in found.classes
        ]
        return found.classes[int(np.argmin(np.array(drift, dtype=np.float64)))]

    def _least_liked(self, told: Told, found: Tie, tried: set[int]) -> int:
        """Return the class that the device told it likes least; where it tells labels only, one not yet tried."""
        return min(found.classes, key=lambda one: (float(told.deployed[one]), one in tried))

    def _in_the_way(self, told: Told, found: Tie, winner: int) -> int | None:
        """Return one of two classes that the device likes best alike, not the winner; None where it likes one best."""
        liked = told.deployed[list(found.classes)]
        best = np.flatnonzero(liked >= liked.max() - self._ground.floor)
        others = [found.classes[place] for place in best if found.classes[place] != winner]
        return others[0] if len(best) > 1 else None

    def _is_hopeless(self, told: Told, found: Tie) -> bool:
        """Whether there is so little drift between the classes that another place is better."""
        if told.drift is None:
            return False
        classes = list(found.classes)
        drift = logs_of(told.deployed)[classes] - told.point.logs[classes]
        return float(np.ptp(drift)) < self._weak

"""More severe triggering inputs: both models surer of different answers, within the device's budget.

Write e for the drift at an input: the deployed model's log-odds of class a over b less the original's. Where the
original stands at -e / 2 the deployed model stands at e / 2: both are as sure of different answers as they can be,
with a margin of tanh(|e| / 4) times the probability of the two classes. So inputs of large |e| are looked for: first
far from the seed (see `scouting`), then beside the boundary,
and each is placed, by asking the original alone, where its drift is split evenly. A quarter of the budget goes to
different crossings; from the best of them an evolution strategy climbs: the end of the path is moved by smooth
noise, the new path's point is placed by the drift of its parent, the device is asked, and the better one stays;
the noise grows by success and shrinks by failure.

Tried and no better, on LeNet-5 (107 device queries), ResNet-8 (16) and ResNet-20 (29), 24 to 40 seeds each: a Gaussian
process over low-frequency coefficients of all class pairs' drift, with an upper confidence bound choosing the
next point (median margin .028 against .043 on LeNet-5, .12 against .14 on ResNet-8, at ten times the
host's time); going on in the direction of the last success; differences of earlier paths as steps; one
climber or many; larger first steps (all within 7 %).
"""

from collections.abc import Generator

from edgeflare.search.boundary.asking import Told, split_aim
from edgeflare.search.boundary.crossings import Crossing
from edgeflare.search.boundary.ground import Ground
from edgeflare.search.boundary.placing import reach
from edgeflare.search.boundary.points import Path
from edgeflare.search.boundary.scouting import Scouts
from edgeflare.types import Answer, Ask

_EXPLORED = 0.25
_TRIES = 6
_BEST_OF = 6
_TO_BEST = 0.7
_FIRST_STEP = 0.12
_GROWTH = 1.3
_SHRINKAGE = 0.93
_DEAD = 0.7
_MOST_DEAD = 20
_SHORT_OF_DEAD = 5
_WORTH_SETTLING = 1.2
_LABELS_FARTHER = 1.6


class Severity:
    """Spends what is left of the device's budget; `Device.best` is what comes of it."""

    def __init__(self, ground: Ground) -> None:
        self._ground = ground
        self._device = ground.device
        self._rng = ground.rng
        self._radius = ground.limits.radius
        self._step = _FIRST_STEP * self._radius
        self._settled: set[int] = set()

    def search(self, crossing: Crossing) -> Generator[Ask, Answer, None]:
        """Look far off, explore crossings, then climb from the best of them."""
        if self._device.best is not None and not self._device.best.path.pure:
            yield from Scouts(self._ground).search()
        yield from self._explore(crossing, round(self._device.left * (1 - _EXPLORED)))
        climbers = self._best_of_all()
        dead = 0
        while self._device.left > 0 and not self._device.content and dead < _MOST_DEAD:
            place = 0
            if len(climbers) > 1 and self._rng.random() >= _TO_BEST:
                place = int(self._rng.integers(len(climbers)))
            child = yield from self._child(climbers[place])
            if child is None:
                self._step *= _DEAD
                dead += 1
                if dead % _SHORT_OF_DEAD == 0:
                    yield from self._explore(crossing, self._device.left - 1)
                    climbers = self._best_of_all()
                    self._step = _FIRST_STEP * self._radius
                continue
            dead = 0
            if child.severity > climbers[place].severity:
                climbers[place] = child
                climbers.sort(key=_severity, reverse=True)
                self._step = min(self._step * _GROWTH, self._radius)
            else:
                self._step *= _SHRINKAGE

    def _best_of_all(self) -> list[Told]:
        """Return the points to climb from, the best one first."""
        ranked = sorted(self._device.told, key=_severity, reverse=True)
        return ranked[: max(1, len(ranked) // _BEST_OF)]

    def _explore(self, crossing: Crossing, until: float) -> Generator[Ask, Answer, None]:
        for _ in range(_TRIES * max(1, int(self._device.left - until))):
            if self._device.left <= max(until, 0) or self._device.content:
                return
            path = yield from self._another(crossing)
            if path is None:
                continue
            drift = self._device.told[-1].drift if self._device.told else None
            yield from self._ask(path, -0.5 * (drift or 0.0))

    def _another(self, crossing: Crossing) -> Generator[Ask, Answer, Path | None]:
        """Return another way over the boundary: of the crossing itself, or about one that is known."""
        if self._device.told and self._rng.random() < 0.5:
            known = self._device.told[int(self._rng.integers(len(self._device.told)))]
            away = self._radius * float(self._rng.uniform(0.2, 0.8))
            return known.path.varied(self._rng, away)
        bracket = yield from crossing.cross()
        return None if bracket is None else bracket.outside.path

    def _child(self, parent: Told) -> Generator[Ask, Answer, Told | None]:
        """Return what the device tells of a path near the parent's; None where no such path was found."""
        lead = self._even(parent)
        if self._is_worth_settling(parent):
            self._settled.add(id(parent.path))
            return (yield from self._ask(parent.path, lead))
        for _ in range(_TRIES):
            path = parent.path.varied(self._rng, self._step * float(self._rng.uniform(0.3, 1.0)))
            told = yield from self._ask(path, lead)
            if told is not None:
                return told
        return None

    def _is_worth_settling(self, parent: Told) -> bool:
        """Whether the parent's own path, placed by its own drift, should give a clearly better finding."""
        best = self._device.best
        if parent.drift is None or id(parent.path) in self._settled:
            return False
        few_left = self._device.left <= 2
        return few_left and (best is None or parent.severity > _WORTH_SETTLING * best.margin)

    def _even(self, parent: Told) -> float:
        """Return where the original is wanted, going by the parent's answer."""
        if parent.drift is not None:
            return -parent.drift / 2.0
        return parent.point.lead * (_LABELS_FARTHER if parent.margin > 0 else 0.5)

    def _ask(self, path: Path, lead: float) -> Generator[Ask, Answer, Told | None]:
        """Place a point of a path and ask the device about it; None where none fits."""
        aim = split_aim(self._ground.floor, -2.0 * lead)
        bracket = yield from reach(self._ground.view, path, aim.lead)
        if bracket is None:
            return None
        point = yield from self._ground.placed(bracket, aim)
        if point is None:
            return None
        told = yield from self._device.ask((point,))
        return told[0] if told else None


def _severity(told: Told) -> float:
    return told.severity

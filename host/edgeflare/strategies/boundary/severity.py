"""More severe triggers: larger margins of both models, within the device's budget.

Write e for the drift at an input: the deployed model's log-odds of class a over b less the
original's. Where the original's log-odds are -e / 2, the deployed model's are e / 2: both are as
sure of different answers as they can be, with a margin of tanh(|e| / 4) times the probability of
the two classes. So inputs of large |e| are searched for, first far from the seed (see
`Exploration`), then near the boundary, and each is placed, by asking the original alone, where its
drift is split evenly. A quarter of the budget goes to different crossings; from the best of them an
evolution strategy climbs: the end of the path is moved by smooth noise, the new path's point is
placed by the drift of its parent, the device is asked, and the better one stays; the noise grows by
success and shrinks by failure.

Figures: docs/research/severity.md. What was tried without gain: docs/research/tried.md.
"""

from collections.abc import Generator

import numpy as np

from edgeflare._internal import exact
from edgeflare.strategies.boundary.crossings import Crossing
from edgeflare.strategies.boundary.paths import LinePath, cross_boundary
from edgeflare.strategies.boundary.points import Path, PathPoint, to_sample
from edgeflare.strategies.boundary.probing import Observation, SearchContext, even_target
from edgeflare.types import Answer, Ask, Sample

_EXPLORED = 0.25
_TRIES = 6
_BEST_OF = 6
_BEST_FIRST = 0.7
_FIRST_STEP = 0.12
_GROWTH = 1.3
_SHRINKAGE = 0.93
_FAILED_SHRINKAGE = 0.7
_MAX_FAILURES = 20
_FAILURES_TO_EXPLORE = 5
_WORTH_REPEATING = 1.2
_LABELS_GROWTH = 1.6

_FEW = 2
_FEW_REMAINING = 6
_MAX_SHARE = 0.5
_SEVERE = 0.25
_UNLIKE = 0.03
_PATIENCE = 3
_SCREENED = 8
_SURE = 0.5
_FITTINGS = 4
_MAX_GROWTH = 4.0
_SHORT_OF_BOUND = 0.99
_TINY = 1e-6


class SeveritySearch:
    """Spends the rest of the device's budget; the result is `DeviceProbe.best`.

    `explores`: also far from the seed, first.
    """

    def __init__(self, context: SearchContext, *, explores: bool = True) -> None:
        self._context = context
        self._explores = explores
        self._device = context.device
        self._rng = context.rng
        self._radius = context.bounds.radius
        self._step = _FIRST_STEP * self._radius
        self._repeated: set[int] = set()

    def search(self, crossing: Crossing) -> Generator[Ask, Answer, None]:
        """Explore far from the seed, then crossings, then climb from the best of them."""
        best = self._device.best
        if self._explores and best is not None and not best.path.exact:
            yield from Exploration(self._context).search()
        yield from self._explore(crossing, round(self._device.remaining * (1 - _EXPLORED)))
        climbers = self._best_of_all()
        failures = 0
        while (
            self._device.remaining > 0
            and not self._device.is_satisfied
            and failures < _MAX_FAILURES
        ):
            place = 0
            if len(climbers) > 1 and self._rng.random() >= _BEST_FIRST:
                place = int(self._rng.integers(len(climbers)))
            child = yield from self._child(climbers[place])
            if child is None:
                self._step *= _FAILED_SHRINKAGE
                failures += 1
                if failures % _FAILURES_TO_EXPLORE == 0:
                    yield from self._explore(crossing, self._device.remaining - 1)
                    climbers = self._best_of_all()
                    self._step = _FIRST_STEP * self._radius
                continue
            failures = 0
            if child.severity > climbers[place].severity:
                climbers[place] = child
                climbers.sort(key=_severity, reverse=True)
                self._step = min(self._step * _GROWTH, self._radius)
            else:
                self._step *= _SHRINKAGE

    def _best_of_all(self) -> list[Observation]:
        """Return the observations to climb from, the best one first."""
        ranked = sorted(self._device.observations, key=_severity, reverse=True)
        return ranked[: max(1, len(ranked) // _BEST_OF)]

    def _explore(self, crossing: Crossing, until: float) -> Generator[Ask, Answer, None]:
        """Ask at different crossings until `until` queries remain."""
        for _ in range(_TRIES * max(1, int(self._device.remaining - until))):
            if self._device.remaining <= max(until, 0) or self._device.is_satisfied:
                return
            path = yield from self._another_path(crossing)
            if path is None:
                continue
            observations = self._device.observations
            drift = observations[-1].drift if observations else None
            yield from self._query(path, -0.5 * (drift or 0.0))

    def _another_path(self, crossing: Crossing) -> Generator[Ask, Answer, Path | None]:
        """Return another path over the boundary: of the crossing itself, or near a known one."""
        observations = self._device.observations
        if observations and self._rng.random() < 0.5:
            known = observations[int(self._rng.integers(len(observations)))]
            scale = self._radius * exact.uniform(self._rng, 0.2, 0.8)
            return known.path.perturbed(self._rng, scale)
        bracket = yield from crossing.find()
        return None if bracket is None else bracket.outside.path

    def _child(self, parent: Observation) -> Generator[Ask, Answer, Observation | None]:
        """Return the observation of a path near the parent's; None where no such path was found."""
        if parent.drift is not None:
            log_odds = -parent.drift / 2.0
        else:
            log_odds = parent.point.log_odds * (_LABELS_GROWTH if parent.margin > 0 else 0.5)
        if self._is_worth_repeating(parent):
            self._repeated.add(id(parent.path))
            return (yield from self._query(parent.path, log_odds))
        for _ in range(_TRIES):
            scale = self._step * exact.uniform(self._rng, 0.3, 1.0)
            path = parent.path.perturbed(self._rng, scale)
            seen = yield from self._query(path, log_odds)
            if seen is not None:
                return seen
        return None

    def _is_worth_repeating(self, parent: Observation) -> bool:
        """Whether the parent's own path, at a point set by its drift, promises a better finding."""
        best = self._device.best
        if parent.drift is None or id(parent.path) in self._repeated:
            return False
        few_left = self._device.remaining <= 2
        return few_left and (best is None or parent.severity > _WORTH_REPEATING * best.margin)

    def _query(self, path: Path, log_odds: float) -> Generator[Ask, Answer, Observation | None]:
        """Ask the device at a point of a path near these log-odds; None where there is none."""
        target = even_target(self._context.floor, -2.0 * log_odds)
        bracket = yield from cross_boundary(self._context.original, path, target.log_odds)
        if bracket is None:
            return None
        point = yield from self._context.approach(bracket, target)
        if point is None:
            return None
        seen = yield from self._device.query((point,))
        return seen[0] if seen else None


class Exploration:
    """Asks about noisy inputs far from the seed, where a quantised model may behave otherwise.

    Near the original's boundary the deployed model has its usual drift, which bounds how sure both
    can be. Some models have regions of far more drift: keyword spotting's int8 model on inputs
    unlike any speech. No answer near the seed points there, but a few inputs do: the seed under as
    much noise as the bounds allow, where the original is still sure.

    On some models they are so often severe that a few queries show whether more are worth while
    (measured: docs/research/severity.md).
    """

    def __init__(self, context: SearchContext) -> None:
        self._context = context

    def search(self) -> Generator[Ask, Answer, None]:
        """Spend a query or two; more while every third one is severe or the scores differ."""
        device = self._context.device
        few = _FEW if device.remaining >= _FEW_REMAINING else 1
        most = _MAX_SHARE * device.remaining
        sent = severe = 0
        unlike = False
        while device.remaining > 0 and not device.is_satisfied:
            if not (sent < few or _PATIENCE * severe >= sent or (unlike and sent < most)):
                return
            point = yield from self._far_point()
            if point is None:
                return
            seen = yield from device.query((point,), far=True)
            sent += 1
            severe += bool(seen) and seen[0].margin >= _SEVERE
            unlike = bool(seen) and self._variation(seen[0]) >= _UNLIKE

    def _variation(self, seen: Observation) -> float:
        """Return the distance of both models' scores; 0 where the device returns labels only."""
        if not self._context.original.seed.kind.is_scored:
            return 0.0
        return float(np.abs(exact.exp(seen.point.log_probs) - seen.deployed).sum()) / 2.0

    def _far_point(self) -> Generator[Ask, Answer, PathPoint | None]:
        """Return the far input within the bounds of which the original is surest, else None."""
        original, bounds = self._context.original, self._context.bounds
        ends = [self._noisy() for _ in range(_SCREENED)] if bounds.is_wide else []
        fitting = [end for end in ends if bounds.contain(end)]
        paths = [
            LinePath(original.values, original.space.values(end), max_t=1.0) for end in fitting
        ]
        found = yield from original.ends(paths, fitting)
        sure = [point for point in found if point.margin >= _SURE]
        return max(sure, key=lambda point: point.margin, default=None)

    def _noisy(self) -> Sample:
        """Return the seed plus Gaussian noise of about the largest L2 allowed, clipped."""
        bounds = self._context.bounds
        values, space = self._context.original.values, self._context.original.space
        noise = exact.normal(self._context.rng, values.shape)
        noise *= space.unit * bounds.farthest / exact.norm(noise)
        changed = values
        for _ in range(_FITTINGS):
            changed = space.clipped(values + bounds.clip_linf(noise))
            distance = exact.norm(changed - values) / space.unit
            noise *= min(_MAX_GROWTH, _SHORT_OF_BOUND * bounds.farthest / max(distance, _TINY))
        return to_sample(changed)


def _severity(seen: Observation) -> float:
    return seen.severity

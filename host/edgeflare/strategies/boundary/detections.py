"""The boundary search for detectors: where the score of one object meets the confidence.

What the original detects changes where the score of an object does: of a detected one, which is
lost there, or of a candidate, which appears. Each object is followed between inputs by its class and
its overlap. To the methods of the search for labels it is a classifier of two classes, detected or
not (see `DetectedObject.scores`), whose boundary is at the confidence: `DeepFoolCrossing` brings the
input there, changed around the object alone, and the input is placed where the device is expected to
be on the other side. What it is expected to say follows from both models' scores of the object at
the seed, and after an answer from those in it. Objects with a large difference of both scores near
the confidence come first. What counts is the oracle's decision, whichever object it is about.

Where no object leads to a finding, the input is changed on the line to another seed or by natural
corruptions until the original's set of objects changes, and the object that changes it is taken.

Models of several labels have no places: a class is an object then, and all of the input is changed.

Source: none. Figures: docs/research/detection.md.
"""

from collections.abc import Generator, Iterator, Mapping
from typing import NamedTuple, cast

import numpy as np

from edgeflare._internal.exact import Floats
from edgeflare.answers.detections.matching import differences, is_at, place_of
from edgeflare.answers.metrics import is_finite
from edgeflare.strategies.boundary.deepfool import DeepFoolCrossing
from edgeflare.strategies.boundary.directions import Directions, WindowCosines
from edgeflare.strategies.boundary.options import (
    DETECTION_EFFORT,
    BoundaryOptions,
    Bounds,
    refuse_class_options,
)
from edgeflare.strategies.boundary.paths import Bracket, LinePath, draw_corruptions, line_ends
from edgeflare.strategies.boundary.points import OriginalProbe, Path, space_of
from edgeflare.strategies.boundary.probing import (
    DeviceProbe,
    Observation,
    SearchContext,
    even_target,
    nearest_target,
)
from edgeflare.strategies.boundary.severity import SeveritySearch
from edgeflare.types import Answer, Ask, Detections, Outcome, Output, Scores, Search, Seed
from edgeflare.words.search import budget_spent, nothing_found
from edgeflare_mutators import Corruption, Operator, SampleSpec

_MAX_OBJECTS = 8
_MAX_PATHS = 12
_QUERIES_AN_OBJECT = 3
_CAUTION = 0.5
"""The first input is placed by this share of the difference of scores that is expected."""
_LEAST_DRIFT = 2.5
"""With a smaller difference of both scores, in floors, an object promises nothing."""
_NEAR = 0.03
_USUAL_DRIFT = 0.01
_ROOM = 0.5
"""The part of an input that is changed reaches this share of the box beyond each of its sides."""
_LEAST_SIDE = 48
_WAITING = 3
_NEAR_SHARE = 0.12
"""A crossing is near where its L2 is below this share of `Bounds.radius`."""
_PLACES = (0.1, 0.2, 0.35, 0.5, 0.7, 1.0)
_MAX_CORRUPTIONS = 2
_MAX_CHANGES = 2


class DetectedObject(NamedTuple):
    """An object that is followed between inputs: its class, and its box, float64 [4], at the seed."""

    label: int
    box: Floats

    def score(self, answer: Detections) -> float:
        """Return the best score of a box of its class that overlaps with it; 0 without any."""
        alike = (answer.labels == self.label) & is_at(answer, self.box)
        return float(answer.scores[alike].max(initial=0.0))

    def scores(self, answer: Output) -> Scores:
        """Return the scores of two classes, detected or not, float64 [2], that add up to 1.

        They are equal where the score of the object is the confidence, and their difference is its
        distance from there. NaN where the answer, of detections, is not finite.
        """
        if not is_finite(answer):
            return np.full(2, np.nan)
        detections = cast("Detections", answer)
        half = (self.score(detections) - detections.rules.confidence) / 2.0
        return np.array([0.5 + half, 0.5 - half])


def check_options(options: BoundaryOptions) -> None:
    """Raise UsageError for options that only class scores have a meaning for."""
    refuse_class_options(options, "detections")


def search_detections(
    options: BoundaryOptions, pool: Mapping[str, Operator], seed: Seed, rng: np.random.Generator
) -> Search:
    """Search from a seed on which both detectors agree; `pool` are natural corruptions.

    Raises UsageError for options that only class scores have a meaning for.
    """
    check_options(options)
    return (yield from _DetectionSearch(options, pool, seed, rng).run())


class _ObjectSearch:
    """The search for labels at one object: what is known of it, and the crossing of its boundary."""

    def __init__(self, search: "_DetectionSearch", target: DetectedObject) -> None:
        original, deployed = (target.score(one) for one in search.answers)
        self.probe = OriginalProbe(search.seed, search.best, read=target.scores)
        self.device = DeviceProbe(self.probe, search.remaining, search.best_seen)
        self.context = SearchContext(
            self.probe, self.device, search.bounds, search.rng, search.seed.margin_floor
        )
        self.crossing = DeepFoolCrossing(
            self.probe, search.rng, search.effort, search.directions(target)
        )
        self._together = search.queries_together
        self.drift = 0.0
        """The deployed model's log-odds of the seed's decision at the seed, less the original's; 0
        where one of both has no box."""
        if min(original, deployed) > 0:
            self.drift = 2.0 * (deployed - original) * (1.0 if self.probe.label == 0 else -1.0)

    def distance(self, bracket: Bracket) -> float:
        """Return the L2 distance of a crossing's end to the seed."""
        return self.probe.distance(bracket.outside.sample)

    def cross_on(self, path: Path, before: float, after: float) -> Generator[Ask, Answer, None]:
        """Ask the device where the crossing between two places of a path is."""
        inside, outside = yield from self.probe.points(path, (before, after))
        if inside.log_odds > 0 > outside.log_odds:
            yield from self.query_at(Bracket(inside, outside), 0.0)

    def query_at(self, bracket: Bracket, drift: float) -> Generator[Ask, Answer, None]:
        """Ask the device at a crossing, and again where its answers point.

        `drift`: that of the log-odds, which is expected there; 0: unknown.
        """
        context, floor = self.context, self.context.floor
        if self._together:
            points = []
            for keeps in (True, False):
                point = yield from context.approach_or_perturb(
                    bracket, nearest_target(floor, keeps)
                )
                points += [] if point is None else [point]
            points = points[: int(min(len(points), self.device.remaining))]
            if points:
                yield from self.device.query(points)
            return
        least = 2.0 * max(_LEAST_DRIFT * floor, 1e-4)
        if abs(drift) < least:
            target = nearest_target(floor, bool(context.rng.integers(2)))
        else:
            target = even_target(floor, drift)
        point = yield from context.approach_or_perturb(bracket, target)
        for _ in range(_QUERIES_AN_OBJECT):
            if point is None or self.device.remaining <= 0:
                return
            seen = yield from self.device.query((point,))
            if not seen or seen[0].margin > 0 or abs(seen[0].drift or 0.0) < least:
                return
            target = even_target(floor, seen[0].drift or 0.0)
            point = (yield from context.perturb(point, bracket, target)) or (
                yield from context.approach(bracket, target)
            )


class _DetectionSearch:
    """One search: the objects in their order, then paths along which others come and go."""

    def __init__(
        self,
        options: BoundaryOptions,
        pool: Mapping[str, Operator],
        seed: Seed,
        rng: np.random.Generator,
    ) -> None:
        self.seed = seed
        self.rng = rng
        self.answers = cast("tuple[Detections, Detections]", seed.outputs[:2])
        self.bounds = Bounds(options, seed.sample)
        self.effort = options.effort or DETECTION_EFFORT
        self.best: Outcome | None = None
        self.best_seen: Observation | None = None
        self.queries_together = (options.candidates or 1) > 1
        self._options = options
        self._pool = [one for one in pool.values() if isinstance(one, Corruption)]
        self._values = space_of(seed.sample).values(seed.sample)
        self._queries = 0
        self._last: _ObjectSearch | None = None

    @property
    def remaining(self) -> int | None:
        """The number of inputs that the device may be asked about yet; None: any number."""
        budget = self._options.device_budget
        return None if budget is None else max(budget - self._queries, 0)

    def run(self) -> Search:
        """Search at the objects, then on paths; after a finding for a larger margin."""
        crossing = self._options.crossing
        if crossing in ("auto", "least-l2"):
            yield from self._search_at_objects()
        for path in self._paths():
            if not self._goes_on:
                break
            yield from self._search_on(path)
        if self._last is not None and self.best is not None and self.remaining:
            here = self._last
            yield from SeveritySearch(here.context, explores=False).search(here.crossing)
            self._note(here)
        return self.best or Outcome(None, reason=self._reason())

    def _search_at_objects(self) -> Generator[Ask, Answer, None]:
        """Ask the device at the crossing of one object after the other, near ones first.

        A far one waits until there are `_WAITING` of them, or no other.
        """
        waiting: list[tuple[float, _ObjectSearch, Bracket]] = []
        objects = self._objects()
        while self._goes_on and (objects or waiting):
            if objects and len(waiting) < _WAITING:
                here = _ObjectSearch(self, objects.pop(0))
                bracket = yield from here.crossing.find()
                if bracket is None:
                    continue
                waiting.append((here.distance(bracket), here, bracket))
            waiting.sort(key=lambda one: one[0])
            if (
                objects
                and len(waiting) < _WAITING
                and waiting[0][0] > _NEAR_SHARE * self.bounds.radius
            ):
                continue
            _, here, bracket = waiting.pop(0)
            here.device.budget = self.remaining
            yield from here.query_at(bracket, _CAUTION * here.drift)
            self._note(here)

    def directions(self, target: DetectedObject) -> Directions | None:
        """Return directions around an object; None: those of the whole input."""
        shape = self._values.shape
        box = place_of(target.box, self.answers[0].rules)
        if len(shape) == 1 or box is None:
            return None
        columns, rows = (
            _widened(box[side] * length, box[side + 2] * length, length)
            for side, length in enumerate((shape[1], shape[0]))
        )
        return WindowCosines(shape, rows, columns, self.effort)

    @property
    def _goes_on(self) -> bool:
        return self.best is None and self.remaining != 0

    def _note(self, here: _ObjectSearch) -> None:
        """Keep what the search at an object has found."""
        self._queries += here.device.queries
        here.device.queries = 0
        here.device.budget = self.remaining
        self.best, self.best_seen, self._last = here.probe.best, here.device.best, here

    def _objects(self) -> list[DetectedObject]:
        """Return the objects of the seed, the most promising one first."""
        original, deployed = self.answers
        confidence = original.rules.confidence
        found: list[tuple[float, DetectedObject]] = []
        for answer in self.answers:
            for label, box, score in zip(answer.labels, answer.boxes, answer.scores, strict=True):
                target = DetectedObject(int(label), box)
                ours, theirs = target.score(original), target.score(deployed)
                if not is_finite(original) or (ours != score if answer is original else ours > 0):
                    continue
                drift = abs(theirs - ours) if min(theirs, ours) > 0 else 0.0
                found.append(((drift + _USUAL_DRIFT) / (abs(ours - confidence) + _NEAR), target))
        found.sort(key=lambda one: -one[0])
        return [target for _, target in found[:_MAX_OBJECTS]]

    def _paths(self) -> Iterator[Path]:
        """Yield ways to other inputs: to other seeds, the nearest first, and by corruptions."""
        crossing, seed = self._options.crossing, self.seed
        if crossing != "natural":
            fitting = [space_of(one).values(one) for one in line_ends(seed.sample, seed.others)]
            fitting.sort(key=lambda one: float(np.square(one - self._values).sum()))
            for end in fitting[:_MAX_PATHS]:
                yield LinePath(self._values, end, max_t=1.0)
        spec = SampleSpec.of(seed.sample, seed.rate)
        for _ in range(_MAX_PATHS if crossing != "line" and self._pool else 0):
            yield draw_corruptions(seed.sample, self._pool, _MAX_CORRUPTIONS, self.rng, spec)

    def _search_on(self, path: Path) -> Generator[Ask, Answer, None]:
        """Search where a path changes what the original detects, at each place in turn."""
        before, known = 0.0, self.answers[0]
        for t in _PLACES:
            sample = path.at(t)
            if not self.bounds.contain(sample):
                return
            answer = yield Ask((sample,), of="original", best=self.best)
            found = cast("Detections", answer.outputs[0].original)
            if not is_finite(found):
                yield Ask((sample,), best=self.best)  # a finding of its own kind: the search ends
            for target in _changed(known, found)[:_MAX_CHANGES]:
                here = _ObjectSearch(self, target)
                yield from here.cross_on(path, before, t)
                self._note(here)
                if not self._goes_on:
                    return
            before, known = t, found

    def _reason(self) -> str:
        if self.remaining == 0:
            return budget_spent(self._options.device_budget)
        return nothing_found("objects", self._options.bounds_text(), is_asked=self._queries > 0)


def _changed(before: Detections, after: Detections) -> list[DetectedObject]:
    """Return the objects that one of two answers of one model has alone, the surest one first."""
    found = []
    for one in sorted(differences(before, after), key=lambda one: -one.margin):
        answer, place = (before, one.original) if one.kind != "ghost" else (after, one.deployed)
        if one.kind != "shift" and place is not None:
            found.append(DetectedObject(int(answer.labels[place]), answer.boxes[place]))
    return found


def _widened(low: float, high: float, length: int) -> slice:
    """Return the part of an axis around a box, at least `_LEAST_SIDE` values where there are."""
    low, high = float(np.clip(low, 0, length)), float(np.clip(high, 0, length))
    room = max(_ROOM * (high - low), (_LEAST_SIDE - (high - low)) / 2)
    begin, end = max(int(low - room), 0), min(int(np.ceil(high + room)), length)
    return slice(min(begin, max(length - _LEAST_SIDE, 0)), max(end, min(_LEAST_SIDE, length)))

"""The boundary search: few device queries, and findings as severe as a budget allows.

The original runs on the host, where a query costs next to nothing. It is asked where its decision
changes, and the device only about inputs near that boundary: deployment has moved the boundary (the
*drift*), mostly by more than the distance of such an input to it, so that the device decides
otherwise on one side of it. The drift on all seeds predicts that side more often than not (see
`drift`); after the first answer the drift there is known, and the second input is on the side that
it points to, a few values by a few levels away (see `perturb_locally`). Where a device query costs
as much as some eight of the original's, a third class is brought to a tie with the two: on two of
three such inputs the device decides otherwise, not on one of two (see `first_trigger`). Where both
models nearly agree the search goes on at another crossing. With a `device_budget` the rest of it
makes the finding severe (see `severity`); with `candidates` above 1 both sides of several crossings
are asked about at once.

Recordings are searched like images (see `Space` and `SoundParts`); models that return text have
`transcripts`, detectors `detections`, and answers that are compared by a tolerance `tolerance`.

Source: none; DFLARE (section 3) is what it is measured against. The crossing least-l2 follows
DeepFool (see `deepfool`).

Figures: docs/research/boundary.md. What was tried without gain: docs/research/tried.md.
"""

from collections.abc import Callable, Generator, Mapping
from functools import partial
from typing import TypeAlias

import numpy as np

from edgeflare.answers import KINDS
from edgeflare.errors import UsageError
from edgeflare.metrics import ssim
from edgeflare.strategies.boundary import detections, tolerance, transcripts
from edgeflare.strategies.boundary.crossings import Crossing, make_crossing
from edgeflare.strategies.boundary.detections import search_detections
from edgeflare.strategies.boundary.first_trigger import FirstTriggerSearch, TieSearch
from edgeflare.strategies.boundary.options import Answered, BoundaryOptions, Bounds
from edgeflare.strategies.boundary.paths import Bracket
from edgeflare.strategies.boundary.points import OriginalProbe, PathPoint
from edgeflare.strategies.boundary.probing import DeviceProbe, SearchContext
from edgeflare.strategies.boundary.schedule import CrossingSchedule, is_hopeless, largest_severity
from edgeflare.strategies.boundary.severity import SeveritySearch
from edgeflare.strategies.boundary.tolerance import search_by_tolerance
from edgeflare.strategies.boundary.transcripts import IN_PLACE, search_transcripts
from edgeflare.strategies.operators import check_operator_pool
from edgeflare.types import Answer, Ask, Outcome, Search, Seed, Strategy
from edgeflare.words.search import budget_spent, hopeless, nothing_found
from edgeflare_mutators import Corruption, Kind, Operator, corruptions, default_pool, kind_of

_Pool: TypeAlias = Mapping[str, Operator] | None
_DEFAULT_EFFORT = 64
_SPARE_EFFORT = 8
_LOW_EFFORT = 8
"""Up to this effort the original is asked as little as possible."""
_MAX_CROSSINGS_WITHOUT_TIE = 4
_MAX_REACH = 1.5
"""The first query is made at a tie only if that is at most so many times as far from the seed as
the crossing (docs/research/boundary.md)."""
_MAX_TIE_FLOOR = 0.02
"""The largest margin floor at which three tied classes are close enough to each other."""
_OTHERS: Mapping[Answered, Callable[[BoundaryOptions], None]] = {
    "transcript": transcripts.check_options,
    "detections": detections.check_options,
    "values": tolerance.check_options,
}
"""What refuses options without a meaning for answers other than class scores."""
_ANY_IMAGE = np.zeros((7, 7, 1), dtype=np.uint8)


def boundary(options: BoundaryOptions, operators: _Pool) -> Strategy:
    """Return the strategy; `operators` are for the mutants (None: the default pool of the seed's
    kind) or the natural corruptions (None: all of that kind, for models that return text those in
    `IN_PLACE`).

    A crossing "auto" that was not resolved is least-l2, of text natural. Raises UsageError for
    operators that the crossing does not use, and where `min_ssim` is stated and scikit-image is
    missing.
    """
    if options.min_ssim is not None:
        ssim(_ANY_IMAGE, _ANY_IMAGE)
    if operators is not None and options.crossing not in ("mutants", "natural"):
        only_audio = all(operator.kind == "audio" for operator in operators.values())
        if options.crossing != "auto" or not only_audio:
            raise _unused_operators(options)
    if options.crossing == "natural" and operators is not None:
        _check_natural(operators)
    return partial(_search, options, operators)


def answered_words(answered: Answered) -> str:
    """Return what is searched for, in words."""
    nouns = (kind.boundary_noun for kind in KINDS if kind.boundary_options == answered)
    return next(nouns, answered)


def check_boundary(
    options: BoundaryOptions, operators: _Pool, kind: Kind, answered: Answered
) -> None:
    """Raise UsageError for options without a meaning for samples of a kind, and missing libraries.

    `answered`: what the models' answers are; with "image" or "audio" class scores. `operators` as
    for `boundary`.
    """
    if options.gradients and kind == "audio":
        raise UsageError(
            "strategy boundary: gradients are those of images alone; leave gradients out for audio"
        )
    if answered in _OTHERS:
        _OTHERS[answered](options)
    if answered != "transcript":
        _check_bounds(options, kind)
    _operator_pool(options, operators, kind, words=answered == "transcript")


def _check_bounds(options: BoundaryOptions, kind: Kind) -> None:
    if options.min_ssim is not None and kind == "audio":
        raise UsageError(
            "strategy boundary: min_ssim means nothing for audio; state max_l2 or max_linf"
        )


def _unused_operators(options: BoundaryOptions) -> UsageError:
    return UsageError(
        f"strategy boundary: crossing {options.crossing} uses no mutation operators; state "
        "--crossing mutants or natural with them, or --strategy dflare"
    )


def _check_natural(operators: Mapping[str, Operator]) -> None:
    for name, operator in operators.items():
        if not isinstance(operator, Corruption):
            raise UsageError(
                f"strategy boundary: {name} is no natural corruption; crossing natural takes "
                f"{', '.join(corruptions(operator.kind))}"
            )


def _operator_pool(
    options: BoundaryOptions, operators: _Pool, kind: Kind, *, words: bool
) -> Mapping[str, Operator]:
    """Return the operators for samples of this kind; `words`: the models return text.

    Raises UsageError for operators of another kind, or that the crossing does not use.
    """
    crossing = "natural" if words else options.crossing
    if operators is not None:
        if crossing not in ("mutants", "natural"):
            raise _unused_operators(options)
        if crossing == "natural":
            _check_natural(operators)
        return check_operator_pool(operators, kind)
    if words:
        return check_operator_pool({name: corruptions(kind)[name] for name in IN_PLACE[kind]}, kind)
    if crossing == "natural":
        return check_operator_pool(dict(corruptions(kind)), kind)
    return check_operator_pool(default_pool(kind), kind) if crossing == "mutants" else {}


def _search(
    options: BoundaryOptions, operators: _Pool, seed: Seed, rng: np.random.Generator
) -> Search:
    search: Search = seed.kind.search_boundary(options, operators, seed, rng)
    return (yield from search)


def _kind_of_sample(seed: Seed) -> Kind:
    return kind_of(seed.sample)


def search_by_distance(
    options: BoundaryOptions, operators: _Pool, seed: Seed, rng: np.random.Generator
) -> Search:
    """Search for answers as far apart as possible: what an answer's kind has unless it says more."""
    kind = _kind_of_sample(seed)
    _check_bounds(options, kind)
    return (yield from search_by_tolerance(options, operators or corruptions(kind), seed, rng))


def search_objects(
    options: BoundaryOptions, operators: _Pool, seed: Seed, rng: np.random.Generator
) -> Search:
    """Search for an object that a detector's answers differ in."""
    kind = _kind_of_sample(seed)
    _check_bounds(options, kind)
    return (yield from search_detections(options, operators or corruptions(kind), seed, rng))


def search_texts(
    options: BoundaryOptions, operators: _Pool, seed: Seed, rng: np.random.Generator
) -> Search:
    """Search for another word by natural corruptions."""
    kind = _kind_of_sample(seed)
    pool = _operator_pool(options, operators, kind, words=True)
    harder = pool if operators else check_operator_pool(dict(corruptions(kind)), kind)
    smooth = not operators
    return (yield from search_transcripts(options, pool, harder, seed, rng, smooth=smooth))


def search_scores(
    options: BoundaryOptions, operators: _Pool, seed: Seed, rng: np.random.Generator
) -> Search:
    """Search for another top-1 class at the original's boundary."""
    kind = _kind_of_sample(seed)
    _check_bounds(options, kind)
    pool = _operator_pool(options, operators, kind, words=False)
    original = OriginalProbe(seed, has_gradients=options.gradients)
    device = DeviceProbe(original, options.device_budget)
    name = "least-l2" if options.crossing == "auto" else options.crossing
    effort = options.effort or _DEFAULT_EFFORT
    bounds = Bounds(options, seed.sample)
    context = SearchContext(original, device, bounds, rng, seed.margin_floor)
    bounded = bool(options.bounds_text())
    crossings = CrossingSchedule(
        _methods(name, original, rng, effort, pool, bounded=bounded), bounded=bounded
    )
    first = FirstTriggerSearch(context, coarse=effort <= _LOW_EFFORT)
    three = options.tied_classes == 3 and effort > _LOW_EFFORT
    if (options.candidates or 1) > 1:
        while _goes_on(device, crossings):
            yield from _query_many(options.candidates or 1, crossings, first, device)
    elif three and len(original.log_probs) > 2 and context.floor <= _MAX_TIE_FLOOR:
        ties = TieSearch(context, first.drift_model, first.min_drift)
        yield from _search_ties(ties, first, crossings, device)
    while _goes_on(device, crossings):
        bracket = yield from crossings.find()
        if bracket is not None:
            yield from _search_at(bracket, first, crossings, device)
    if device.best is not None and options.device_budget is not None:
        yield from SeveritySearch(context).search(crossings)
    return original.best or Outcome(None, reason=_reason(options, device))


def _methods(
    name: str,
    original: OriginalProbe,
    rng: np.random.Generator,
    effort: int,
    pool: Mapping[str, Operator],
    *,
    bounded: bool,
) -> list[Crossing]:
    """Return the methods of crossing the boundary: the chosen one, then those that are spare.

    Natural corruptions have none, since other inputs would not be natural. Within bounds on the
    distance there is the line alone, since the others lead farther.
    """
    chosen = make_crossing(name, original, rng, effort, pool)
    if name == "natural":
        return [chosen]
    kind = _kind_of_sample(original.seed)
    natural = dict(corruptions(kind))
    if kind == "audio":
        natural = {one: natural[one] for one in IN_PLACE[kind]}
    spare: list[Crossing] = []
    pools: Mapping[str, Mapping[str, Operator]] = {
        "line": {},
        "mutants": default_pool(kind),
        "natural": natural,
        "far": {},
    }
    for other, needed in pools.items():
        if other == name or (bounded and other != "line"):
            continue
        try:
            found = check_operator_pool(needed, kind)
        except UsageError:  # a library is missing
            continue
        spare.append(make_crossing(other, original, rng, _SPARE_EFFORT, found))
    return [chosen, *spare]


def _search_at(
    bracket: Bracket,
    first: FirstTriggerSearch,
    crossings: CrossingSchedule,
    device: DeviceProbe,
) -> Generator[Ask, Answer, None]:
    """Ask the device at a crossing, and tell the schedule what it showed there."""
    before = len(device.observations)
    yield from first.search(bracket)
    _rate(crossings, first, device, before)


def _rate(
    crossings: CrossingSchedule, first: FirstTriggerSearch, device: DeviceProbe, before: int
) -> None:
    seen = device.observations[before:]
    crossings.rate(seen, enough=any(first.is_enough(one) for one in seen))


def _goes_on(device: DeviceProbe, crossings: CrossingSchedule) -> bool:
    if device.best is not None or device.remaining <= 0 or crossings.is_exhausted:
        return False
    return not is_hopeless(device.observations, device.original.seed.margin_floor)


def _search_ties(
    ties: TieSearch,
    first: FirstTriggerSearch,
    crossings: CrossingSchedule,
    device: DeviceProbe,
) -> Generator[Ask, Answer, None]:
    """Ask at ties until one triggers, or too many crossings had none.

    The first query is made at a tie near the crossing, or else at the crossing itself. Later, a
    crossing without a tie is asked about once the next has none either.
    """
    failures, without = 0, None
    while _goes_on(device, crossings) and failures < _MAX_CROSSINGS_WITHOUT_TIE:
        bracket = yield from crossings.find()
        before = len(device.observations)
        reach = np.inf if before else _MAX_REACH
        if bracket is not None and (yield from ties.search(bracket, crossings, reach)):
            _rate(crossings, first, device, before)
            without = None
            continue
        failures += bracket is not None
        nearest = without or bracket
        if nearest is None or (before and without is None):
            without = nearest
            continue
        yield from _search_at(nearest, first, crossings, device)
        without = None
    if without is not None and device.best is None and device.remaining > 0:
        yield from _search_at(without, first, crossings, device)


def _query_many(
    count: int, crossings: CrossingSchedule, first: FirstTriggerSearch, device: DeviceProbe
) -> Generator[Ask, Answer, None]:
    """Ask about both sides of several crossings, `count` inputs in all, in one request."""
    points: list[PathPoint] = []
    for _ in range(2 * count):
        bracket = yield from crossings.find()
        if bracket is None:
            continue
        for point in (yield from first.both_sides(bracket)):
            if all(not np.array_equal(point.sample, one.sample) for one in points):
                points.append(point)
        if len(points) >= count:
            break
    if points:
        before = len(device.observations)
        yield from device.query(points[: int(min(count, device.remaining))])
        _rate(crossings, first, device, before)


def _reason(options: BoundaryOptions, device: DeviceProbe) -> str:
    """Return why nothing was found, as far as it is known."""
    if device.remaining <= 0:
        return budget_spent(options.device_budget)
    floor = device.original.seed.margin_floor
    if is_hopeless(device.observations, floor):
        largest = largest_severity(device.observations) or 0.0
        return hopeless(len(device.observations), largest, floor)
    return nothing_found("boundary", options.bounds_text(), is_asked=device.queries > 0)

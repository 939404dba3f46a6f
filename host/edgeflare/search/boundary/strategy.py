"""The boundary search: as few device queries as can be, and findings as severe as a budget allows.

The original runs on the host, where a question costs next to nothing. It is asked where its decision changes, and the
device only about inputs beside that boundary: deployment has moved the boundary (the *drift*), mostly by more than
such an input is away from it, so that the device decides otherwise on one side of it. Which side, the drift on all
seeds tells more often than not (see `expecting`); after the first answer the drift there is known, and the second
input is on the side that it points to, a few values by a few levels away (see `nudging`). Where a device query is
worth some hundred of the original's, a third class is brought to a tie with the two: on two of three such inputs the
device decides otherwise, not on one of two (see `at_ties`). Where both models all but agree the search goes on at
another crossing. With a `device_budget` the rest of it makes the finding severe (see
`severity`); with `candidates` above 1 both sides of several crossings are asked about at once.

Recordings are searched like images (see `space` and `sounds`); where a recogniser transcribes them, see `heard`.

Source: none; DFLARE (section 3) is what it is measured against. Least-L2 crossings follow DeepFool (see `least_l2`).

Tried and no better: choosing the rival class by the drift at the seed; a ridge model of the drift over low-frequency
coefficients; a quantised copy of the original on the host as a model of the device (its drift had the
right sign on .52 to .81 of the inputs); the lowest frequencies as directions for images of 224 x 224 pixels (no
crossing on half of the photographs), and random directions there. Four classes that tie: models of int8 outputs tie
as well, the oftener the more classes there are (simulated with their drift of .2 to .3 and their steps of .17 in
log-odds: .48 to .55 of the first queries trigger, with three .46 to .52). Noise before the crossing: on keyword spotting
1.43 queries for 1.74 at five times the distance; on ResNet-8 nothing. There one level in one value changes the drift by
three fifths of its own size, so what a query tells is mostly gone at the next input.
"""

from collections.abc import Generator, Mapping
from functools import partial

import numpy as np

from edgeflare.distances import ssim
from edgeflare.errors import UsageError
from edgeflare.search.boundary.asking import Device
from edgeflare.search.boundary.at_ties import AtTies
from edgeflare.search.boundary.crossings import Crossing, Line, crossing
from edgeflare.search.boundary.first import First
from edgeflare.search.boundary.ground import Ground
from edgeflare.search.boundary.heard import KEEPING_TIME, check_options, heard
from edgeflare.search.boundary.limits import Limits
from edgeflare.search.boundary.options import BoundaryOptions
from edgeflare.search.boundary.placing import Bracket
from edgeflare.search.boundary.points import Point, View
from edgeflare.search.boundary.severity import Severity
from edgeflare.search.boundary.tying import Tie
from edgeflare.search.pools import usable
from edgeflare.types import Answer, Ask, Outcome, Search, Seed, Strategy, Transcript
from edgeflare_mutators import Corruption, Kind, Operator, corruptions, default_pool, kind_of

_USUAL_EFFORT = 64
_SPARING = 8
"""Up to this effort the original is asked as little as can be."""
_MOST_CROSSINGS = 300
_MOST_IN_VAIN = 40
_TIES_IN_VAIN = 4
"""After so many crossings without a tie to ask about none is looked for any more."""
_LARGEST_FLOOR = 0.02
"""Of the margin, with which three classes that tie are near enough to each other."""
_ANY_IMAGE = np.zeros((7, 7, 1), dtype=np.uint8)


def boundary(options: BoundaryOptions, operators: Mapping[str, Operator] | None) -> Strategy:
    """Return the strategy; `operators` are the mutants' (None: the default pool of the seed's kind) or the
    natural corruptions (None: all of that kind, where recognisers answer those that keep the time).

    A crossing "auto" that nobody resolved is least-l2, of recognisers natural. Raises UsageError for operators that the
    crossing has no use for, and where `min_ssim` is stated and scikit-image is missing.
    """
    if options.min_ssim is not None:
        ssim(_ANY_IMAGE, _ANY_IMAGE)
    if operators is not None and options.crossing not in ("mutants", "natural"):
        sounds = all(operator.kind == "audio" for operator in operators.values())
        if options.crossing != "auto" or not sounds:
            raise _useless(options)
    if options.crossing == "natural" and operators is not None:
        _check_natural(operators)
    return partial(_search, options, operators)


def check_audio(
    options: BoundaryOptions, operators: Mapping[str, Operator] | None, *, words: bool
) -> None:
    """Raise UsageError for what a search from recordings has no use for, or lacks a library for.

    `words`: recognisers answer, along natural corruptions; else there are class scores. `operators` as for `boundary`.
    """
    if words:
        check_options(options)
    _pool(options, operators, "audio", words=words)


def _useless(options: BoundaryOptions) -> UsageError:
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


def _pool(
    options: BoundaryOptions,
    operators: Mapping[str, Operator] | None,
    kind: Kind,
    *,
    words: bool,
) -> Mapping[str, Operator]:
    """Return the operators that a search from samples of this kind needs; `words`: recognisers answer.

    Raises UsageError for some of another kind, or that the crossing has no use for.
    """
    crossing = "natural" if words else options.crossing
    if operators is not None:
        if crossing not in ("mutants", "natural"):
            raise _useless(options)
        if crossing == "natural":
            _check_natural(operators)
        return usable(operators, kind)
    if words:
        return usable({name: corruptions(kind)[name] for name in KEEPING_TIME}, kind)
    if crossing == "natural":
        return usable(dict(corruptions(kind)), kind)
    return usable(default_pool(kind), kind) if crossing == "mutants" else {}


def _search(
    options: BoundaryOptions,
    operators: Mapping[str, Operator] | None,
    seed: Seed,
    rng: np.random.Generator,
) -> Search:
    words = isinstance(seed.outputs.original, Transcript)
    pool = _pool(options, operators, kind_of(seed.sample), words=words)
    if words:
        harder = pool if operators else usable(dict(corruptions("audio")), "audio")
        return (yield from heard(options, pool, harder, seed, rng))
    if options.min_ssim is not None and seed.sample.ndim == 1:
        raise UsageError(
            "strategy boundary: min_ssim means nothing for audio; state max_l2 or max_linf"
        )
    view = View(seed)
    device = Device(view, options.device_budget)
    name = "least-l2" if options.crossing == "auto" else options.crossing
    effort = options.effort or _USUAL_EFFORT
    ground = Ground(view, device, Limits(options, seed.sample), rng, seed.margin_floor)
    ways = _Ways(
        crossing(name, view, rng, effort, pool),
        Line(view, rng),
        only=name in ("natural", "line"),
    )
    first = First(ground, coarse=effort <= _SPARING)
    three = options.tied_classes == 3 and effort > _SPARING
    if (options.candidates or 1) > 1:
        while device.best is None and device.left > 0 and not ways.spent:
            yield from _ask_at_once(options.candidates or 1, ways, first, device)
    elif three and len(view.logs) > 2 and ground.floor <= _LARGEST_FLOOR:
        yield from _with_ties(AtTies(ground, first.expecting, first.weak), first, ways, device)
    while device.best is None and device.left > 0 and not ways.spent:
        bracket = yield from ways.cross()
        if bracket is not None:
            yield from first.at(bracket)
    if device.best is not None and options.device_budget is not None:
        yield from Severity(ground).search(ways)
    return view.best or Outcome(None, reason=_why(options, device))


def _with_ties(
    at_ties: AtTies, first: First, ways: "_Ways", device: Device
) -> Generator[Ask, Answer, None]:
    """Ask at ties until one triggers, or too many crossings had none to ask about.

    The nearest crossing without one is asked about itself once the next has none either.
    """
    in_vain, kept = 0, None
    while device.best is None and device.left > 0 and not ways.spent and in_vain < _TIES_IN_VAIN:
        bracket = yield from ways.cross()
        if bracket is not None and (yield from at_ties.at(bracket, ways)):
            kept = None
            continue
        in_vain += bracket is not None
        if kept is None:
            kept = bracket
            continue
        yield from first.at(kept)
        kept = None
    if kept is not None and device.best is None and device.left > 0:
        yield from first.at(kept)


def _why(options: BoundaryOptions, device: Device) -> str:
    """Return why nothing was found, as far as it can be told."""
    if device.left <= 0:
        return f"the device budget of {options.device_budget} queries was spent without a triggering input"
    given = {
        name: getattr(options, name)
        for name in ("max_l2", "max_linf", "min_ssim")
        if getattr(options, name) is not None
    }
    within = " and ".join(f"{name} {value:g}" for name, value in given.items())
    asked = "" if device.asked else ": nothing was asked of the device"
    if within:
        return f"no triggering input was found within {within}{asked}; wider bounds may have one"
    return (
        f"no triggering input was found beside the original's decision boundary{asked}; another "
        "crossing, or strategy dflare, may find one"
    )


class _Ways:
    """The chosen crossing; where it finds none, a line to another seed for once (natural ones stay natural)."""

    def __init__(self, chosen: Crossing, spare: Crossing, *, only: bool) -> None:
        self._chosen = chosen
        self._spare = spare
        self._only = only
        self._failed = 0
        self._in_vain = 0
        self._tried = 0
        self._last = chosen

    @property
    def spent(self) -> bool:
        """Whether so many tries were made, or so many in a row found none, that there is no more hope."""
        return self._in_vain >= _MOST_IN_VAIN or self._tried >= _MOST_CROSSINGS

    def cross(self) -> Generator[Ask, Answer, Bracket | None]:
        """Return another crossing; None where this try did not find one."""
        spare = self._failed > 0 and not self._only
        bracket = yield from (self._spare if spare else self._chosen).cross()
        self._failed = 0 if spare or bracket is not None else self._failed + 1
        self._in_vain = 0 if bracket is not None else self._in_vain + 1
        self._tried += 1
        self._last = self._spare if spare else self._chosen
        return bracket

    def tied(self, found: Bracket) -> Generator[Ask, Answer, Tie | None]:
        """Return where a third class ties with the two of the last crossing."""
        return (yield from self._last.tied(found))


def _ask_at_once(
    count: int, ways: Crossing, first: First, device: Device
) -> Generator[Ask, Answer, None]:
    """Ask about both sides of as many crossings as make up `count` inputs, in one request."""
    points: list[Point] = []
    for _ in range(2 * count):
        bracket = yield from ways.cross()
        if bracket is None:
            continue
        for point in (yield from first.both_sides(bracket)):
            if all(not np.array_equal(point.sample, one.sample) for one in points):
                points.append(point)
        if len(points) >= count:
            break
    if points:
        yield from device.ask(points[: int(min(count, device.left))])

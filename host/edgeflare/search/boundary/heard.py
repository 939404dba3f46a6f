"""The boundary search for speech recognisers: where on the way to a worse recording the original hears other words.

A recogniser's answer is words, each with a margin (see `edgeflare.transcripts`). The seed's recording is made worse by
natural corruptions that grow together, until the original no longer hears the seed's words, and the strength at which that
happens is narrowed down by the margin of the words that change, all on the host. Then the device is asked beside the
change: its own change lies elsewhere, so that on one side of it both models hear different words. Which side, the
device's margin of those words tells after the first answer: where it is the surer of the seed's words, the side on which
the original has lost them.

Source: none; what it is measured against is DFLARE's section 6.1 (table 9: 5.88 and 8.42 queries, of DiffChaser 215 and 223).
Measured on Whisper tiny.en, float against dynamic int8 (suite ``speech-to-text``, 22 utterances of 1 to 10 s on which both agree,
margin floor .001): a triggering input from each, 2.00 device queries in the mean (median 1.5), 22 host queries (median 12), a median
signal-to-noise ratio of 7 dB. Of two utterances noise, room and band-pass change no word in 40 tries: hence the harder ones.

Tried and no better: all eight corruptions from the first, among them those that move the words in time (on 8 utterances
1.4 queries, where the first three needed as many, but the ratio, -3 dB, says nothing then); to give a change up where the place beside it is one of which the
original is less sure than the floor (of a stand-in for a recogniser 2.0 queries, against 1.6).
"""

from collections.abc import Generator, Mapping

import numpy as np

from edgeflare.errors import UsageError
from edgeflare.search.boundary.limits import Limits
from edgeflare.search.boundary.listening import Change, Listening, Place
from edgeflare.search.boundary.options import BoundaryOptions
from edgeflare.search.boundary.paths import Graded, draw_graded
from edgeflare.types import Answer, Ask, Outcome, Search, Seed
from edgeflare_mutators import Corruption, Operator, SampleSpec

KEEPING_TIME = ("white-noise", "room", "band-pass")
"""The corruptions to draw from unless others are named: words stay where they are, so that a signal-to-noise ratio
says how much a person hears of the change."""
_MOST_PATHS = 40
_MOST_CORRUPTIONS = 2
_PATIENCE = 6
"""After so many paths on which the original heard the same words to their ends, harder ones are drawn."""
_FIRST_STRENGTH = 0.2
_GROWTH = (1.8, 2.5)
_PAST = 1.1
"""A step goes so much farther than to where the margin would be 0 if it fell on as it did."""
_CLOSE = 0.05
_MOST_STEPS = 6
_MORE_STEPS = 3
_QUERIES_A_CHANGE = 3
_SHARE_OF_DRIFT = 0.7
_WEAK = 0.01
_ABOVE_FLOOR = 1.05


def heard(
    options: BoundaryOptions,
    pool: Mapping[str, Operator],
    harder: Mapping[str, Operator],
    seed: Seed,
    rng: np.random.Generator,
) -> Search:
    """Search from a seed that both recognisers transcribe alike; `pool` are the corruptions to draw from.

    `harder` are those for a recording whose words they can't change: one more at once is drawn from these then.
    Raises UsageError for options that only class scores have a meaning for.
    """
    check_options(options)
    drawn, spare = (
        [one for one in some.values() if isinstance(one, Corruption)] for some in (pool, harder)
    )
    listening = Listening(seed)
    limits = Limits(options, seed.sample)
    search = _Search(listening, limits, rng, seed.margin_floor, (options.candidates or 1) > 1)
    spec = SampleSpec.of(seed.sample, seed.rate)
    in_vain = 0
    for _ in range(_MOST_PATHS):
        if in_vain < _PATIENCE:
            path = draw_graded(seed.sample, drawn, _MOST_CORRUPTIONS, rng, spec)
        else:
            path = draw_graded(seed.sample, spare, _MOST_CORRUPTIONS + 1, rng, spec)
        change = yield from search.reach(path)
        in_vain += change is None
        if change is not None and (yield from search.ask_about(change)):
            assert listening.best is not None  # noqa: S101 - something triggered
            return listening.best
    return Outcome(None, reason=_why(listening, options))


def check_options(options: BoundaryOptions) -> None:
    """Raise UsageError for options that only class scores have a meaning for."""
    stated = {
        "device_budget": options.device_budget is not None,
        "min_ssim": options.min_ssim is not None,
        "tied_classes": options.tied_classes == 3,
    }
    for name, given in stated.items():
        if given:
            raise UsageError(
                f"strategy boundary: {name} means nothing for transcripts; leave it out"
            )
    if options.crossing not in ("auto", "natural"):
        raise UsageError(
            f"strategy boundary: crossing {options.crossing} needs class scores; of transcripts the change is looked "
            "for along natural corruptions: leave --crossing out, or state natural"
        )


def _why(listening: Listening, options: BoundaryOptions) -> str:
    asked = "" if listening.asked else ": nothing was asked of the device"
    bounds = [
        f"{name} {value:g}"
        for name in ("max_l2", "max_linf")
        if (value := getattr(options, name)) is not None
    ]
    if bounds:
        return f"no triggering input was found within {' and '.join(bounds)}{asked}; wider bounds may have one"
    return f"no triggering input was found where the original hears other words{asked}; strategy dflare may find one"


class _Search:
    """Goes to where the original hears other words, and asks the device on both sides of it."""

    def __init__(
        self,
        listening: Listening,
        limits: Limits,
        rng: np.random.Generator,
        floor: float,
        together: bool,
    ) -> None:
        self._listening = listening
        self._limits = limits
        self._rng = rng
        self._floor = floor
        self._together = together
        self._seen: list[Place] = []

    def reach(self, path: Graded) -> Generator[Ask, Answer, Change | None]:
        """Return where the seed's words are lost, narrowed down until a side is close; None where they never are within the bounds."""
        inside, t = self._listening.start(path), _FIRST_STRENGTH
        self._seen = []
        while True:
            place = yield from self._listening.at(path, t)
            self._seen.append(place)
            if not place.same:
                change = Change(inside, place)
                return (yield from self._narrowed(change, _CLOSE, _MOST_STEPS))
            if t >= path.farthest or not self._limits.hold(place.sample):
                return None
            ahead = _GROWTH[1] * t
            if place.margin < inside.margin:
                fall = (inside.margin - place.margin) / (t - inside.t)
                ahead = t + _PAST * place.margin / fall
            inside, t = place, min(float(np.clip(ahead, _GROWTH[0] * t, _GROWTH[1] * t)), 1.0)

    def _narrowed(
        self, change: Change, close: float, steps: int, keeps: bool | None = None
    ) -> Generator[Ask, Answer, Change]:
        """Return the change once a place beside it is as close; `keeps`: on which side, None for either."""
        aim = 0.0 if keeps is None else (0.5 if keeps else -0.5) * close
        for step in range(steps):
            sides = (True, False) if keeps is None else (keeps,)
            near = [self._nearest(change, side) for side in sides]
            if any(one is not None and abs(change.lead(one)) <= close for one in near):
                break
            t = change.guess(aim, halve=step % 2 == 1)
            place = yield from self._listening.at(change.inside.path, t)
            self._seen.append(place)
            change = change.with_place(place)
        return change

    def ask_about(self, change: Change) -> Generator[Ask, Answer, bool]:
        """Ask the device on a side of a change, then where its answer points to; return whether one triggers."""
        if self._together:
            sides = [self._nearest(change, keeps) for keeps in (True, False)]
            both = [one for one in sides if one is not None]
            return bool(both) and (yield from self._listening.ask(both))
        drift, keeps = 0.0, -change.lead(change.outside) >= change.lead(change.inside)
        for _ in range(_QUERIES_A_CHANGE):
            place = self._nearest(change, keeps)
            if place is None and drift == 0.0:
                place = self._nearest(change, not keeps)
            if place is None or abs(change.lead(place)) > abs(drift or 1.0):
                return False
            if (yield from self._listening.ask([place])):
                return True
            told = self._listening.told
            drift = 0.0 if told is None else change.drift(place, told)
            if abs(drift) < _WEAK:
                return False
            keeps = drift < 0
            change = yield from self._narrowed(
                change, _SHARE_OF_DRIFT * abs(drift), _MORE_STEPS, keeps
            )
        return False

    def _nearest(self, change: Change, keeps: bool) -> Place | None:
        """Return the place on a side of a change that is nearest to it, of those that the device may be asked about."""
        fitting = [one for one in self._seen if one.same == keeps and self._fits(one)]
        return min(fitting, key=lambda one: abs(one.t - change.inside.t), default=None)

    def _fits(self, place: Place) -> bool:
        """Whether the device may be asked about a place: it wasn't, the original is sure enough, and it is near enough."""
        sure = place.margin >= _ABOVE_FLOOR * self._floor
        return sure and self._listening.is_new(place) and self._limits.hold(place.sample)

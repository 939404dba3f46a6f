"""The boundary search for models that return text: where small changes of the input change the words.

The answer is words, each with a margin (see `edgeflare.transcripts`). The seed, a recording or an
image of text, is made worse along a path: natural corruptions whose strengths grow together, for an
image at first smooth noise, until the original no longer returns the seed's words, and the strength
at which that happens is narrowed down by the margin of the words that change, all on the host. Then
the device is asked near the change: its own change is elsewhere, so that on one side of it the
models return different words. After the first answer the device's margin of those words says which
side: where it is the surer of the seed's words, the side on which the original has lost them.

Where the usual corruptions change no word in many tries, harder ones follow.

Source: none; DFLARE's section 6.1 is what it is measured against. Figures: docs/research/audio.md.
What was tried without gain: docs/research/tried.md.
"""

from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, cast

import numpy as np

from edgeflare.answers.metrics import is_finite
from edgeflare.answers.transcripts import Word, aligned, differing, words
from edgeflare.errors import UsageError
from edgeflare.strategies.boundary.directions import smooth_noise
from edgeflare.strategies.boundary.options import BoundaryOptions, Bounds
from edgeflare.strategies.boundary.paths import LinePath, draw_corruptions
from edgeflare.strategies.boundary.points import Path, space_of
from edgeflare.types import Answer, Ask, Decision, Outcome, Sample, Search, Seed, Transcript
from edgeflare.words.search import nothing_found
from edgeflare_mutators import Corruption, Kind, Operator, SampleSpec

IN_PLACE: Mapping[Kind, tuple[str, ...]] = {
    "audio": ("white-noise", "room", "band-pass"),
    "image": ("brightness", "contrast", "haze", "natural-blur", "sensor-noise", "jpeg"),
}
"""The corruptions to draw from unless the user names some: words stay where they are, so that a
signal-to-noise ratio or an L2 distance says how much of the change a person notices."""
_SMOOTH_PATHS = 5
"""Number of paths from an image that add smooth noise, before any corruptions, where the user names
none: their triggers are the nearest to the seeds (docs/how-to/text-from-images.md)."""
_SMOOTH_CHANGE = 25.5
"""The root mean square of that noise at its full strength, in levels."""
_MAX_PATHS = 40
_MAX_CORRUPTIONS = 2
_PATIENCE = 6
"""Number of corruptions without a change of the original's words after which they get harder."""
_FIRST_STRENGTH = 0.2
_GROWTH = (1.8, 2.5)
_PAST_ZERO = 1.1
"""A step goes this much farther than where the margin would be 0 by extrapolation."""
_CLOSE = 0.05
_MAX_STEPS = 6
_MORE_STEPS = 3
_QUERIES_A_CHANGE = 3
_SHARE_OF_DRIFT = 0.7
_MIN_DRIFT = 0.01
_ABOVE_FLOOR = 1.05
_MIN_SHARE = 0.1


def search_transcripts(
    options: BoundaryOptions,
    pool: Mapping[str, Operator],
    harder: Mapping[str, Operator],
    seed: Seed,
    rng: np.random.Generator,
    *,
    smooth: bool = False,
) -> Search:
    """Search from a seed on which both models agree; `pool` are the corruptions to draw from.

    `harder` are those for a seed whose words the others do not change; one more at once is drawn
    from these. `smooth`: the first paths from an image add smooth noise. Raises UsageError for
    options that only class scores have a meaning for.
    """
    check_options(options)
    usual, hard = (
        [one for one in some.values() if isinstance(one, Corruption)] for some in (pool, harder)
    )
    probe = TranscriptProbe(seed)
    bounds = Bounds(options, seed.sample)
    search = _ChangeSearch(probe, bounds, rng, seed.margin_floor, (options.candidates or 1) > 1)
    spec = SampleSpec.of(seed.sample, seed.rate)
    smooth = smooth and seed.sample.ndim > 1
    failures = 0
    for place in range(_MAX_PATHS):
        is_hard = failures >= _PATIENCE
        if smooth and place < _SMOOTH_PATHS:
            change = yield from search.find(_smooth_path(seed.sample, rng))
        else:
            drawn, most = (hard, _MAX_CORRUPTIONS + 1) if is_hard else (usual, _MAX_CORRUPTIONS)
            change = yield from search.find(draw_corruptions(seed.sample, drawn, most, rng, spec))
            failures += change is None
        if change is not None and (yield from search.query_at(change)):
            assert probe.best is not None  # noqa: S101 - something triggered
            return probe.best
    reason = nothing_found("text", options.bounds_text(), is_asked=bool(probe.asked))
    return Outcome(None, reason=reason)


def _smooth_path(seed: Sample, rng: np.random.Generator) -> Path:
    """Return the line from an image to the image with smooth noise of `_SMOOTH_CHANGE`."""
    values = space_of(seed).values(seed)
    noise = smooth_noise(rng, seed.shape)
    return LinePath(values, values + noise * _SMOOTH_CHANGE * float(np.sqrt(seed.size)), max_t=1.0)


def check_options(options: BoundaryOptions) -> None:
    """Raise UsageError for options that only class scores have a meaning for."""
    stated = {
        "device_budget": options.device_budget is not None,
        "min_ssim": options.min_ssim is not None,
        "tied_classes": options.tied_classes == 3,
        "gradients": options.gradients,
    }
    for name, given in stated.items():
        if given:
            raise UsageError(
                f"strategy boundary: {name} means nothing for transcripts; leave it out"
            )
    if options.crossing not in ("auto", "natural"):
        raise UsageError(
            f"strategy boundary: crossing {options.crossing} needs class scores; of transcripts "
            "the change is looked for along natural corruptions: leave --crossing out, or state "
            "natural"
        )


class _WordPoint(NamedTuple):
    """An input on a path, `t` its strength, and the words that the original returns.

    `same`: whether they are the seed's.
    """

    path: Path
    t: float
    sample: Sample
    words: tuple[Word, ...]
    same: bool

    @property
    def margin(self) -> float:
        """The smallest margin of a word; 1 where there are none."""
        return _smallest_margin(self.words)


class _WordChange(NamedTuple):
    """Two inputs of a path: the original returns the seed's words for the first only."""

    inside: _WordPoint
    outside: _WordPoint

    def margin(self, found: tuple[Word, ...]) -> float:
        """Return the margin of the words that the change removes; below 0: of their replacement."""
        before = self.inside.words
        if _texts(found) != _texts(before):
            return -_smallest_margin(
                [other for _, other in differing(before, found) if other is not None]
            )
        whole = [pair for pair in aligned(before, self.outside.words) if pair[0] is not None]
        lost = [
            word
            for word, (one, other) in zip(found, whole, strict=True)
            if one is not None and (other is None or one.text != other.text)
        ]
        return _smallest_margin(lost or found)

    def guess(self, wanted: float, *, halve: bool) -> float:
        """Return the strength at which the original's margin is probably `wanted`, or halfway."""
        one, other = self.margin(self.inside.words), self.margin(self.outside.words)
        share = 0.5 if halve or one <= other else (one - wanted) / (one - other)
        share = float(np.clip(share, _MIN_SHARE, 1.0 - _MIN_SHARE))
        return self.inside.t + share * (self.outside.t - self.inside.t)

    def narrowed(self, point: _WordPoint) -> "_WordChange":
        """Return the change between an input and the end whose words differ from its own."""
        if point.same:
            return _WordChange(point, self.outside)
        return _WordChange(self.inside, point)


@dataclass
class TranscriptProbe:
    """Asks both models for one search; `best` is the outcome that goes with every query.

    `deployed`: the deployed model's last answer; `asked`: the inputs that it was asked about.
    """

    seed: Seed
    best: Outcome | None = None
    deployed: Transcript | None = None
    asked: list[Sample] = field(default_factory=list)

    def __post_init__(self) -> None:
        original = self.seed.outputs.original
        self._words = words(cast("Transcript", original))

    def start(self, path: Path) -> _WordPoint:
        """Return the seed as the first input of a path."""
        return _WordPoint(path, 0.0, self.seed.sample, self._words, same=True)

    def query_original(self, path: Path, t: float) -> Generator[Ask, Answer, _WordPoint]:
        """Ask the original about an input of a path, and both models where it is not finite."""
        sample = path.at(t)
        answer = yield Ask((sample,), of="original", best=self.best)
        original = cast("Transcript", answer.outputs[0].original)
        if not is_finite(original):
            yield Ask((sample,), best=self.best)  # a finding of its own kind: the search ends
        found = words(original)
        return _WordPoint(path, t, sample, found, _texts(found) == _texts(self._words))

    def query(self, points: Sequence[_WordPoint]) -> Generator[Ask, Answer, bool]:
        """Ask both models about inputs, in one request; return whether one triggers."""
        self.asked += [one.sample for one in points]
        answer = yield Ask(tuple(one.sample for one in points), best=self.best)
        found = False
        for one, outputs in zip(points, answer.outputs, strict=True):
            self.deployed = cast("Transcript | None", outputs.deployed)
            if outputs.decision is Decision.DEVIATION:
                earlier = () if self.best is None else (self.best,)
                self.best = Outcome(one.sample, one.path.mutations(one.t), earlier=earlier)
                found = True
        return found

    def is_new(self, point: _WordPoint) -> bool:
        """Whether the device was never asked about this input, and it is not the seed."""
        known = [self.seed.sample, *self.asked]
        return all(not np.array_equal(point.sample, one) for one in known)


class _ChangeSearch:
    """Finds where the original's words change, and asks the device on both sides of it."""

    def __init__(
        self,
        probe: TranscriptProbe,
        bounds: Bounds,
        rng: np.random.Generator,
        floor: float,
        together: bool,
    ) -> None:
        self._probe = probe
        self._bounds = bounds
        self._rng = rng
        self._floor = floor
        self._together = together
        self._seen: list[_WordPoint] = []

    def find(self, path: Path) -> Generator[Ask, Answer, _WordChange | None]:
        """Return the narrowed change of the seed's words on a path; None without one in bounds."""
        inside, t = self._probe.start(path), _FIRST_STRENGTH
        self._seen = []
        while True:
            here = yield from self._query_original(path, t)
            if not here.same:
                change = _WordChange(inside, here)
                return (yield from self._narrowed(change, _CLOSE, _MAX_STEPS))
            if t >= path.max_t or not self._bounds.contain(here.sample):
                return None
            ahead = _GROWTH[1] * t
            if here.margin < inside.margin:
                slope = (inside.margin - here.margin) / (t - inside.t)
                ahead = t + _PAST_ZERO * here.margin / slope
            inside, t = here, min(float(np.clip(ahead, _GROWTH[0] * t, _GROWTH[1] * t)), 1.0)

    def query_at(self, change: _WordChange) -> Generator[Ask, Answer, bool]:
        """Ask the device on one side of a change, then where its answer points; True: a trigger."""
        if self._together:
            sides = [self._nearest(change, same) for same in (True, False)]
            both = [one for one in sides if one is not None]
            return bool(both) and (yield from self._probe.query(both))
        outside, inside = (change.margin(one.words) for one in (change.outside, change.inside))
        drift, same = 0.0, -outside >= inside
        for _ in range(_QUERIES_A_CHANGE):
            here = self._nearest(change, same)
            if here is None and drift == 0.0:
                here = self._nearest(change, not same)
            if here is None or abs(change.margin(here.words)) > abs(drift or 1.0):
                return False
            if (yield from self._probe.query([here])):
                return True
            deployed = self._probe.deployed
            if deployed is None:
                return False
            drift = change.margin(words(deployed)) - change.margin(here.words)
            if abs(drift) < _MIN_DRIFT:
                return False
            same = drift < 0
            change = yield from self._narrowed(
                change, _SHARE_OF_DRIFT * abs(drift), _MORE_STEPS, same
            )
        return False

    def _query_original(self, path: Path, t: float) -> Generator[Ask, Answer, _WordPoint]:
        found = yield from self._probe.query_original(path, t)
        self._seen.append(found)
        return found

    def _narrowed(
        self, change: _WordChange, close: float, steps: int, same: bool | None = None
    ) -> Generator[Ask, Answer, _WordChange]:
        """Return the change once an input on side `same` (None: either) is this close to it."""
        wanted = 0.0 if same is None else (0.5 if same else -0.5) * close
        for step in range(steps):
            sides = (True, False) if same is None else (same,)
            near = [self._nearest(change, side) for side in sides]
            if any(one is not None and abs(change.margin(one.words)) <= close for one in near):
                break
            t = change.guess(wanted, halve=step % 2 == 1)
            change = change.narrowed((yield from self._query_original(change.inside.path, t)))
        return change

    def _nearest(self, change: _WordChange, same: bool) -> _WordPoint | None:
        """Return the allowed input on one side of a change that is nearest to it."""
        fitting = [one for one in self._seen if one.same == same and self._may_be_asked(one)]
        return min(fitting, key=lambda one: abs(one.t - change.inside.t), default=None)

    def _may_be_asked(self, one: _WordPoint) -> bool:
        """Whether an input is new to the device, in bounds, and above the original's floor."""
        sure = one.margin >= _ABOVE_FLOOR * self._floor
        return sure and self._probe.is_new(one) and self._bounds.contain(one.sample)


def _smallest_margin(some: Sequence[Word]) -> float:
    return min((word.margin for word in some), default=1.0)


def _texts(some: Sequence[Word]) -> tuple[str, ...]:
    return tuple(word.text for word in some)

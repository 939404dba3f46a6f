"""Shrinks triggering inputs: nearer to the seed input, by moves that take parts of the change back.

The original alone is asked which parts of the change lead across its decision boundary: blocks of it
are left out (delta debugging: Zeller and Hildebrandt, TSE 2002), halved, or weighted by what they
contribute, small ones first, and what is left is brought back to the boundary on the line to the
seed. That ends at a local minimum: no such move leads to a nearer input beyond the boundary. There
the device is asked as by the boundary search; where it agrees on all that is tried, at earlier and
farther inputs of the way, and last about parts of the change taken back.

Like Hypothesis' shrinker (MacIver and Donaldson, ECOOP 2020) it never returns a farther input than
what was found, and what it returns deviates. Which classes the models decide for may become others.
Natural inputs shrink in their parameters, see `natural_shrink`. Where the original's answer has no
boundary of classes, as of text, of detectors and by a tolerance, only the device's
decisions count: on the line to the seed, then without blocks. What a detector's answers differ in
stays of one kind (lost, ghost, class or shift): one query shows which kind the trigger is of.
"""

import json
from collections.abc import Generator, Iterator, Mapping, Sequence
from functools import cached_property
from mmap import ACCESS_READ, mmap
from pathlib import Path
from typing import IO, NamedTuple, cast
from zipfile import BadZipFile, is_zipfile

import numpy as np
from pydantic import BaseModel, Field

from edgeflare._internal import exact
from edgeflare._internal.exact import Floats
from edgeflare._internal.files import check_regular, read_regular
from edgeflare._internal.fourier import filtered, transform_size
from edgeflare._internal.records import of_json
from edgeflare._internal.text import reason
from edgeflare.answers.metrics import class_scores
from edgeflare.errors import UsageError
from edgeflare.strategies.boundary.first_trigger import FirstTriggerSearch
from edgeflare.strategies.boundary.options import BoundaryOptions, Bounds
from edgeflare.strategies.boundary.paths import Bracket, LinePath
from edgeflare.strategies.boundary.points import (
    OriginalProbe,
    log_probabilities,
    space_of,
    to_sample,
)
from edgeflare.strategies.boundary.probing import DeviceProbe, SearchContext
from edgeflare.strategies.natural_shrink import NaturalChange, shrink_natural
from edgeflare.types import Answer, Ask, Decision, Outcome, Output, Sample, Search, Seed
from edgeflare.words.search import NO_TRIGGER

PARTNER = "partner:"
"""What the names of inputs begin with that natural ones are mixed with, in their order."""
_MOST_BLOCKS = 800
_SHORTEST_S = 0.02
"""The shortest part of a recording that is a block, in seconds."""
_MOST_BANDS = 64
_NEARER = 1 - 1e-3
"""An input is nearer only if its distance is below this share of what it was."""
_WORTHWHILE = 0.98
"""The same moves are tried again at once where the distance falls below this share."""
_DIGITS = 6
_PLACES = 8
_MOST_PASSES = 12
_BISECTIONS = 8
_STEPS = (0.3, 0.1)
_FARTHER = 4.0
_USUAL_RATE = 16_000
_REQUEST_BYTES = 1 << 20


_DAMAGED = (OSError, ValueError, EOFError, BadZipFile)


class _Mapped(mmap):
    """A file's content, read as needed; no file stays open for as long as the options live."""

    def seekable(self) -> bool:
        """Zip files ask it; `mmap` has it from Python 3.13 on."""
        return True


class ShrinkOptions(BaseModel, extra="forbid", frozen=True, ignored_types=(cached_property,)):
    """Moves triggering inputs nearer to their seed inputs, while they still deviate.

    `edgeflare shrink` makes a campaign that searches with it.
    """

    triggers: Path = Field(
        description="An .npz with the triggering input of each seed input, by that one's name."
    )
    changes: Path | None = Field(
        default=None,
        description="A JSON file with what made the natural ones, by the same names.",
    )
    device_budget: int = Field(
        default=20, ge=1, le=100_000, description="The largest number of device queries for each."
    )

    @cached_property
    def samples(self) -> "np.lib.npyio.NpzFile":
        """The file, open. Raises UsageError."""
        try:
            check_regular(self.triggers)
            with self.triggers.open("rb") as file:
                content = cast("IO[bytes]", _Mapped(file.fileno(), 0, access=ACCESS_READ))
            if not is_zipfile(content):
                raise ValueError("it is damaged, or another kind of file")
            content.seek(0)
            triggers: np.lib.npyio.NpzFile = np.load(content, allow_pickle=False)
        except _DAMAGED as error:
            raise UsageError(
                f"can't read the triggering inputs in {self.triggers}: {reason(error)}"
            ) from error
        return triggers

    @cached_property
    def natural(self) -> Mapping[str, NaturalChange]:
        """What made the natural ones, by name. Raises UsageError."""
        if self.changes is None:
            return {}
        try:
            found = json.loads(read_regular(self.changes))
            return {name: of_json(NaturalChange, one) for name, one in found.items()}
        except (*_DAMAGED, AttributeError, RecursionError) as error:
            raise UsageError(
                f"can't read what made the triggering inputs in {self.changes}: {reason(error)}"
            ) from error

    def __call__(self, seed: Seed, rng: np.random.Generator) -> Search:
        """Shrink the triggering input of a seed input."""
        if seed.id not in self.samples:
            return Outcome(None, reason=NO_TRIGGER)
        trigger, change = self.samples[seed.id], self.natural.get(seed.id)
        if change is not None:
            partners = [self.samples[name] for name in self.samples if name.startswith(PARTNER)]
            search = shrink_natural(seed, trigger, change, partners, self.device_budget)
            return (yield from search)
        return (yield from _shrink(self, seed, trigger, rng))


def _shrink(
    options: ShrinkOptions, seed: Seed, trigger: Sample, rng: np.random.Generator
) -> Search:
    descent = _Descent(seed, trigger)
    if trigger.shape == seed.sample.shape and not np.array_equal(trigger, seed.sample):
        if seed.kind.is_decided_by_label(seed):
            way = yield from descent.run()
            yield from _ask_the_device(descent, way, options.device_budget, rng)
        else:
            yield from descent.take_back(options.device_budget)
    return descent.best or Outcome(trigger)


def _ask_the_device(
    descent: "_Descent", way: Sequence[Sample], budget: int, rng: np.random.Generator
) -> Generator[Ask, Answer, None]:
    """Ask the device at the end of a way, as the boundary search does, else farther back.

    Where it agrees there, and where the original decides on the whole line to the triggering input
    as on the seed, the device alone is asked, with the queries that are left.
    """
    original = OriginalProbe(descent.seed)
    device = DeviceProbe(original, budget)
    bounds = Bounds(BoundaryOptions(max_l2=descent.farthest), descent.seed.sample)
    context = SearchContext(original, device, bounds, rng, descent.seed.margin_floor)
    first = FirstTriggerSearch(context, coarse=False)
    place, step = len(way) - 1, 1
    while place >= 0 and original.best is None and device.remaining > 0:
        path = LinePath(original.values, original.space.values(way[place]))
        (point,) = yield from original.ends([path], [way[place]])
        yield from first.search(Bracket(original.seed_point(path), point))
        place, step = place - step, 2 * step
    descent.best = original.best
    if descent.best is None:
        yield from descent.take_back(device.remaining)


class _Block(NamedTuple):
    """A part of a change: slices of its axes or, of a band, of its frequencies."""

    place: tuple[slice, ...]
    is_band: bool = False

    def kept(self, change: Floats, share: float) -> Floats:
        """Return a change with this share of the part."""
        if self.is_band:
            gains = np.ones((1, transform_size(len(change)) // 2 + 1))
            gains[0, self.place[0]] = share
            return np.asarray(filtered(change, gains)[0])
        change = change.copy()
        change[self.place] *= share
        return change


class _Descent:
    """The way of a change to a local minimum of the distance at which the decision changes.

    That is the original's decision. `best`: a deviating input nearer than the triggering one, as
    soon as there is one.
    """

    def __init__(self, seed: Seed, trigger: Sample) -> None:
        self.seed = seed
        self.best: Outcome | None = None
        self._finding = ""
        self._space = space_of(seed.sample)
        self._values = self._space.values(seed.sample)
        self._trigger = trigger
        self.farthest = self._distance(trigger) * _NEARER
        assert seed.outputs.original is not None  # noqa: S101 - seeds are answered before a search
        self._original = seed.outputs.original
        self._levels = list(
            _levels_of_image(trigger.shape[0], trigger.shape[1])
            if not self._space.has_sign
            else _levels_of_audio(len(trigger), seed.rate or _USUAL_RATE)
        )

    def run(self) -> Generator[Ask, Answer, list[Sample]]:
        """Return inputs just beyond the boundary, each nearer to the seed than the one before."""
        change = self._change(self._trigger)
        last = yield from self._crossing(change)
        if last is None:  # the original decides as on the seed; beyond it may not
            last = yield from self._crossing(_FARTHER * change)
        way = [] if last is None else [last]
        for _ in range(_MOST_PASSES if way else 0):
            before = self._distance(way[-1])
            for blocks in reversed(self._levels):  # small ones first: they follow the slope
                for share in (0.5, 0.0):
                    way += yield from self._nearer(blocks, share, way[-1])
            if self._distance(way[-1]) >= before * _NEARER:
                break
        return way

    def bisect(self, budget: float) -> Generator[Ask, Answer, Floats]:
        """Shorten the change on the line to the seed, by at most so many device queries; return it."""
        change = self._change(self._trigger)
        low, high = 0.0, 1.0
        for _ in range(int(min(budget, _BISECTIONS))):
            middle = (low + high) / 2
            if (yield from self._deviates(middle * change)):
                high = middle
            else:
                low = middle
        return high * change

    def take_back(self, budget: float) -> Generator[Ask, Answer, None]:
        """Shorten the change by the device's decisions alone: on the line, then without blocks."""
        if self.seed.kind.counts_objects and budget > 1:
            budget -= 1
            yield from self._deviates(self._change(self._trigger))
            self.best = None  # that was the triggering input itself
        change = yield from self.bisect(budget)
        left = budget - min(budget, _BISECTIONS)
        for block in (block for blocks in self._levels for block in blocks):
            if not left:
                break
            less = block.kept(change, 0.0)
            if 0 < exact.norm(less) < _NEARER * exact.norm(change):
                left -= 1
                if (yield from self._deviates(less)):
                    change = less

    def _deviates(self, change: Floats) -> Generator[Ask, Answer, bool]:
        """Whether both models deviate with this change; it makes the best input then."""
        sample = to_sample(self._values + change)
        answer = yield Ask((sample,), best=self.best)
        (outputs,) = answer.outputs
        deviates = outputs.decision is Decision.DEVIATION
        if deviates:
            finding = self.seed.kind.finding(outputs.original, outputs.deployed)
            self._finding = self._finding or finding
            deviates = finding == self._finding
        if deviates:
            self.best = Outcome(sample)
        return deviates

    def _nearer(
        self, blocks: Sequence[_Block], share: float, start: Sample
    ) -> Generator[Ask, Answer, list[Sample]]:
        """Take blocks back to this share as long as that leads nearer; return the way.

        Of those that lead nearer alone, all are tried together, then half of them and so on; and
        each block in proportion to what it contributes (see `_in_proportion`), at once or by steps.
        """
        way: list[Sample] = []
        while True:
            now = way[-1] if way else start
            change = self._change(now)
            tried = [block for block in blocks if np.any(block.kept(change, 0.0) != change)]
            less = [block.kept(change, share) for block in tried]
            odds = yield from self._odds(less, now)
            passing = [n for n in np.argsort(odds, kind="stable").tolist() if odds[n] < 0]
            weighted = yield from self._in_proportion(change, less)
            aim = self._scaled(weighted, now)
            together = [weighted, *(step * aim + (1 - step) * change for step in _STEPS)]
            for half in range(len(passing).bit_length()):
                some = change
                for number in passing[: -(-len(passing) // (1 << half))]:
                    some = tried[number].kept(some, share)
                together.append(some)
            odds = yield from self._odds(together, now)
            best = together[int(np.argmin(odds))]
            found = None
            if min(odds) < 0:
                found = yield from self._crossing(self._scaled(best, now))
            if found is None or self._distance(found) >= self._distance(now) * _NEARER:
                return way
            way.append(found)
            if self._distance(found) > self._distance(now) * _WORTHWHILE:
                return way

    def _in_proportion(
        self, change: Floats, less: Sequence[Floats]
    ) -> Generator[Ask, Answer, Floats]:
        """Return the change with each block weighted by what it contributes for its length.

        For log-odds that are linear in the change, that is the nearest input beyond the boundary of
        all that have other weights; a block that leads back is turned round. `less` has the change
        with less of each block.
        """
        samples = [to_sample(self._values + one) for one in (change, *less)]
        now, *odds = yield from self._log_odds(samples)
        weighted = np.zeros(change.shape)
        for one, odd in zip(less, odds, strict=True):
            part = change - one
            size = exact.norm(part)
            if size:
                weighted += part * ((odd - now) / (size * size))
        return weighted

    def _odds(
        self, changes: Sequence[Floats], now: Sample
    ) -> Generator[Ask, Answer, Sequence[float]]:
        """Return the log-odds of the seed's label a little nearer than now, in these directions."""
        samples = [to_sample(self._values + self._scaled(change, now)) for change in changes]
        odds = yield from self._log_odds(samples)
        nearer = self._distance(now) * _NEARER
        return [
            odd if 0 < self._distance(sample) < nearer else np.inf
            for sample, odd in zip(samples, odds, strict=True)
        ]

    def _scaled(self, change: Floats, now: Sample) -> Floats:
        """Return a change with a length a little below that of the present one."""
        length = exact.norm(change) / self._space.unit
        wanted = self._distance(now) * (2 * _NEARER - 1)
        return change * (wanted / length) if length else change

    def _crossing(self, change: Floats) -> Generator[Ask, Answer, Sample | None]:
        """Return the first input beyond the boundary on the line to the end of a change."""
        places = [(number + 1) / _PLACES for number in range(_PLACES)]
        samples = [to_sample(self._values + place * change) for place in places]
        odds = yield from self._log_odds(samples)
        number = next((n for n, odd in enumerate(odds) if odd < 0), None)
        if number is None:
            return None
        found, low, high = samples[number], number / _PLACES, (number + 1) / _PLACES
        for _ in range(_DIGITS):
            middle = (low + high) / 2
            sample = to_sample(self._values + middle * change)
            (odd,) = yield from self._log_odds([sample])
            if odd < 0:
                found, high = sample, middle
            else:
                low = middle
        return found

    def _log_odds(self, samples: Sequence[Sample]) -> Generator[Ask, Answer, list[float]]:
        """Return the original's log-odds of the seed's label over the best other class."""
        size = max(1, _REQUEST_BYTES // self.seed.sample.nbytes)
        found: list[float] = []
        for begin in range(0, len(samples), size):
            some = tuple(samples[begin : begin + size])
            answer = yield Ask(some, of="original", best=self.best)
            found += [self._odds_of(output.original) for output in answer.outputs]
        return found

    @cached_property
    def _label(self) -> int:
        return int(np.argmax(class_scores(self._original)))

    def _odds_of(self, answer: Output | None) -> float:
        assert answer is not None  # noqa: S101 - the original was asked
        log_probs = log_probabilities(class_scores(answer))
        return float(log_probs[self._label] - np.delete(log_probs, self._label).max())

    def _change(self, sample: Sample) -> Floats:
        return np.asarray(self._space.values(sample) - self._values)

    def _distance(self, sample: Sample) -> float:
        if sample.shape != self.seed.sample.shape:
            return np.inf
        return exact.norm(self._change(sample)) / self._space.unit


def _levels_of_image(height: int, width: int) -> Iterator[Sequence[_Block]]:
    side = 1 << max(0, (max(height, width) - 1).bit_length() - 1)
    while side >= 1 and -(-height // side) * -(-width // side) <= _MOST_BLOCKS:
        yield [
            _Block((slice(top, top + side), slice(left, left + side)))
            for top in range(0, height, side)
            for left in range(0, width, side)
        ]
        side //= 2


def _levels_of_audio(length: int, rate: int) -> Iterator[Sequence[_Block]]:
    count = 2
    while count <= _MOST_BANDS or length / count >= _SHORTEST_S * rate:
        if count <= _MOST_BANDS:
            yield [
                _Block((part,), is_band=True)
                for part in _parts(transform_size(length) // 2 + 1, count)
            ]
        if length / count >= _SHORTEST_S * rate:
            yield [_Block((part,)) for part in _parts(length, count)]
        count *= 2


def _parts(length: int, count: int) -> Iterator[slice]:
    for number in range(count):
        yield slice(length * number // count, length * (number + 1) // count)

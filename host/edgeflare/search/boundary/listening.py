"""What recognisers hear on the way to a worse recording, and where it changes."""

from collections.abc import Generator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from edgeflare.answers import is_finite
from edgeflare.search.boundary.points import Path
from edgeflare.transcripts import Word, aligned, words
from edgeflare.types import Answer, Ask, Decision, Outcome, Sample, Seed, Transcript

_LEAST_SHARE = 0.1


class Place(NamedTuple):
    """A recording on a path, `t` its strength, and the words that the original hears of it.

    `same`: whether they are the seed's. `margin`: the smallest of a word, 1 without words.
    """

    path: Path
    t: float
    sample: Sample
    words: tuple[Word, ...]
    same: bool

    @property
    def margin(self) -> float:
        """The smallest margin of a word; 1 where there are none."""
        return _smallest(self.words)


class Change(NamedTuple):
    """Two places of a path: on the first the original hears the seed's words, on the second others."""

    inside: Place
    outside: Place

    def lead(self, place: Place) -> float:
        """Return how sure the original is, at a place, of the words that it loses; below 0, of what it hears instead."""
        return _lead(place.words, self)

    def guess(self, aim: float, *, halve: bool) -> float:
        """Return where the lead is likely to be `aim`; halfway if wanted."""
        one, other = self.lead(self.inside), self.lead(self.outside)
        share = 0.5 if halve or one <= other else (one - aim) / (one - other)
        share = float(np.clip(share, _LEAST_SHARE, 1.0 - _LEAST_SHARE))
        return self.inside.t + share * (self.outside.t - self.inside.t)

    def with_place(self, place: Place) -> "Change":
        """Return the change between a place between both and the one of them that hears otherwise."""
        return Change(place, self.outside) if place.same else Change(self.inside, place)

    def drift(self, place: Place, deployed: Transcript) -> float:
        """Return by how much the deployed model leans more to the words that the original loses, at a place of both."""
        return _lead(words(deployed), self) - self.lead(place)


@dataclass
class Listening:
    """A seed, the words that the original hears of it, and how both models are asked; `best` goes with every question.

    `told`: the deployed model's last answer; `asked`: the recordings it was asked about.
    """

    seed: Seed
    best: Outcome | None = None
    told: Transcript | None = None
    asked: list[Sample] = field(default_factory=list)

    def __post_init__(self) -> None:
        original = self.seed.outputs.original
        assert isinstance(original, Transcript)  # noqa: S101 - the search of recognisers
        self._words = words(original)

    def start(self, path: Path) -> Place:
        """Return the seed as a place of a path."""
        return Place(path, 0.0, self.seed.sample, self._words, same=True)

    def at(self, path: Path, t: float) -> Generator[Ask, Answer, Place]:
        """Ask the original about a place of a path; a non-finite answer is put to both models."""
        sample = path.at(t)
        answer = yield Ask((sample,), of="original", best=self.best)
        original = answer.outputs[0].original
        assert isinstance(original, Transcript)  # noqa: S101 - a recogniser was asked
        if not is_finite(original):
            yield Ask((sample,), best=self.best)  # a finding of its own kind: the search ends
        said = words(original)
        return Place(path, t, sample, said, _texts(said) == _texts(self._words))

    def ask(self, places: Sequence[Place]) -> Generator[Ask, Answer, bool]:
        """Ask both models about places, in one request; return whether one triggers."""
        self.asked += [place.sample for place in places]
        answer = yield Ask(tuple(place.sample for place in places), best=self.best)
        found = False
        for place, outputs in zip(places, answer.outputs, strict=True):
            self.told = outputs.deployed if isinstance(outputs.deployed, Transcript) else None
            if outputs.decision is Decision.DEVIATION:
                earlier = () if self.best is None else (self.best,)
                self.best = Outcome(place.sample, place.path.steps(place.t), earlier=earlier)
                found = True
        return found

    def is_new(self, place: Place) -> bool:
        """Whether the device was never asked about this recording, which is not the seed either."""
        return all(not np.array_equal(place.sample, one) for one in [self.seed.sample, *self.asked])


def _lead(said: tuple[Word, ...], change: Change) -> float:
    """Return the margin of the words that a change takes away; below 0, that of what is said in their place."""
    before = change.inside.words
    if _texts(said) != _texts(before):
        pairs = aligned(before, said)
        return -_smallest(
            [
                other
                for one, other in pairs
                if other is not None and (one is None or one.text != other.text)
            ]
        )
    whole = [pair for pair in aligned(before, change.outside.words) if pair[0] is not None]
    lost = [
        word
        for word, (one, other) in zip(said, whole, strict=True)
        if one is not None and (other is None or one.text != other.text)
    ]
    return _smallest(lost or said)


def _smallest(some: Sequence[Word]) -> float:
    return min((word.margin for word in some), default=1.0)


def _texts(some: Sequence[Word]) -> tuple[str, ...]:
    return tuple(word.text for word in some)

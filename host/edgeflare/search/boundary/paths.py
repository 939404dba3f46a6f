"""Ways from the seed: a straight line to another image, natural corruptions that grow stronger, pixels one by one."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from edgeflare.search.boundary.basis import noise
from edgeflare.search.boundary.points import Floats, Path, levels
from edgeflare.search.boundary.space import space_of
from edgeflare.types import Sample
from edgeflare_mutators import Corruption, Mutation, Params

_BEYOND = 4.0


@dataclass
class Straight:
    """The line from the seed's `pixels` (at 0) through `end` (at 1) and on; float64 in levels."""

    pixels: Floats
    end: Floats
    farthest: float = _BEYOND
    pure: bool = False

    def at(self, t: float) -> Sample:
        """Return the input at `t`."""
        return levels(self.pixels + t * (self.end - self.pixels))

    def steps(self, t: float) -> tuple[dict[str, Any], ...]:
        """Return none: a line is no mutation."""
        del t
        return ()

    def varied(self, rng: np.random.Generator, scale: float) -> Path:
        """Return the line through the end moved by smooth noise."""
        space = space_of(self.pixels)
        end = self.end + noise(rng, self.pixels) * scale * space.unit
        return Straight(self.pixels, space.within(end, 1.0), self.farthest)


@dataclass
class Graded:
    """Natural corruptions, one after the other, all at strength `t` of their own: 0 is the seed, 1 as drawn."""

    seed: Sample
    drawn: tuple[tuple[Corruption, Params, float], ...]
    farthest: float = 1.0
    pure: bool = True

    def at(self, t: float) -> Sample:
        """Return the seed after all corruptions at strength `t`."""
        sample = self.seed
        if t > 0:
            for operator, params, strength in self.drawn:
                sample = operator.apply(sample, operator.graded(params, t * strength))
        return sample

    def steps(self, t: float) -> tuple[dict[str, Any], ...]:
        """Return the corruptions with their parameters."""
        if t <= 0:
            return ()
        return tuple(
            Mutation(operator.name, operator.graded(params, t * strength)).to_json()
            for operator, params, strength in self.drawn
        )

    def varied(self, rng: np.random.Generator, scale: float) -> Path:
        """Return the same corruptions in another proportion; `scale` isn't looked at."""
        del scale
        drawn = tuple(
            (
                operator,
                params,
                float(np.clip(strength * np.exp(0.3 * rng.standard_normal()), 0.02, 1.0)),
            )
            for operator, params, strength in self.drawn
        )
        return Graded(self.seed, drawn)


class Mixed:
    """From one input (at 0) to another (at 1) by taking over the values that differ, in a random order."""

    farthest = 1.0
    pure = False

    def __init__(self, one: Sample, other: Sample, rng: np.random.Generator) -> None:
        self._one = one
        self._other = other.ravel()
        self._order = rng.permutation(np.flatnonzero(one.ravel() != self._other))

    def at(self, t: float) -> Sample:
        """Return the input with that share of the values taken over."""
        taken = self._order[: round(t * len(self._order))]
        mixed: Sample = self._one.copy()
        mixed.ravel()[taken] = self._other[taken]
        return mixed

    def steps(self, t: float) -> tuple[dict[str, Any], ...]:
        """Return none."""
        del t
        return ()

    def varied(self, rng: np.random.Generator, scale: float) -> Path:
        """Return itself: it leads nowhere else."""
        del rng, scale
        return self


def draw_graded(
    seed: Sample,
    pool: Sequence[Corruption],
    most: int,
    rng: np.random.Generator,
    spec: Any,
) -> Graded:
    """Return a way of one to `most` different corruptions, drawn uniformly, strengths from 0.3 to 1."""
    count = int(rng.integers(1, most + 1))
    chosen = rng.choice(len(pool), size=min(count, len(pool)), replace=False)
    return Graded(
        seed,
        tuple(
            (pool[place], pool[place].draw(rng, spec), float(rng.uniform(0.3, 1.0)))
            for place in sorted(chosen)
        ),
    )

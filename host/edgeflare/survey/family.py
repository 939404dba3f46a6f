"""A family of inputs far from the seeds: draws parameters at a severity, makes the input again."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np

from edgeflare.types import Sample
from edgeflare.words.inputs import family_words
from edgeflare_mutators import Corruption, MutationError, Params, SampleSpec

SEVERITIES = (1, 2, 3, 4, 5)
"""How far an input lies from its seed: 1 is mild, 5 is as far as the family goes."""

PARTNERS = 32
"""Number of inputs that a seed may be mixed with: the first of the source, whatever is searched."""

PARAMS_ERRORS = (KeyError, TypeError, ValueError, MutationError)
"""What `Family.apply` and `Family.words` may raise for parameters that another family drew, such as
an earlier version of a user's corruption."""

Group: TypeAlias = Literal[
    "light",
    "weather",
    "noise",
    "blur",
    "storage",
    "geometry",
    "occlusion",
    "mixing",
    "extremes",
    "level",
    "filter",
    "time",
    "overlap",
    "plugin",
]
"""What families have in common; "plugin" are the user's own."""


class Drawn(NamedTuple):
    """One input far from its seed: its family, severity (1 to 5) and parameters, as JSON."""

    family: str
    severity: int
    params: Params


class Family(ABC):
    """Inputs that are made of a seed in one way, at five severities.

    `draw` and `apply` are pure: the same generator gives the same parameters, the same parameters
    the same bits, on every CPU. So nothing but the parameters need be stored. (Of a user's
    corruption this holds as far as that promises it.)
    """

    name: str
    group: Group
    neutral: tuple[tuple[str, float], ...] = ()
    """The parameters that say how far an input is from its seed, each with the value that changes
    least."""

    @property
    def about(self) -> str:
        """What the family does, in one sentence."""
        text = " ".join((self.__doc__ or "").partition("\n\n")[0].split())
        return text.partition(". ")[0].rstrip(".") + "."

    def draw(self, rng: np.random.Generator, seed: Sample, severity: int) -> Params:
        """Return parameters of an input of this severity, one of `SEVERITIES`.

        Only the shape of `seed` matters, and that to corruptions alone.
        """
        del seed
        return self._draw(rng, severity)

    @abstractmethod
    def apply(
        self, seed: Sample, params: Mapping[str, Any], partners: Sequence[Sample] = ()
    ) -> Sample:
        """Return the input: a new array of the seed's dtype, of images of the seed's shape, too.

        `partners` are what parameters name by index: the first `PARTNERS` inputs of the source.
        """

    def words(self, params: Mapping[str, Any]) -> str:
        """Return the parameters in words for a report, such as "offset -31, gain 0.42"."""
        return family_words(self.name, params)

    def weaker(self, params: Mapping[str, Any], name: str, share: float) -> Params:
        """Return the parameters with one, of `neutral`, at this share (0 to 1) of its distance."""
        start, value = dict(self.neutral)[name], params[name]
        nearer = start + share * (value - start)
        return {**params, name: round(nearer) if isinstance(value, int) else nearer}

    def _draw(self, rng: np.random.Generator, severity: int) -> Params:
        """Return what `draw` returns, of a family that needs no shape."""
        raise NotImplementedError


class CorruptionFamily(Family):
    """A natural corruption whose strength is the severity's.

    Severity s has strengths from (s - 0.8) / 5 to s / 5, uniformly, of `Corruption.graded`. `rate`
    is the sample rate of audio in Hz. Raises SampleError in `draw` where the corruption needs it
    and it is None. `pixels` are added to a length that is a share of the image's shorter side: a
    blur of 1 % of the side is none for an image of 28 pixels.
    """

    def __init__(
        self,
        name: str,
        group: Group,
        corruption: Corruption,
        rate: int | None = None,
        *,
        pixels: float = 0.0,
    ) -> None:
        self.name = name
        self.group = group
        self.corruption = corruption
        limits = {one.name: one for one in corruption.limits}
        self.neutral = tuple(
            (name, min(max(corruption.neutral, limits[name].low), limits[name].high))
            for name in corruption.moving
        )
        self._rate = rate
        self._pixels = pixels

    @property
    def about(self) -> str:
        """What the corruption does, in one sentence."""
        text = " ".join((self.corruption.__doc__ or "").partition("\n\n")[0].split())
        return text.partition(". ")[0].rstrip(".") + "."

    def draw(self, rng: np.random.Generator, seed: Sample, severity: int) -> Params:
        """Return the corruption's parameters at a strength of this severity."""
        params = self.corruption.draw(rng, SampleSpec.of(seed, self._rate))
        strength = (severity - 0.8 * rng.random()) / SEVERITIES[-1]
        params = self.corruption.graded(params, strength)
        if self._pixels:
            length = self.corruption.limits[0]
            share = params[length.name] + self._pixels / min(seed.shape[:2])
            params[length.name] = min(share, length.high)
        return params

    def apply(
        self, seed: Sample, params: Mapping[str, Any], partners: Sequence[Sample] = ()
    ) -> Sample:
        """Return the corrupted sample. Raises MutationError for parameters that aren't its own."""
        del partners
        return self.corruption.apply(seed, params)

    def words(self, params: Mapping[str, Any]) -> str:
        """Return the corruption's own words."""
        return self.corruption.words(params)


def within(rng: np.random.Generator, severity: int, farthest: float, nearest: float = 0.0) -> float:
    """Return a uniform number from the severity's fifth of the way from `nearest` to `farthest`."""
    share = (severity - 1 + rng.random()) / SEVERITIES[-1]
    return float(nearest + (farthest - nearest) * share)


def either(rng: np.random.Generator, *values: Any) -> Any:
    """Return one of the values."""
    return values[int(rng.integers(len(values)))]


def partner_of(seed: Sample, params: Mapping[str, Any], partners: Sequence[Sample]) -> Sample:
    """Return the partner of this index, or the next that differs from the seed; else the seed.

    Fewer partners than `PARTNERS` are counted through again.
    """
    for step in range(len(partners)):
        partner: Sample = partners[(params["partner"] + step) % len(partners)]
        if not np.array_equal(partner, seed):
            return partner
    return seed

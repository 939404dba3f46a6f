"""Families of audio: level, filtering, noise, storage, time, and overlap of two recordings.

Samples are rounded to 16 bit, and all sums are of whole numbers, so that the bits don't depend on
the CPU. So the audio operators on pitch, tempo and room, whose bits do, are no families.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from edgeflare.survey.family import PARTNERS, Family, Group, either, partner_of, within
from edgeflare.types import Sample
from edgeflare_mutators import SEED, Params, portable_normal

_Samples: TypeAlias = NDArray[np.float64]
_FULL = 32_768
_QUIETEST = 33
"""Silence counts as this root mean square, 0.001 of full scale, so that it gets noise as well."""
_CUTOFF = 0.256
"""Where three means over k samples fall by 3 dB, times k: 0.443 / sqrt(3), of the sample rate."""


def audio_families(rate: int) -> tuple[Family, ...]:
    """Return the families of audio of this sample rate in Hz, in their groups' order."""
    return (
        Quiet(),
        Loud(),
        Offset(),
        LowPass(rate),
        HighPass(rate),
        BandPass(rate),
        Noise(),
        Rumble(rate),
        Clicks(),
        Bits(),
        Hold(),
        Shift(),
        Speed(),
        Silence(),
        Echo(rate),
        Overlap(),
        Splice(),
    )


class AudioFamily(Family):
    """A family of audio, of the sample rate `rate` in Hz, that states how its samples change."""

    def __init__(self, rate: int = 16_000) -> None:
        self._rate = rate

    def apply(
        self, seed: Sample, params: Mapping[str, Any], partners: Sequence[Sample] = ()
    ) -> Sample:
        """Return the changed recording: float32 of the seed's length, 16-bit values."""
        del partners
        return _sound(self._change(_whole(seed), params))

    def _change(self, whole: _Samples, params: Mapping[str, Any]) -> _Samples:
        """Return the changed samples, to be rounded and clipped.

        `whole` are whole numbers from -32768 to 32768; they may be written to.
        """
        raise NotImplementedError


class Quiet(AudioFamily):
    """Make the recording quieter, by up to 48 dB; what is below one step of 16 bit is lost."""

    name = "quiet"
    group: Group = "level"
    neutral = (("factor", 1.0),)

    def _draw(self, rng: np.random.Generator, severity: int) -> Params:
        """Return the `factor`, halved up to eight times (linear between two halvings)."""
        part, halvings = math.modf(within(rng, severity, 8.0))
        return {"factor": (1 - part / 2) / 2 ** int(halvings)}

    def _change(self, whole: _Samples, params: Mapping[str, Any]) -> _Samples:
        return whole * float(params["factor"])


class Loud(Quiet):
    """Make the recording up to 26 times louder; what is beyond full scale is clipped."""

    name = "loud"

    def _draw(self, rng: np.random.Generator, severity: int) -> Params:
        """Return the `factor`."""
        root = within(rng, severity, 5.0)
        return {"factor": 1 + root * root}


class Offset(AudioFamily):
    """Add a constant of up to 0.4 of full scale, as a wrong zero of the converter does."""

    name = "offset"
    group: Group = "level"
    neutral = (("offset", 0.0),)

    def _draw(self, rng: np.random.Generator, severity: int) -> Params:
        """Return the `offset`, a share of full scale, up or down."""
        return {"offset": either(rng, -1, 1) * within(rng, severity, 0.4)}

    def _change(self, whole: _Samples, params: Mapping[str, Any]) -> _Samples:
        return whole + float(params["offset"]) * _FULL


class LowPass(AudioFamily):
    """Keep only what is below a frequency: at 16 kHz 1,300 Hz down to 270 Hz, falling slowly."""

    name = "low-pass"
    group: Group = "filter"

    def _draw(self, rng: np.random.Generator, severity: int) -> Params:
        """Return the number of samples, `low`, that the mean is taken of, three times."""
        return {
            "low": _samples(self._rate, self._rate / (12 + within(rng, severity, 48.0))),
            "rate": self._rate,
        }

    def _change(self, whole: _Samples, params: Mapping[str, Any]) -> _Samples:
        return _smoothed(whole, params["low"])

    def words(self, params: Mapping[str, Any]) -> str:
        """Return "below 800 Hz"."""
        return f"below {_hertz(params, 'low')} Hz"


class HighPass(AudioFamily):
    """Keep only what is above a frequency: at 16 kHz 60 Hz up to 1,300 Hz, falling slowly."""

    name = "high-pass"
    group: Group = "filter"

    def _draw(self, rng: np.random.Generator, severity: int) -> Params:
        """Return the number of samples, `high`, whose mean, taken three times, is subtracted."""
        return {
            "high": _samples(self._rate, within(rng, severity, self._rate / 12, self._rate / 267)),
            "rate": self._rate,
        }

    def _change(self, whole: _Samples, params: Mapping[str, Any]) -> _Samples:
        return whole - _smoothed(whole, params["high"])

    def words(self, params: Mapping[str, Any]) -> str:
        """Return "above 800 Hz"."""
        return f"above {_hertz(params, 'high')} Hz"


class BandPass(AudioFamily):
    """Keep only a band of frequencies, as a small speaker does: at severity 5 about an octave."""

    name = "band"
    group: Group = "filter"

    def _draw(self, rng: np.random.Generator, severity: int) -> Params:
        """Return the numbers of samples, `low` and `high`, of both filters."""
        below = within(rng, severity, self._rate / 24, self._rate / 12)
        above = within(rng, severity, self._rate / 53, self._rate / 267)
        return {
            "low": _samples(self._rate, below),
            "high": _samples(self._rate, above),
            "rate": self._rate,
        }

    def _change(self, whole: _Samples, params: Mapping[str, Any]) -> _Samples:
        return _smoothed(whole, params["low"]) - _smoothed(whole, params["high"])

    def words(self, params: Mapping[str, Any]) -> str:
        """Return "from 300 to 3400 Hz"."""
        return f"from {_hertz(params, 'high')} to {_hertz(params, 'low')} Hz"


class Noise(AudioFamily):
    """Add white noise, at severity 5 about as strong as the recording."""

    name = "noise"
    group: Group = "noise"
    neutral = (("level", 0.0),)

    def _draw(self, rng: np.random.Generator, severity: int) -> Params:
        """Return the noise's `level`, relative to the root mean square, and its seed."""
        return {
            "level": within(rng, severity, 1.0),
            "seed": int(SEED.draw(rng)),
            "rate": self._rate,
        }

    def _change(self, whole: _Samples, params: Mapping[str, Any]) -> _Samples:
        return whole + self._noise(whole.size, params) * (float(params["level"]) * _loudness(whole))

    def _noise(self, size: int, params: Mapping[str, Any]) -> _Samples:
        """Return noise of a root mean square of about 1."""
        return portable_normal(_generator(params), (size,))


class Rumble(Noise):
    """Add noise below 200 Hz, as of wind or an engine, at severity 5 three times the recording."""

    name = "rumble"

    def _draw(self, rng: np.random.Generator, severity: int) -> Params:
        """Return as the family `noise`; the level goes up to 3."""
        return {
            "level": within(rng, severity, 3.0),
            "seed": int(SEED.draw(rng)),
            "rate": self._rate,
        }

    def _noise(self, size: int, params: Mapping[str, Any]) -> _Samples:
        low = _smoothed(
            np.rint(super()._noise(size, params) * _FULL), _samples(params["rate"], 200.0)
        )
        return np.rint(low) / _loudness(np.rint(low))


class Clicks(AudioFamily):
    """Set up to 0.6 % of the samples, at random, to an end of the range."""

    name = "clicks"
    group: Group = "noise"
    neutral = (("share", 0.0),)

    def _draw(self, rng: np.random.Generator, severity: int) -> Params:
        """Return the `share` of the samples and the seed."""
        return {"share": within(rng, severity, 0.006), "seed": int(SEED.draw(rng))}

    def _change(self, whole: _Samples, params: Mapping[str, Any]) -> _Samples:
        rng = _generator(params)
        hit = rng.integers(0, 2**32, whole.size, dtype=np.uint32) < params["share"] * 2**32
        ends = np.where(rng.integers(0, 2, whole.size, dtype=np.uint8), _FULL, -_FULL)
        return np.where(hit, ends, whole)


class Bits(AudioFamily):
    """Round the samples to fewer levels: 13 bit at severity 1, 4 bit at severity 5."""

    name = "bits"
    group: Group = "storage"

    def _draw(self, rng: np.random.Generator, severity: int) -> Params:
        """Return the `step` between two levels, in steps of 16 bit."""
        return {"step": 2 ** round(within(rng, severity, 12.0, 2.0))}

    def _change(self, whole: _Samples, params: Mapping[str, Any]) -> _Samples:
        return np.rint(whole / float(params["step"])) * float(params["step"])


class Hold(AudioFamily):
    """Keep every second to every ninth sample and repeat it, as a wrong sample rate does."""

    name = "hold"
    group: Group = "storage"
    neutral = (("length", 1.0),)

    def _draw(self, rng: np.random.Generator, severity: int) -> Params:
        """Return how many samples are the same: `length`."""
        return {"length": 2 + round(within(rng, severity, 7.0))}

    def _change(self, whole: _Samples, params: Mapping[str, Any]) -> _Samples:
        length = int(params["length"])
        return whole[np.arange(whole.size) // length * length]


class Shift(AudioFamily):
    """Move the recording earlier or later, by up to half its length; the rest is silent."""

    name = "shift"
    group: Group = "time"
    neutral = (("share", 0.0),)

    def _draw(self, rng: np.random.Generator, severity: int) -> Params:
        """Return the `share` of the length, above 0 later."""
        return {"share": either(rng, -1, 1) * within(rng, severity, 0.5)}

    def _change(self, whole: _Samples, params: Mapping[str, Any]) -> _Samples:
        return _at(whole, np.arange(whole.size) - round(params["share"] * whole.size))


class Speed(AudioFamily):
    """Play the recording at 0.5 to 1.8 times its speed, its pitch with it; its length is kept."""

    name = "speed"
    group: Group = "time"
    neutral = (("speed", 1.0),)

    def _draw(self, rng: np.random.Generator, severity: int) -> Params:
        """Return the `speed`."""
        return {"speed": 1 + either(rng, -0.5, 0.8) * within(rng, severity, 1.0)}

    def _change(self, whole: _Samples, params: Mapping[str, Any]) -> _Samples:
        places = np.arange(whole.size) * float(params["speed"])
        first = np.floor(places)
        start = first.astype(np.int64)
        here, after = _at(whole, start), _at(whole, start + 1)
        played: _Samples = here + (after - here) * (places - first)
        return played


class Silence(AudioFamily):
    """Set a part of the recording, up to half of it, to zero."""

    name = "silence"
    group: Group = "time"
    neutral = (("share", 0.0),)

    def _draw(self, rng: np.random.Generator, severity: int) -> Params:
        """Return the part's `share` of the length, and its `place`, 0 (start) to 1 (end)."""
        return {"share": within(rng, severity, 0.5), "place": rng.random()}

    def _change(self, whole: _Samples, params: Mapping[str, Any]) -> _Samples:
        count = max(1, round(params["share"] * whole.size))
        start = round(params["place"] * (whole.size - count))
        whole[start : start + count] = 0
        return whole


class Echo(AudioFamily):
    """Add the recording again, up to 0.3 s later and up to 0.9 times as loud."""

    name = "echo"
    group: Group = "time"
    neutral = (("level", 0.0),)

    def _draw(self, rng: np.random.Generator, severity: int) -> Params:
        """Return the echo's `level` and by how many samples it is `later`."""
        seconds = 0.02 + 0.28 * rng.random()
        return {
            "level": within(rng, severity, 0.9),
            "later": round(seconds * self._rate),
            "rate": self._rate,
        }

    def _change(self, whole: _Samples, params: Mapping[str, Any]) -> _Samples:
        return whole + _at(whole, np.arange(whole.size) - params["later"]) * float(params["level"])


class OverlapFamily(Family):
    """A family of two recordings, the second cut or followed by silence to the first's length."""

    def apply(
        self, seed: Sample, params: Mapping[str, Any], partners: Sequence[Sample] = ()
    ) -> Sample:
        """Return both recordings as one: float32 of the seed's length, 16-bit values."""
        other = _whole(partner_of(seed, params, partners)[: seed.size])
        partner = np.pad(other, (0, seed.size - other.size))
        return _sound(self._join(_whole(seed), partner, params))

    def _join(
        self,
        whole: _Samples,
        partner: _Samples,
        params: Mapping[str, Any],
    ) -> _Samples:
        """Return the samples, to be rounded; `whole` may be written to."""
        raise NotImplementedError


class Overlap(OverlapFamily):
    """Let another recording sound at the same time; it has up to half of the sum."""

    name = "overlap"
    group: Group = "overlap"
    neutral = (("share", 0.0),)

    def _draw(self, rng: np.random.Generator, severity: int) -> Params:
        """Return the other's `share` and the index of the `partner`."""
        return {"share": within(rng, severity, 0.5), "partner": int(rng.integers(PARTNERS))}

    def _join(
        self,
        whole: _Samples,
        partner: _Samples,
        params: Mapping[str, Any],
    ) -> _Samples:
        return whole * (1 - float(params["share"])) + partner * float(params["share"])


class Splice(OverlapFamily):
    """Replace the start or the end of the recording, up to half, by that of another one."""

    name = "splice"
    group: Group = "overlap"
    neutral = (("share", 0.0),)

    def _draw(self, rng: np.random.Generator, severity: int) -> Params:
        """Return the `share` that is replaced, at which `end`, and the index of the `partner`."""
        return {
            "share": within(rng, severity, 0.5),
            "end": either(rng, "start", "end"),
            "partner": int(rng.integers(PARTNERS)),
        }

    def _join(
        self,
        whole: _Samples,
        partner: _Samples,
        params: Mapping[str, Any],
    ) -> _Samples:
        count = round(params["share"] * whole.size)
        part = slice(count) if params["end"] == "start" else slice(whole.size - count, None)
        whole[part] = partner[part]
        return whole


def _whole(sample: Sample) -> _Samples:
    return np.rint(sample.astype(np.float64) * _FULL)


def _sound(samples: _Samples) -> Sample:
    return (np.clip(np.rint(samples), -_FULL, _FULL - 1) / _FULL).astype(np.float32)


def _generator(params: Mapping[str, Any]) -> np.random.Generator:
    return np.random.Generator(np.random.PCG64(params["seed"]))


def _samples(rate: int, cutoff: float) -> int:
    """Return the odd number, from 3, of samples whose mean, three times, has this cutoff in Hz."""
    return max(3, 2 * round((_CUTOFF * rate / cutoff - 1) / 2) + 1)


def _hertz(params: Mapping[str, Any], name: str) -> str:
    return f"{_CUTOFF * params['rate'] / params[name]:.0f}"


def _smoothed(whole: _Samples, samples: int) -> _Samples:
    """Return the mean over this odd number of samples, three times, rounded each time.

    Beyond its ends the recording is silent.
    """
    reach = samples // 2
    for _ in range(3):
        sums = np.cumsum(np.pad(whole.astype(np.int64), (reach + 1, reach)))
        whole = np.rint((sums[samples:] - sums[:-samples]) / samples)
    return whole


def _at(whole: _Samples, places: NDArray[np.int64]) -> _Samples:
    """Return the samples at these places, 0 beyond the ends."""
    inside = (places >= 0) & (places < whole.size)
    return np.where(inside, whole[np.clip(places, 0, whole.size - 1)], 0.0)


def _loudness(whole: _Samples) -> float:
    """Return the root mean square, of an exact sum; silence counts as 0.001 of full scale."""
    total = int(np.square(whole.astype(np.int64)).sum())
    return max(math.sqrt(total / whole.size), _QUIETEST)

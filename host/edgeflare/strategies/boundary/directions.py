"""Directions in which a sample is changed: few of them, along which a model's answer changes much.

For recordings they are parts of the sound itself: the more of them, the fainter the change and the
more host queries. Figures: docs/research/audio.md. What was tried without gain:
docs/research/tried.md.
"""

import math
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import NamedTuple, Protocol, TypeAlias

import numpy as np

from edgeflare._internal import exact, fourier
from edgeflare._internal.exact import Floats

LARGE_SIDE = 64
"""Pixels of the longer side from which on images get directions from their own detail."""
_SMOOTH_SHARE = 0.3
_MAX_FREQUENCIES = 32
_TWO_SCALES_COUNT = 32
_MIN_DETAIL = 1.0
_COLOUR_DELAY = 4.0
_BLUR_SIGMAS = 4
_PROBE_LEVELS = 8.0
_BYTES_AT_ONCE = 2**18

_WARP = 2.5
"""Bands are even on a scale: linear below this share of the rate, then logarithmic (mel scale)."""
_MIN_SOUND = 8.0
_SUBSTITUTE_NOISE = 100.0
_PROBE_GAIN = 0.25
_NOISE_PARTS = 64
_LOG_MULTIPLIERS = (-60.0, 60.0)
_BISECTIONS = 60
_MIN_GAIN = 0.2
_MAX_GAIN = 5.0


Region: TypeAlias = tuple[slice, ...]
"""Part of a sample, by a slice for each axis."""
_EVERYWHERE: Region = (slice(None),)


class Probes(NamedTuple):
    """Some directions and a step along each, float64 [n, ...], in the part that they may change."""

    region: Region
    directions: Floats
    steps: Floats


class Directions(Protocol):
    """Directions of unit length, each computed on access: float64 of the sample's shape."""

    def __len__(self) -> int: ...

    def __getitem__(self, place: int) -> Floats: ...

    def probes(self) -> Iterator[Probes]:
        """Yield all directions in order, some at a time, with a step along each.

        A step, in levels, is small enough for a proportional response.
        """
        ...

    def combine(self, shares: Floats) -> Floats:
        """Return the sum of all directions, each times its share; `shares`: float64 [n]."""
        ...

    def step(self, slopes: Floats, decrease: float) -> Callable[[float], Floats]:
        """Return the smallest step that decreases a quantity by a multiple of `decrease`.

        `slopes`: float64 [n], its decrease per level along each direction. The result maps the
        multiple to the step, float64 of the sample's shape, in levels.
        """
        ...

    def recentred(self, values: Floats) -> "Directions":
        """Return the directions for another input, where they depend on it."""
        ...


def directions_for(values: Floats, count: int) -> Directions:
    """Return about `count` directions for an image or a recording, float64 of its shape.

    Small images: the lowest frequencies of the discrete cosine transform, brightness before colour.
    Large images, whose models respond to detail: what a blur removes, window by window, so that a
    step along one blurs or sharpens there. Memory: two images a search for large ones; small ones
    of one shape share theirs. Recordings: see `SoundParts`.
    """
    if values.ndim == 1:
        return SoundParts(values, count)
    if max(values.shape[:2]) < LARGE_SIDE:
        return LowFrequencies(values.shape, count)
    detail = DetailWindows(values, count)
    return detail if len(detail) else LowFrequencies(values.shape, count)


class _LinearDirections:
    """Directions that do not depend on the input, and steps in proportion to their slopes."""

    def __getitem__(self, place: int) -> Floats:
        raise NotImplementedError

    def combine(self, shares: Floats) -> Floats:
        """Return the sum of all directions, each times its share."""
        raise NotImplementedError

    def step(self, slopes: Floats, decrease: float) -> Callable[[float], Floats]:
        """Return the smallest step, which has the same direction at every length."""
        step = self.combine(-decrease / exact.dot(slopes, slopes) * slopes)
        return lambda multiple: np.asarray(multiple * step)


class SingleValues(_LinearDirections):
    """Every value of a sample by itself; for slopes that are known from gradients."""

    def __init__(self, shape: tuple[int, ...]) -> None:
        self._shape = shape

    def __len__(self) -> int:
        return math.prod(self._shape)

    def __getitem__(self, place: int) -> Floats:
        found = np.zeros(self._shape)
        found.flat[place] = 1.0
        return found

    def probes(self) -> Iterator[Probes]:
        """Yield steps of 8 levels."""
        for place in range(len(self)):
            one = self[place][None]
            yield Probes(_EVERYWHERE, one, _PROBE_LEVELS * one)

    def combine(self, shares: Floats) -> Floats:
        """Return the shares in the sample's shape."""
        return shares.reshape(self._shape)

    def recentred(self, values: Floats) -> "SingleValues":
        """Return the same directions."""
        del values
        return self


class LowFrequencies(_LinearDirections):
    """The `count` cosines of lowest frequency of a shape (height, width, channels)."""

    def __init__(self, shape: tuple[int, ...], count: int) -> None:
        self._all = _cosines(shape, count)

    def __len__(self) -> int:
        return len(self._all)

    def __getitem__(self, place: int) -> Floats:
        return np.asarray(self._all[place])

    def probes(self) -> Iterator[Probes]:
        """Yield steps with a largest value of 8 levels."""
        count = max(1, _BYTES_AT_ONCE // self._all[0].nbytes)
        for begin in range(0, len(self._all), count):
            part = self._all[begin : begin + count]
            yield Probes(_EVERYWHERE, part, part * _probe_factors(part))

    def combine(self, shares: Floats) -> Floats:
        """Return the sum of all directions, each times its share."""
        return np.asarray((shares[:, None, None, None] * self._all).sum(axis=0))

    def recentred(self, values: Floats) -> "LowFrequencies":
        """Return the same directions."""
        del values
        return self


class WindowCosines(_LinearDirections):
    """Low frequencies within a part of an image, with a smooth border: brightness before colour.

    `rows`, `columns`: the part. Each direction is a product of two profiles and a colour, so that
    memory does not grow with their number.
    """

    def __init__(self, shape: tuple[int, ...], rows: slice, columns: slice, count: int) -> None:
        self._shape, self._region = shape, (rows, columns)
        colours = _colours(shape[2])
        self._tall, self._wide = (
            _windowed_cosines(part.stop - part.start, math.isqrt(count)) for part in self._region
        )
        frequency = (
            np.square(np.arange(len(self._tall)))[:, None]
            + np.square(np.arange(len(self._wide)))[None]
        )
        later = _COLOUR_DELAY * (np.arange(len(colours)) > 0)
        order = np.argsort((frequency[..., None] + later).ravel(), kind="stable")[:count]
        sizes = (len(self._tall), len(self._wide), len(colours))
        places = np.stack(np.unravel_index(order, sizes), axis=1)
        self._colours = colours
        self._places = [(int(i), int(j), int(colour)) for i, j, colour in places]

    def __len__(self) -> int:
        return len(self._places)

    def __getitem__(self, place: int) -> Floats:
        found = np.zeros(self._shape)
        found[self._region] = self._window(place)
        return found

    def probes(self) -> Iterator[Probes]:
        """Yield steps with a largest value of 8 levels."""
        for place in range(len(self)):
            window = self._window(place)[None]
            yield Probes(self._region, window, window * _probe_factors(window))

    def combine(self, shares: Floats) -> Floats:
        """Return the sum of all directions, each times its share."""
        total = np.zeros(self._shape)
        for place, share in enumerate(shares):
            total[self._region] += share * self._window(place)
        return total

    def recentred(self, values: Floats) -> "WindowCosines":
        """Return the same directions."""
        del values
        return self

    def _window(self, place: int) -> Floats:
        i, j, colour = self._places[place]
        plane = self._tall[i][:, None] * self._wide[j][None]
        return np.asarray(plane[..., None] * self._colours[colour])


class DetailWindows(_LinearDirections):
    """What blurs of growing width remove from an image, in overlapping windows that have detail."""

    def __init__(self, pixels: Floats, count: int) -> None:
        scales = 1 if count < _TWO_SCALES_COUNT else 2
        side = max(2, round(np.sqrt(count / scales)))
        self._details = _details(pixels, (2.0,) if scales == 1 else (1.0, 3.0))
        self._rows, self._columns = (_overlaps(length, side) for length in pixels.shape[:2])
        self._places: list[tuple[int, int, int, float]] = []
        for scale, detail in enumerate(self._details):
            power = np.square(detail).sum(axis=2)
            lengths = np.sqrt(
                exact.matmul(exact.matmul(np.square(self._rows), power), np.square(self._columns).T)
            )
            for row, column in np.argwhere(lengths > _MIN_DETAIL):
                self._places.append((scale, int(row), int(column), float(lengths[row, column])))

    def __len__(self) -> int:
        return len(self._places)

    def __getitem__(self, place: int) -> Floats:
        region, window = self._window(place)
        found = np.zeros_like(self._details[0])
        found[region] = window
        return found

    def probes(self) -> Iterator[Probes]:
        """Yield steps with a largest value of 8 levels."""
        for place in range(len(self)):
            region, window = self._window(place)
            yield Probes(region, window[None], window[None] * _probe_factors(window[None]))

    def combine(self, shares: Floats) -> Floats:
        """Return the sum of all directions, each times its share."""
        total = np.zeros_like(self._details[0], dtype=np.float64)
        for place, share in enumerate(shares):
            region, window = self._window(place)
            total[region] += share * window
        return total

    def _window(self, place: int) -> tuple[Region, Floats]:
        """Return where a direction may be other than 0, and its values there."""
        scale, row, column, length = self._places[place]
        tall, wide = _extent(self._rows[row]), _extent(self._columns[column])
        window = self._rows[row][tall, None] * self._columns[column][None, wide]
        values = self._details[scale][tall, wide] * (window / length)[..., None]
        return (tall, wide), np.asarray(values)

    def recentred(self, values: Floats) -> "DetailWindows":
        """Return the same directions: those of the seed."""
        del values
        return self


class SoundParts:
    """Parts of a recording, float64 [samples] in levels: overlapping bands and windows of time.

    A step along one makes the recording louder or softer there, so that it changes where it has
    sound already. Parts of less than a few levels are left out; in a nearly silent recording,
    noise takes the place of the sound. Memory: as many recordings as there are bands.
    """

    def __init__(self, values: Floats, count: int) -> None:
        self._count = count
        bands = max(2, round(np.sqrt(count)))
        moments = max(1, min(round(count / bands), len(values)))
        self._moments = _overlaps(len(values), moments, clip=True)
        self._cut(values, bands)
        if not self._places:
            noise = exact.normal(np.random.default_rng(0), len(values)) * _SUBSTITUTE_NOISE
            self._cut(noise, bands)

    def __len__(self) -> int:
        return len(self._places)

    def __getitem__(self, place: int) -> Floats:
        band, moment = self._places[place]
        part = self._bands[band] * self._moments[moment]
        return np.asarray(part / self._lengths[band, moment])

    def _cut(self, sound: Floats, bands: int) -> None:
        self._bands = _bands(sound, bands)
        powers = np.square(self._bands)
        shares = [(powers * np.square(moment)).sum(axis=1) for moment in self._moments]
        self._lengths = np.sqrt(np.stack(shares, axis=1))
        self._places = [
            (int(band), int(moment)) for band, moment in np.argwhere(self._lengths > _MIN_SOUND)
        ]

    def probes(self) -> Iterator[Probes]:
        """Yield steps that make a part louder by a quarter."""
        for place, at in enumerate(self._places):
            part = self[place][None]
            yield Probes(_EVERYWHERE, part, part * (_PROBE_GAIN * self._lengths[at]))

    def combine(self, shares: Floats) -> Floats:
        """Return the sum of all directions, each times its share."""
        gains = np.zeros_like(self._lengths)
        for (band, moment), share in zip(self._places, shares, strict=True):
            gains[band, moment] = share / self._lengths[band, moment]
        return np.asarray((exact.matmul(gains, self._moments) * self._bands).sum(axis=0))

    def step(self, slopes: Floats, decrease: float) -> Callable[[float], Floats]:
        """Return the step of least L2 for each multiple of `decrease`.

        An audio front end mostly takes logarithms, so that answers are about linear in those of the
        parts' gains.
        """
        lengths = np.array([self._lengths[place] for place in self._places])
        worth = -slopes * lengths

        def step(multiple: float) -> Floats:
            gains = _gains(worth, np.square(lengths), multiple * decrease)
            return self.combine(lengths * (gains - 1.0))

        return step

    def recentred(self, values: Floats) -> "SoundParts":
        """Return the directions of another recording."""
        return SoundParts(values, self._count)


def noise_like(rng: np.random.Generator, values: Floats) -> Floats:
    """Return noise of unit length and this shape: smooth, or for recordings like the sound."""
    if values.ndim > 1:
        return smooth_noise(rng, values.shape)
    parts = SoundParts(values, _NOISE_PARTS)
    lengths = np.array([exact.norm(one.steps) for one in parts.probes()])
    drawn = parts.combine(exact.normal(rng, len(parts)) * lengths)
    return np.asarray(drawn / exact.norm(drawn))


def smooth_noise(rng: np.random.Generator, shape: tuple[int, ...]) -> Floats:
    """Return smooth noise of unit length: Gaussian, of the lowest three tenths of frequencies."""
    height, width, channels = shape
    rows = max(1, min(round(height * _SMOOTH_SHARE), _MAX_FREQUENCIES))
    columns = max(1, min(round(width * _SMOOTH_SHARE), _MAX_FREQUENCIES))
    drawn = exact.normal(rng, (rows, columns * channels))
    tall = exact.matmul(exact.cosines(height, rows).T, drawn).reshape(height, columns, channels)
    across = tall.transpose(1, 0, 2).reshape(columns, height * channels)
    wide = exact.matmul(exact.cosines(width, columns).T, across).reshape(width, height, channels)
    noise = wide.transpose(1, 0, 2)
    return np.asarray(noise / exact.norm(noise))


@lru_cache(maxsize=8)
def _cosines(shape: tuple[int, ...], count: int) -> Floats:
    height, width, channels = shape
    rows = np.arange(min(height, _MAX_FREQUENCIES))
    columns = np.arange(min(width, _MAX_FREQUENCIES))
    frequency = np.square(rows[:, None] / height) + np.square(columns[None] / width)
    colours = _colours(channels)
    later = 0.02 * (np.arange(len(colours)) > 0)
    order = np.argsort((frequency[..., None] + later).ravel(), kind="stable")[:count]
    i, j, c = np.unravel_index(order, (len(rows), len(columns), len(colours)))
    vertical, horizontal = (
        exact.cosines(height, len(rows))[i],
        exact.cosines(width, len(columns))[j],
    )
    found = vertical[:, :, None, None] * horizontal[:, None, :, None] * colours[c][:, None, None]
    lengths = np.sqrt(np.square(found).reshape(len(found), -1).sum(axis=1))
    return np.asarray(found / lengths[:, None, None, None])


def _windowed_cosines(length: int, count: int) -> Floats:
    """Return the lowest frequencies of a length, times a smooth window, each of unit length."""
    found = exact.cosines(length, min(count, length))
    window = 0.5 - 0.5 * exact.cos_of_turns(2 * np.arange(length) + 1, 2 * length)
    found = found * np.sqrt(window)
    return np.asarray(found / np.sqrt(np.square(found).sum(axis=1, keepdims=True)))


def _colours(channels: int) -> Floats:
    """Return brightness, red - blue, and green - both; of one channel brightness alone."""
    if channels == 1:
        return np.ones((1, 1))
    found = np.array([[1.0, 1.0, 1.0], [1.0, 0.0, -1.0], [1.0, -2.0, 1.0]])
    return np.asarray(found / np.sqrt(np.square(found).sum(axis=1, keepdims=True)))


def _probe_factors(directions: Floats) -> Floats:
    """Return what gives directions [n, height, width, channels] a largest value of 8 levels."""
    peaks = np.abs(directions).reshape(len(directions), -1).max(axis=1)
    return np.asarray(_PROBE_LEVELS / peaks)[:, None, None, None]


def _details(pixels: Floats, widths: tuple[float, ...]) -> list[Floats]:
    """Return what blurs of these widths (224ths of the shorter side) remove one by one."""
    before, found = pixels, []
    for width in widths:
        after = _blurred(before, width * min(pixels.shape[:2]) / 224.0)
        found.append(after - before)
        before = after
    return found


def _blurred(pixels: Floats, sigma: float) -> Floats:
    """Return an image blurred by a Gaussian of four sigma, mirrored at its edges."""
    radius = round(_BLUR_SIGMAS * sigma)
    weights = exact.exp(-0.5 * np.square(np.arange(radius + 1) / sigma))
    weights /= weights[0] + 2.0 * weights[1:].sum()
    for axis in (0, 1):
        length = pixels.shape[axis]
        padding = [(radius, radius) if one == axis else (0, 0) for one in range(pixels.ndim)]
        padded = np.moveaxis(np.pad(pixels, padding, mode="reflect"), axis, 0)
        total = weights[0] * padded[radius : radius + length]
        for shift in range(1, radius + 1):
            before = padded[radius - shift : radius - shift + length]
            after = padded[radius + shift : radius + shift + length]
            total += weights[shift] * (before + after)
        pixels = np.moveaxis(total, 0, axis)
    return pixels


def _extent(weights: Floats) -> slice:
    """Return where an axis has weights other than 0."""
    places = np.flatnonzero(weights)
    return slice(int(places[0]), int(places[-1]) + 1)


def _overlaps(length: int, count: int, *, clip: bool = False) -> Floats:
    """Return `count` overlapping triangular weights along an axis, float64 [count, length].

    Their sum is about 1; with `clip` it is 1 at both ends of the axis, too.
    """
    at = (np.arange(length) + 0.5) / length * count - 0.5
    if clip:
        at = np.clip(at, 0.0, count - 1.0)
    return np.asarray(np.maximum(0.0, 1.0 - np.abs(at[None] - np.arange(count)[:, None])))


def _bands(sound: Floats, count: int) -> Floats:
    """Return a recording's parts in bands, float64 [count, samples], whose sum is the recording."""
    place = np.linspace(0.0, 1.0, fourier.transform_size(len(sound)) // 2 + 1)
    warped = exact.log(1.0 + place * (exact.exp(_WARP) - 1.0)) / _WARP * (count - 1)
    weights = np.maximum(0.0, 1.0 - np.abs(warped[None] - np.arange(count)[:, None]))
    return fourier.filtered(sound, weights)


def _gains(worth: Floats, powers: Floats, wanted: float) -> Floats:
    """Return factors, float64 [n]; `worth` times their logarithms adds up to about `wanted`.

    Of all such those with the least sum of `powers` times the squares of what they change: with
    Lagrange's multiplier m it is least where powers * gain * (gain - 1) = m * worth.
    """
    low, high = _LOG_MULTIPLIERS
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2.0
        pull = exact.exp(middle) * worth / powers
        gains = (1.0 + np.sqrt(np.maximum(1.0 + 4.0 * pull, 0.0))) / 2.0
        gains = np.where(pull < -0.25, _MIN_GAIN, np.minimum(gains, _MAX_GAIN))
        if exact.dot(worth, exact.log(gains)) < wanted:
            low = middle
        else:
            high = middle
    return np.asarray(gains)

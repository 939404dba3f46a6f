"""Seed input, triggering input and their difference as pictures and sounds."""

import io
import struct
import wave
import zlib
from collections.abc import Sequence

import cv2
import numpy as np
from numpy.typing import NDArray

from edgeflare.answers import common_kind
from edgeflare.errors import StoreError
from edgeflare.reports.charts import Axis
from edgeflare.types import Output, Sample

Palette = NDArray[np.uint8]
"""Colours, uint8 [colours, 3], RGB."""

COLOURS = 64

_LEVELS = ("000004", "1c1044", "4f127b", "812581", "b5367a", "e55964", "fb8761", "fec287", "fcfdbf")
"""Magma of van der Walt and Smith (matplotlib, CC0): from silent to loud."""
_CHANGES = (
    *("053061", "2166ac", "4393c3", "92c5de", "d1e5f0", "f7f7f7"),
    *("fddbc7", "f4a582", "d6604d", "b2182b", "67001f"),
)
"""RdBu of ColorBrewer (Brewer, Apache 2.0), reversed: blue is quieter, red louder."""


def level_colours() -> Palette:
    """Return the colours of levels, the lowest first."""
    return _between(_LEVELS)


def change_colours() -> Palette:
    """Return the colours of differences: quieter first, the middle is no change."""
    return _between(_CHANGES)


def gradient(palette: Palette) -> str:
    """Return a palette as a ``linear-gradient`` of CSS, the first colour on the left."""
    chosen = palette[np.linspace(0, len(palette) - 1, 11).round().astype(int)]
    return f"linear-gradient(90deg, {', '.join(f'#{bytes(one).hex()}' for one in chosen)})"


def _between(colours: tuple[str, ...]) -> Palette:
    known = np.array([list(bytes.fromhex(one)) for one in colours], np.float64)
    places = np.linspace(0, len(known) - 1, COLOURS)
    channels = [np.interp(places, np.arange(len(known)), channel) for channel in known.T]
    palette: Palette = np.stack(channels, axis=1).round().astype(np.uint8)
    return palette


LOWEST_DB = -80.0
"""What is quieter than this, relative to the loudest point of both, is shown as silence."""
LARGEST_CHANGE_DB = 40.0
"""Larger differences than this, up or down, are shown like it."""

_WINDOW_S = 0.025
_HOP_S = 0.010
_SMALLEST_WINDOW, _LARGEST_WINDOW = 64, 4096
_COLUMNS, _ROWS = 300, 128

Shades = NDArray[np.uint8]
"""Colour numbers of a picture, uint8 [rows, columns]; high frequencies are above."""


def spectrograms(seed: Sample, trigger: Sample, rate: int) -> tuple[Shades, Shades, Shades]:
    """Return the spectrograms of mono float32 [samples] at `rate` Hz, and their difference.

    Seed and trigger from -80 dB to 0 dB, which is the loudest point of both; the difference is the
    trigger's level less the seed's, -40 dB to 40 dB. From left to right all seconds of the longer,
    which silence follows in the shorter; upwards from 0 Hz to half the rate. Power of a Hann window
    of about 25 ms each 10 ms, averaged over what falls into one point.
    """
    length = max(seed.size, trigger.size)
    powers = [_powers(sample, length, rate) for sample in (seed, trigger)]
    loudest = max(float(one.max(initial=0.0)) for one in powers) or 1.0
    least = 10 ** (LOWEST_DB / 10)
    levels = [10 * np.log10(np.maximum(one / loudest, least)) for one in powers]
    return (
        _shades(levels[0], LOWEST_DB, 0.0),
        _shades(levels[1], LOWEST_DB, 0.0),
        _shades(levels[1] - levels[0], -LARGEST_CHANGE_DB, LARGEST_CHANGE_DB),
    )


def _powers(sample: Sample, length: int, rate: int) -> NDArray[np.float64]:
    """Return mean powers, float64 [rows, columns], the highest frequency first."""
    window = 2 ** round(np.log2(max(1.0, _WINDOW_S * rate)))
    window = min(max(window, _SMALLEST_WINDOW), _LARGEST_WINDOW)
    padded = np.zeros(length + window, np.float64)
    padded[window // 2 : window // 2 + sample.size] = np.nan_to_num(sample, posinf=1.0, neginf=-1.0)
    starts = np.arange(0, length, max(1, round(_HOP_S * rate)))
    columns = np.array_split(starts, min(len(starts), _COLUMNS))
    shape = np.hanning(window + 1)[:-1]
    offsets = np.arange(window)
    means = [
        np.square(np.abs(np.fft.rfft(padded[column[:, None] + offsets] * shape))).mean(axis=0)
        for column in columns
    ]
    bins = np.array_split(np.stack(means, axis=1)[::-1], min(_ROWS, window // 2))
    return np.stack([one.mean(axis=0) for one in bins])


def _shades(values: NDArray[np.float64], low: float, high: float) -> Shades:
    share = np.clip((values - low) / (high - low), 0.0, 1.0)
    shades: Shades = (share * (COLOURS - 1)).round().astype(np.uint8)
    return shades


_MID_GREY = 128
_LARGEST_STEP = 127
_PANEL_SIDE = 256
_DRAWN_SIDE = 320
_GAP = 8


def difference(seed: Sample, trigger: Sample) -> tuple[Sample, float]:
    """Return trigger - seed of two uint8 images [height, width, channels], and its amplification.

    It is an image, uint8, mid-grey (128) where nothing changed: a change of d levels is shown as
    128 + amplification * d; the largest one just fits.
    """
    change = trigger.astype(np.int16) - seed
    largest = int(np.abs(change).max(initial=0))
    amplification = _LARGEST_STEP / largest if largest else 1.0
    picture = np.rint(_MID_GREY + amplification * change).astype(np.uint8)
    return picture, amplification


def panel(*images: Sample) -> Sample:
    """Return images of one shape side by side, wide ones below each other, with white between them.

    Those whose longer side is below 256 pixels are enlarged by the largest whole factor that keeps
    it at most that, every pixel a square.
    """
    factor = max(1, _PANEL_SIDE // max(images[0].shape[:2]))
    enlarged = [image.repeat(factor, axis=0).repeat(factor, axis=1) for image in images]
    height, width, channels = enlarged[0].shape
    below = is_wide(enlarged[0])
    gap = np.full((_GAP, width, channels) if below else (height, _GAP, channels), 255, np.uint8)
    pieces = [piece for image in enlarged for piece in (gap, image)]
    return np.concatenate(pieces[1:], axis=0 if below else 1)


def is_wide(image: Sample) -> bool:
    """Whether an image [height, width, channels] is more than twice as wide as high: a line of text."""
    return bool(image.shape[1] > 2 * image.shape[0])


def reduced(image: Sample, side: int) -> Sample:
    """Return an image whose longer side is at most so many pixels, itself if it is small enough."""
    height, width, channels = image.shape
    if max(height, width) <= side:
        return image
    scale = side / max(height, width)
    size = (max(1, round(width * scale)), max(1, round(height * scale)))
    small: Sample = cv2.resize(image, size, interpolation=cv2.INTER_AREA)
    return small.reshape(size[1], size[0], channels)


def small_panel(seed: Sample, trigger: Sample, rate: int | None) -> bytes:
    """Return seed, trigger and difference in one PNG of moderate size.

    Images are at most 256 pixels high and wide each; of a trigger that is its seed, or has another
    shape, only the trigger is shown. Of audio, with its `rate` in Hz, they are spectrograms.
    """
    if rate is not None:
        return png(spectrogram_panel(seed, trigger, rate))
    images = [trigger]
    if seed.shape == trigger.shape and not np.array_equal(seed, trigger):
        images = [seed, trigger, difference(seed, trigger)[0]]
    return png(panel(*(reduced(image, _PANEL_SIDE) for image in images)))


def finding_panel(
    seed: Sample,
    trigger: Sample,
    answers: tuple[Output | None, Output | None],
    rate: int | None,
) -> bytes:
    """Return a finding's picture: the `answers_panel` where there is one, else the `small_panel`.

    `answers` are the original's and the deployed model's to the trigger; `rate` is that of audio.
    """
    return answers_panel(seed, trigger, answers, rate) or small_panel(seed, trigger, rate)


def answers_panel(
    seed: Sample,
    trigger: Sample,
    answers: tuple[Output | None, Output | None],
    rate: int | None,
) -> bytes | None:
    """Return the seed, and the trigger with each model's answer drawn over it, as one PNG.

    None of audio, and of answers that are not drawn (`edgeflare.answers.AnswerKind.panel`). Small
    images are enlarged to 320 pixels. A trigger that is its seed, or has another shape, is shown
    without that.
    """
    original, deployed = answers
    if rate is not None or original is None or deployed is None:
        return None
    drawn = common_kind(original, deployed).panel(_enlarged(trigger), original, deployed)
    if drawn is None:
        return None
    is_changed = seed.shape == trigger.shape and not np.array_equal(seed, trigger)
    return png(panel(*([_enlarged(seed)] if is_changed else []), *drawn))


def _enlarged(image: Sample) -> Sample:
    """Return an image in RGB whose longer side is 320 pixels."""
    small = reduced(image, _DRAWN_SIDE)
    scale = _DRAWN_SIDE / max(small.shape[:2])
    size = (round(small.shape[1] * scale), round(small.shape[0] * scale))
    large = cv2.resize(small, size, interpolation=cv2.INTER_NEAREST).reshape(size[1], size[0], -1)
    return np.array(np.broadcast_to(large, (size[1], size[0], 3)), np.uint8)


def indexed_png(shades: Shades, palette: Palette) -> bytes:
    """Return uint8 [height, width], colour numbers of a palette, as a PNG file."""
    height, width = shades.shape
    head = struct.pack(">IIBBBBB", width, height, 8, 3, 0, 0, 0)
    rows = np.pad(shades, ((0, 0), (1, 0)))  # each row begins with its filter: none
    chunks = (
        (b"IHDR", head),
        (b"PLTE", palette.tobytes()),
        (b"IDAT", zlib.compress(rows.tobytes(), 9)),
        (b"IEND", b""),
    )
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        for kind, data in chunks
    )


def png(image: Sample) -> bytes:
    """Return uint8 [height, width, 1 or 3], grey or RGB, as a PNG file with exactly its pixels."""
    done, data = cv2.imencode(".png", image[:, :, ::-1])
    if not done:
        raise StoreError(f"an image of shape {list(image.shape)} can't be written as PNG")
    return data.tobytes()


_WIDTH, _HEIGHT = 640, 192
_LEFT, _TOP, _PANEL_GAP, _BOTTOM = 60, 30, 34, 46
_BAR, _BAR_GAP, _RIGHT = 14, 14, 74
_INK = (40, 40, 40)
_FONT, _SIZE = cv2.FONT_HERSHEY_SIMPLEX, 0.44


def spectrogram_panel(seed: Sample, trigger: Sample, rate: int) -> NDArray[np.uint8]:
    """Return the spectrograms of seed, trigger and difference below each other, uint8 [height,
    width, 3], RGB.

    Time in seconds and frequency in kHz are written on the axes, and in dB what the colours mean:
    levels relative to the loudest point of both, and the trigger's level less the seed's.
    """
    levels = (0.0, LOWEST_DB / 2, LOWEST_DB)
    changes = (LARGEST_CHANGE_DB, 0.0, -LARGEST_CHANGE_DB)
    drawn = (
        ("seed input", level_colours(), levels),
        ("trigger", level_colours(), levels),
        ("difference (trigger - seed)", change_colours(), changes),
    )
    height = _TOP + len(drawn) * (_HEIGHT + _PANEL_GAP) - _PANEL_GAP + _BOTTOM
    canvas = np.full((height, _LEFT + _WIDTH + _BAR_GAP + _BAR + _RIGHT, 3), 255, np.uint8)
    for number, shades in enumerate(spectrograms(seed, trigger, rate)):
        top = _TOP + number * (_HEIGHT + _PANEL_GAP)
        _draw(canvas, shades, *drawn[number], top)
        _frequencies(canvas, top, rate / 2)
    _times(
        canvas,
        _TOP + len(drawn) * (_HEIGHT + _PANEL_GAP) - _PANEL_GAP,
        max(seed.size, trigger.size) / rate,
    )
    return canvas


def _draw(
    canvas: NDArray[np.uint8],
    shades: Shades,
    title: str,
    palette: Palette,
    scale: tuple[float, float, float],
    top: int,
) -> None:
    """Draw a spectrogram from `top` on; `scale` is in dB from top to bottom."""
    resized = cv2.resize(shades, (_WIDTH, _HEIGHT), interpolation=cv2.INTER_NEAREST)
    canvas[top : top + _HEIGHT, _LEFT : _LEFT + _WIDTH] = palette[resized]
    bar = _LEFT + _WIDTH + _BAR_GAP
    places = np.linspace(len(palette) - 1, 0, _HEIGHT).round().astype(int)
    canvas[top : top + _HEIGHT, bar : bar + _BAR] = palette[places][:, None]
    _write(canvas, title, (_LEFT, top - 9))
    ends = (top + 10, top + _HEIGHT // 2 + 5, top + _HEIGHT)
    for y, value in zip(ends, scale, strict=True):
        _write(canvas, f"{value:+.0f} dB" if value > 0 else f"{value:.0f} dB", (bar + _BAR + 5, y))


def _frequencies(canvas: NDArray[np.uint8], top: int, highest_hz: float) -> None:
    for tick, text in _ticks(highest_hz / 1000, "kHz"):
        y = top + round((_HEIGHT - 1) * (1 - tick))
        cv2.line(canvas, (_LEFT - 5, y), (_LEFT - 1, y), _INK, 1)
        _write(canvas, text, (_LEFT - 8, y + 5), from_right=True)


def _times(canvas: NDArray[np.uint8], bottom: int, seconds: float) -> None:
    for tick, text in _ticks(seconds, "s", most=6):
        x = _LEFT + round((_WIDTH - 1) * tick)
        cv2.line(canvas, (x, bottom), (x, bottom + 4), _INK, 1)
        _write(canvas, text, (x + 8, bottom + 20), from_right=True)


def _ticks(end: float, unit: str, most: int = 4) -> Sequence[tuple[float, str]]:
    """Return round numbers from 0 to `end` as shares of it, each with its text."""
    axis = Axis(0.0, end, most)
    inside = [tick for tick in axis.ticks if tick <= end * (1 + 1e-9)]
    texts = [axis.text(tick) for tick in inside]
    texts[-1] += f" {unit}"
    return [(tick / end, text) for tick, text in zip(inside, texts, strict=True)]


def _write(
    canvas: NDArray[np.uint8], text: str, at: tuple[int, int], *, from_right: bool = False
) -> None:
    if from_right:
        at = (at[0] - cv2.getTextSize(text, _FONT, _SIZE, 1)[0][0], at[1])
    cv2.putText(canvas, text, at, _FONT, _SIZE, _INK, 1, cv2.LINE_AA)


_PCM_LEVELS = 32768.0


def pcm_wav(sample: Sample, rate: int) -> bytes:
    """Return mono float32 [samples] in [-1, 1] at `rate` Hz as a WAV file of 16-bit PCM.

    What was read from a file of 16 bits comes back bit by bit; else a sample is off by half a level
    at most, and one outside of the range by what it is outside. Not every player takes a WAV file
    of floats, as a campaign has them.
    """
    levels = np.rint(np.nan_to_num(sample.astype(np.float64)) * _PCM_LEVELS)
    data = np.clip(levels, -_PCM_LEVELS, _PCM_LEVELS - 1).astype("<i2").tobytes()
    buffer = io.BytesIO()
    with wave.open(buffer, "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(rate)
        file.writeframes(data)
    return buffer.getvalue()

"""Seed, trigger and difference of a sound as one picture with axes, for an export."""

from collections.abc import Sequence
from typing import NamedTuple

import cv2
import numpy as np
from numpy.typing import NDArray

from edgeflare.analysis.axes import Axis
from edgeflare.analysis.colours import Palette, change_colours, level_colours
from edgeflare.analysis.spectrograms import LARGEST_CHANGE_DB, LOWEST_DB, Shades, spectrograms
from edgeflare.types import Sample

_WIDTH, _HEIGHT = 640, 192
_LEFT, _TOP, _GAP, _BOTTOM = 60, 30, 34, 46
_BAR, _BAR_GAP, _RIGHT = 14, 14, 74
_INK = (40, 40, 40)
_FONT, _SIZE = cv2.FONT_HERSHEY_SIMPLEX, 0.44


class _Drawn(NamedTuple):
    """One of the three pictures: its title, its points, its colours, and the dB of its scale from top to bottom."""

    title: str
    shades: Shades
    palette: Palette
    scale: tuple[float, float, float]


def spectrogram_panel(seed: Sample, trigger: Sample, rate: int) -> NDArray[np.uint8]:
    """Return the spectrograms of seed, trigger and difference below each other, uint8 [height, width, 3], RGB.

    Time in seconds and frequency in kHz are written on the axes, and in dB what the colours mean: levels relative to
    the loudest point of both, and the trigger's level less the seed's.
    """
    made = spectrograms(seed, trigger, rate)
    levels = (0.0, LOWEST_DB / 2, LOWEST_DB)
    changes = (LARGEST_CHANGE_DB, 0.0, -LARGEST_CHANGE_DB)
    drawn = (
        _Drawn("seed input", made.seed, level_colours(), levels),
        _Drawn("trigger", made.trigger, level_colours(), levels),
        _Drawn("difference (trigger - seed)", made.difference, change_colours(), changes),
    )
    height = _TOP + len(drawn) * (_HEIGHT + _GAP) - _GAP + _BOTTOM
    canvas = np.full((height, _LEFT + _WIDTH + _BAR_GAP + _BAR + _RIGHT, 3), 255, np.uint8)
    for number, one in enumerate(drawn):
        top = _TOP + number * (_HEIGHT + _GAP)
        _draw(canvas, one, top)
        _frequencies(canvas, top, made.highest_hz)
    _times(canvas, _TOP + len(drawn) * (_HEIGHT + _GAP) - _GAP, made.seconds)
    return canvas


def _draw(canvas: NDArray[np.uint8], one: _Drawn, top: int) -> None:
    size = (_WIDTH, _HEIGHT)
    shades = cv2.resize(one.shades, size, interpolation=cv2.INTER_NEAREST)
    canvas[top : top + _HEIGHT, _LEFT : _LEFT + _WIDTH] = one.palette[shades]
    bar = _LEFT + _WIDTH + _BAR_GAP
    places = np.linspace(len(one.palette) - 1, 0, _HEIGHT).round().astype(int)
    canvas[top : top + _HEIGHT, bar : bar + _BAR] = one.palette[places][:, None]
    _write(canvas, one.title, (_LEFT, top - 9))
    ends = (top + 10, top + _HEIGHT // 2 + 5, top + _HEIGHT)
    for y, value in zip(ends, one.scale, strict=True):
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
    """Return the round numbers from 0 to `end` as shares of it, each with its text, the last with the unit."""
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

"""Histograms and courses as inline SVG, each with its text alternative."""

import math
from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

import numpy as np
from markupsafe import Markup

from edgeflare.analysis.axes import Axis

_WIDTH, _HEIGHT = 360, 170
_LEFT, _RIGHT, _TOP, _BOTTOM = 40, 10, 10, 34
_MOST_BARS = 24
_SKEWED = 50.0
_MOST_POINTS = 240


class _Bins(NamedTuple):
    """Edges of bars, one more than there are, and whether each bar is one whole number."""

    edges: list[float]
    whole: bool


def histogram(values: Sequence[float], title: str, unit: str) -> Markup:
    """Return a histogram of finite numbers as an ``<svg>``, or a sentence where there are none.

    `title` says what is counted, `unit` what is on the horizontal axis. Whole numbers of a small range have
    a bar each; numbers from 0 upwards that span more than a factor of 50 are on a logarithmic axis.
    """
    numbers = np.asarray([value for value in values if math.isfinite(value)], np.float64)
    if not numbers.size:
        return Markup('<p class="muted">{}: nothing to count.</p>').format(title)
    bins = _bins(numbers)
    counts = np.histogram(numbers, bins.edges)[0]
    upright = Axis(0, int(counts.max()), whole=True)
    words = (
        f"{numbers.size:,} values from {figure(float(numbers.min()))} to {figure(float(numbers.max()))}, "
        f"median {figure(float(np.median(numbers)))}, 90 % at most {figure(float(np.percentile(numbers, 90)))}"
    )
    step = (_WIDTH - _LEFT - _RIGHT) / len(counts)
    span = _HEIGHT - _TOP - _BOTTOM
    parts = [_grid(upright)]
    for place, count in enumerate(counts.tolist()):
        height = span * count / upright.high
        if not count:
            continue
        tip = f"{_bar_words(bins, place, unit)}: {count:,}"
        parts.append(
            Markup(
                '<rect class="fill" x="{}" y="{}" width="{}" height="{}"><title>{}</title></rect>'
            ).format(
                _short(_LEFT + place * step + 0.5),
                _short(_TOP + span - max(height, 1.5)),
                _short(max(step - 1, 1)),
                _short(max(height, 1.5)),
                tip,
            )
        )
    parts.append(_abscissa(bins, step, unit))
    return _drawing(f"{title}: {words}.", parts)


def course(times: Sequence[datetime], values: Sequence[float | None], title: str) -> Markup:
    """Return numbers over time as an ``<svg>`` with one line; None parts it. Empty where there is no number."""
    points = [
        (at.timestamp(), value)
        for at, value in zip(times, values, strict=True)
        if value is not None and math.isfinite(value)
    ]
    if not points:
        return Markup("")
    points.sort()
    first, last, latest = points[0][0], points[-1][0], points[-1][1]
    points = _thinned(points)
    low, high = min(value for _, value in points), max(value for _, value in points)
    upright = Axis(0.0 if 0 <= low < high / 2 else low, high)
    minutes = (last - first) / 60
    across, span = _WIDTH - _LEFT - _RIGHT, _HEIGHT - _TOP - _BOTTOM
    places = [
        (
            _LEFT + across * ((at - first) / (last - first) if last > first else 0.5),
            _TOP + span * (1 - (value - upright.low) / (upright.high - upright.low)),
        )
        for at, value in points
    ]
    path = " ".join(f"{_short(x)},{_short(y)}" for x, y in places)
    parts = [
        _grid(upright),
        Markup('<polyline class="line" points="{}"/>').format(path),
    ]
    if len(places) < 40:
        parts += [
            Markup('<circle class="mark" cx="{}" cy="{}" r="2"/>').format(_short(x), _short(y))
            for x, y in places
        ]
    began = datetime.fromtimestamp(first, times[0].tzinfo).strftime("%Y-%m-%d %H:%M")
    parts.append(_label(_LEFT, _HEIGHT - 18, f"{began} UTC", "start"))
    if minutes >= 1:
        parts.append(_label(_WIDTH - _RIGHT, _HEIGHT - 18, f"+ {minutes:,.0f} min", "end"))
    words = f"{title}: from {figure(low)} to {figure(high)} over {max(1, round(minutes) + 1):,} minutes, {figure(latest)} in the end."
    return _drawing(words, parts)


def figure(value: float) -> str:
    """Return a number in few digits, for people."""
    if value == int(value) and abs(value) < 1e9:
        return f"{int(value):,}"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def _bins(numbers: "np.ndarray[tuple[int], np.dtype[np.float64]]") -> _Bins:
    low, high = float(numbers.min()), float(numbers.max())
    whole = bool((numbers == np.rint(numbers)).all())
    if whole and high - low < _MOST_BARS:
        return _Bins([low - 0.5 + place for place in range(int(high - low) + 2)], True)
    if low == high:
        return _Bins([low - abs(low) * 0.05 - 1e-9, high + abs(high) * 0.05 + 1e-9], False)
    if low > 0 and high / low > _SKEWED:
        return _Bins([float(edge) for edge in np.geomspace(low, high, _MOST_BARS + 1)], False)
    return _Bins(Axis(low, high, _MOST_BARS).ticks, False)


def _bar_words(bins: _Bins, place: int, unit: str) -> str:
    if bins.whole:
        return f"{figure(bins.edges[place] + 0.5)} {unit}"
    return f"{figure(bins.edges[place])} to {figure(bins.edges[place + 1])} {unit}"


def _abscissa(bins: _Bins, step: float, unit: str) -> Markup:
    bars = len(bins.edges) - 1
    parts = [
        Markup('<path class="axis" d="M{} {}H{}"/>').format(
            _LEFT, _HEIGHT - _BOTTOM, _WIDTH - _RIGHT
        )
    ]
    y = _HEIGHT - _BOTTOM + 14
    if bins.whole:
        every = max(1, -(-bars // 10))
        for place in range(0, bars, every):
            text = figure(bins.edges[place] + 0.5)
            parts.append(_label(_LEFT + (place + 0.5) * step, y, text, "middle"))
    else:
        for place in (0, bars // 2, bars) if bars > 1 else (0, bars):
            anchor = "start" if place == 0 else "end" if place == bars else "middle"
            parts.append(_label(_LEFT + place * step, y, figure(bins.edges[place]), anchor))
    logarithmic = not bins.whole and bars > 1 and bins.edges[0] > 0
    if logarithmic and not math.isclose(
        bins.edges[1] - bins.edges[0], bins.edges[2] - bins.edges[1], rel_tol=1e-6
    ):
        unit += " (logarithmic)"
    parts.append(_label((_LEFT + _WIDTH - _RIGHT) / 2, _HEIGHT - 5, unit, "middle"))
    return Markup("").join(parts)


def _grid(axis: Axis) -> Markup:
    """Return a line across for each number of an upright axis."""
    lines = []
    for tick in axis.ticks:
        share = (tick - axis.low) / (axis.high - axis.low)
        y = _TOP + (_HEIGHT - _TOP - _BOTTOM) * (1 - share)
        path = Markup('<path class="grid" d="M{} {}H{}"/>')
        lines.append(path.format(_LEFT, _short(y), _WIDTH - _RIGHT))
        lines.append(_label(_LEFT - 5, y + 4, axis.text(tick), "end"))
    return Markup("").join(lines)


def _label(x: float, y: float, text: str, anchor: str) -> Markup:
    return Markup('<text x="{}" y="{}" text-anchor="{}">{}</text>').format(
        _short(x), _short(y), anchor, text
    )


def _drawing(words: str, parts: Sequence[Markup]) -> Markup:
    return Markup('<svg viewBox="0 0 {} {}" role="img" aria-label="{}">{}</svg>').format(
        _WIDTH, _HEIGHT, words, Markup("").join(parts)
    )


def _thinned(points: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """Return at most so many points as can be seen: of each stretch the largest."""
    size = -(-len(points) // _MOST_POINTS)
    return [
        max(points[at : at + size], key=lambda one: one[1]) for at in range(0, len(points), size)
    ]


def _short(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")

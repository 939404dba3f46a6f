"""Histograms, line and interval charts as inline SVG, each with a text alternative: no script, no network."""

import math
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import NamedTuple, TypeGuard

import numpy as np
from markupsafe import Markup

from edgeflare._internal.text import counted

_MOST_DIGITS = 4


class Axis:
    """An axis from one round number to another one, with round steps of 1, 2 or 5 times a power of
    ten.

    It holds every number from `low` to `high`, which are finite. `ticks` are its numbers from one
    end to the other, `most` steps at most, two more where neither end is round; with `whole` none
    is a fraction.
    """

    def __init__(self, low: float, high: float, most: int = 4, *, whole: bool = False) -> None:
        if low == high:
            around = 0.05 * abs(low) or 1.0
            low, high = low - around, high + around
        self._step = _round_up((high - low) / most, whole=whole)
        first, last = math.floor(low / self._step), math.ceil(high / self._step)
        first -= self._at(first) > low
        last += self._at(last) < high
        self.ticks = [self._at(place) for place in range(first, last + 1)]

    @property
    def low(self) -> float:
        """The smallest number on it."""
        return self.ticks[0]

    @property
    def high(self) -> float:
        """The largest number on it."""
        return self.ticks[-1]

    def text(self, tick: float) -> str:
        """Return a number of the axis with as many digits as its steps have."""
        digits = max(0, -math.floor(math.log10(self._step) + 1e-9))
        return f"{tick:.3g}" if digits > _MOST_DIGITS else f"{tick:,.{digits}f}"

    def _at(self, place: int) -> float:
        return float(f"{place * self._step:.12g}")


def _round_up(step: float, *, whole: bool) -> float:
    if whole and step <= 1:
        return 1.0
    power = 10.0 ** math.floor(math.log10(step))
    times = next(one for one in (1, 2, 5, 10) if one * power >= step * (1 - 1e-9))
    return float(f"{times * power:.6g}")


_WIDTH, _HEIGHT = 360, 170  # of the drawing's own units; it is scaled to the page
_LEFT, _RIGHT, _TOP, _BOTTOM = 46, 12, 10, 34
_ACROSS, _SPAN = _WIDTH - _LEFT - _RIGHT, _HEIGHT - _TOP - _BOTTOM
_MOST_BARS = 24
_SKEWED = 50.0
_MOST_POINTS = 240
_MARK_SIZE = 3.0

STATE_WORDS = {
    "green": "green",
    "first": "green, the first",
    "accepted": "red, accepted later",
    "regression": "red",
    "away": "away",
    "failed": "not run",
}
"""Words for a night's state; each state has a mark of its own shape."""


class Point(NamedTuple):
    """A night on the horizontal axis: its day in words, and its `RunState` or "accepted"."""

    day: str
    state: str


class Line(NamedTuple):
    """One line of a chart: name, a value for each night or None, number of its style."""

    name: str
    values: Sequence[float | None]
    style: int = 1


def figure(value: float) -> str:
    """Return a number in few digits, for people."""
    value = round(value, 12)
    if value == int(value) and abs(value) < 1e9:
        return f"{int(value):,}"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def histogram(values: Sequence[float], title: str, unit: str) -> Markup:
    """Return a histogram of finite numbers as an ``<svg>``, or a sentence where there are none.

    `title` says what is counted, `unit` what is on the horizontal axis. Whole numbers of a small
    range have a bar each; numbers from 0 upwards that span more than a factor of 50 are on a
    logarithmic axis.
    """
    numbers = np.asarray([value for value in values if math.isfinite(value)], np.float64)
    if not numbers.size:
        return Markup('<p class="muted">{}: nothing to count.</p>').format(title)
    edges, is_whole = _bins(numbers)
    counts = np.histogram(numbers, edges)[0]
    upright = Axis(0, int(counts.max()), whole=True)
    words = (
        f"{numbers.size:,} values from {figure(float(numbers.min()))} to "
        f"{figure(float(numbers.max()))}, median {figure(float(np.median(numbers)))}, 90 % at most "
        f"{figure(float(np.percentile(numbers, 90)))}"
    )
    step = _ACROSS / len(counts)
    parts = [_grid(upright, upright.text)]
    for place, count in enumerate(counts.tolist()):
        if not count:
            continue
        height = max(_SPAN * count / upright.high, 1.5)
        tip = f"{_bar_words(edges, is_whole, place, unit)}: {count:,}"
        parts.append(
            Markup(
                '<rect class="fill" x="{}" y="{}" width="{}" height="{}"><title>{}</title></rect>'
            ).format(
                _short(_LEFT + place * step + 0.5),
                _short(_TOP + _SPAN - height),
                _short(max(step - 1, 1)),
                _short(height),
                tip,
            )
        )
    parts.append(_abscissa(edges, is_whole, step, unit))
    return _drawing(f"{title}: {words}.", parts)


def time_chart(times: Sequence[datetime], values: Sequence[float | None], title: str) -> Markup:
    """Return numbers over time as an ``<svg>`` with one line; empty if there is no number."""
    known = (
        (at.timestamp(), value) for at, value in zip(times, values, strict=True) if _is_drawn(value)
    )
    points = sorted(known)
    if not points:
        return Markup("")
    first, last, latest = points[0][0], points[-1][0], points[-1][1]
    points = _thinned(points)
    low, high = min(value for _, value in points), max(value for _, value in points)
    upright = Axis(0.0 if 0 <= low < high / 2 else low, high)
    minutes = (last - first) / 60
    places = [
        (
            _LEFT + _ACROSS * ((at - first) / (last - first) if minutes else 0.5),
            _down(upright, value),
        )
        for at, value in points
    ]
    parts = [_grid(upright, upright.text), _polyline(places)]
    if len(places) < 40:
        circle = Markup('<circle class="mark" cx="{}" cy="{}" r="2"/>')
        parts += [circle.format(_short(x), _short(y)) for x, y in places]
    began = datetime.fromtimestamp(first, times[0].tzinfo).strftime("%Y-%m-%d %H:%M")
    parts.append(_label(_LEFT, _HEIGHT - 18, f"{began} UTC", "start"))
    if minutes >= 1:
        parts.append(_label(_WIDTH - _RIGHT, _HEIGHT - 18, f"+ {minutes:,.0f} min", "end"))
    words = (
        f"{title}: from {figure(low)} to {figure(high)} over {max(1, round(minutes) + 1):,} "
        f"minutes, {figure(latest)} in the end."
    )
    return _drawing(words, parts)


def line_chart(
    title: str,
    nights: Sequence[Point],
    lines: Sequence[Line],
    *,
    words: Callable[[float], str] = figure,
    least: float | None = None,
    most: float | None = None,
) -> Markup | None:
    """Return a chart of some lines over the same nights; None if no night has a value.

    The vertical axis spans the values, and `least` and `most` if given. The first line carries each
    night's mark: a disc (green), a diamond (red), a triangle on the axis (away), a cross on the
    axis (not run). `words` formats a value for people.
    """
    ends = [value for line in lines for value in line.values if _is_drawn(value)]
    if not ends:
        return None
    ends += [one for one in (least, most) if one is not None]
    low, high = min(ends), max(ends)
    if low == high and low >= 0:
        low, high = 0.0, high or 1.0
    upright = Axis(low, high, 3)
    xs = [
        _LEFT + 6 + (place / (len(nights) - 1) if len(nights) > 1 else 0.5) * (_ACROSS - 12)
        for place in range(len(nights))
    ]
    parts = [_grid(upright, words)]
    last = len(nights) - 1
    parts += [
        _label(xs[place] + shift, _HEIGHT - 18, nights[place].day, anchor)
        for place, shift, anchor in (
            [(0, -6, "start"), (last, 6, "end")] if last else [(0, 0, "middle")]
        )
    ]
    for line in lines:
        pieces: list[list[tuple[float, float]]] = [[]]
        for x, value in zip(xs, line.values, strict=True):
            if _is_drawn(value):
                pieces[-1].append((x, _down(upright, value)))
            else:
                pieces.append([])
        parts += [_polyline(piece, f"line line-{line.style}") for piece in pieces if len(piece) > 1]
    for place, (night, value) in enumerate(zip(nights, lines[0].values, strict=True)):
        if _is_drawn(value) or night.state in ("away", "failed", "regression"):
            here = [(line.name, line.values[place]) for line in lines]
            texts = [f"{name} {words(one)}" for name, one in here if _is_drawn(one)]
            y = _down(upright, value) if _is_drawn(value) else _HEIGHT - _BOTTOM
            tooltip = ", ".join([f"{night.day}: {STATE_WORDS[night.state]}", *texts])
            parts.append(mark(night.state, xs[place], y, tooltip))
    return _drawing(_alternative(title, nights, lines, words), parts)


def interval_chart(
    title: str,
    places: Sequence[str],
    intervals: Sequence[tuple[float, float, float]],
    others: Sequence[Line] = (),
    *,
    unit: str,
    words: Callable[[float], str] = figure,
) -> Markup | None:
    """Return a chart of values with their intervals (value, low, high) at named places, or None.

    `others` are lines over the same places, without intervals. `unit` says what the places are,
    `words` formats a value for people. The vertical axis begins at 0.
    """
    if not intervals:
        return None
    ends = [high for *_, high in intervals]
    ends += [value for line in others for value in line.values if _is_drawn(value)]
    upright = Axis(0.0, max(ends) or 1.0)
    step = _ACROSS / len(places)
    xs = [_LEFT + (place + 0.5) * step for place in range(len(places))]
    parts = [_grid(upright, words)]
    for x, place in zip(xs, places, strict=True):
        parts.append(_label(x, _HEIGHT - _BOTTOM + 14, place, "middle"))
    parts.append(_label((_LEFT + _WIDTH - _RIGHT) / 2, _HEIGHT - 5, unit, "middle"))
    for line in others:
        drawn = [(x, value) for x, value in zip(xs, line.values, strict=True) if _is_drawn(value)]
        points = [(x, _down(upright, value)) for x, value in drawn]
        parts.append(_polyline(points, f"line line-{line.style}"))
    centres = [(x, _down(upright, value)) for x, (value, *_) in zip(xs, intervals, strict=True)]
    parts.append(_polyline(centres))
    sentences = [title]
    for (x, y), (value, low, high), place in zip(centres, intervals, places, strict=True):
        text = f"{unit} {place}: {words(value)} ({words(low)} to {words(high)})"
        sentences.append(text)
        top, bottom = _down(upright, high), _down(upright, low)
        bar = Markup('<path class="bounds" d="M{0} {1}V{2}M{3} {1}h8M{3} {2}h8"/>')
        parts.append(bar.format(_short(x), _short(top), _short(bottom), _short(x - 4)))
        parts.append(mark("green", x, y, text))
    return _drawing(". ".join(sentences), parts)


def mark(state: str, x: float, y: float, tooltip: str = "") -> Markup:
    """Return a night's mark at a place, with an optional tooltip."""
    size = _MARK_SIZE if state in ("green", "first") else _MARK_SIZE + 2
    title = Markup("<title>{}</title>").format(tooltip) if tooltip else Markup("")
    return Markup('<path class="mark {}" d="{}">{}</path>').format(
        state, _outline(state, x, y, size), title
    )


def _alternative(
    title: str, nights: Sequence[Point], lines: Sequence[Line], words: Callable[[float], str]
) -> str:
    """Return what a chart shows, in words."""
    sentences = [f"{title} over {counted(len(nights), 'night')}"]
    for line in lines:
        values = [value for value in line.values if _is_drawn(value)]
        if values:
            sentences.append(
                f"{line.name}: lowest {words(min(values))}, highest {words(max(values))}, "
                f"last {words(values[-1])}"
            )
    for state in ("regression", "accepted", "away", "failed"):
        days = [night.day for night in nights if night.state == state]
        if days:
            more = f" and {len(days) - 3} more" if len(days) > 3 else ""
            sentences.append(f"{STATE_WORDS[state]} on {', '.join(days[-3:])}{more}")
    return ". ".join(sentences)


def _is_drawn(value: float | None) -> TypeGuard[float]:
    return value is not None and math.isfinite(value)


def _down(upright: Axis, value: float) -> float:
    """Return the vertical place of a value; the largest is on top."""
    return _TOP + _SPAN * (1 - (value - upright.low) / (upright.high - upright.low))


def _grid(upright: Axis, words: Callable[[float], str], right: float = _WIDTH - _RIGHT) -> Markup:
    """Return a line across for each number of an upright axis."""
    lines = []
    for tick in upright.ticks:
        y = _down(upright, tick)
        path = Markup('<path class="grid" d="M{} {}H{}"/>')
        lines.append(path.format(_LEFT, _short(y), _short(right)))
        lines.append(_label(_LEFT - 5, y + 4, words(tick), "end"))
    return Markup("").join(lines)


def _polyline(places: Sequence[tuple[float, float]], style: str = "line") -> Markup:
    points = " ".join(f"{_short(x)},{_short(y)}" for x, y in places)
    return Markup('<polyline class="{}" points="{}"/>').format(style, points)


def _label(x: float, y: float, text: str, anchor: str) -> Markup:
    return Markup('<text x="{}" y="{}" text-anchor="{}">{}</text>').format(
        _short(x), _short(y), anchor, text
    )


def _drawing(words: str, parts: Sequence[Markup]) -> Markup:
    return Markup(
        '<svg class="chart" viewBox="0 0 {} {}" role="img" aria-label="{}">{}</svg>'
    ).format(_WIDTH, _HEIGHT, words, Markup("").join(parts))


def _bins(numbers: "np.ndarray[tuple[int], np.dtype[np.float64]]") -> tuple[list[float], bool]:
    """Return the edges of bars, one more than there are, and whether each is one whole number."""
    low, high = float(numbers.min()), float(numbers.max())
    whole = bool((numbers == np.rint(numbers)).all())
    if whole and high - low < _MOST_BARS:
        return [low - 0.5 + place for place in range(int(high - low) + 2)], True
    if low == high:
        return [low - abs(low) * 0.05 - 1e-9, high + abs(high) * 0.05 + 1e-9], False
    if low > 0 and high / low > _SKEWED:
        return [float(edge) for edge in np.geomspace(low, high, _MOST_BARS + 1)], False
    return Axis(low, high, _MOST_BARS).ticks, False


def _bar_words(edges: Sequence[float], is_whole: bool, place: int, unit: str) -> str:
    if is_whole:
        return f"{figure(edges[place] + 0.5)} {unit}"
    return f"{figure(edges[place])} to {figure(edges[place + 1])} {unit}"


def _abscissa(edges: Sequence[float], is_whole: bool, step: float, unit: str) -> Markup:
    bars = len(edges) - 1
    parts = [
        Markup('<path class="axis" d="M{} {}H{}"/>').format(
            _LEFT, _HEIGHT - _BOTTOM, _WIDTH - _RIGHT
        )
    ]
    y = _HEIGHT - _BOTTOM + 14
    if is_whole:
        every = max(1, -(-bars // 10))
        for place in range(0, bars, every):
            text = figure(edges[place] + 0.5)
            parts.append(_label(_LEFT + (place + 0.5) * step, y, text, "middle"))
    else:
        for place in (0, bars // 2, bars) if bars > 1 else (0, bars):
            anchor = "start" if place == 0 else "end" if place == bars else "middle"
            parts.append(_label(_LEFT + place * step, y, figure(edges[place]), anchor))
    logarithmic = not is_whole and bars > 1 and edges[0] > 0
    if logarithmic and not math.isclose(edges[1] - edges[0], edges[2] - edges[1], rel_tol=1e-6):
        unit += " (logarithmic)"
    parts.append(_label((_LEFT + _WIDTH - _RIGHT) / 2, _HEIGHT - 5, unit, "middle"))
    return Markup("").join(parts)


def _outline(state: str, x: float, y: float, size: float) -> str:
    if state in ("regression", "accepted"):
        return f"M{x:.1f} {y - size:.1f}l{size} {size}l{-size} {size}l{-size} {-size}z"
    if state == "away":
        return f"M{x:.1f} {y - size:.1f}l{size} {1.8 * size:.1f}h{-2 * size}z"
    if state == "failed":
        return (
            f"M{x - size:.1f} {y - size:.1f}l{2 * size} {2 * size}m0 {-2 * size}l{-2 * size} "
            f"{2 * size}"
        )
    return (
        f"M{x - size:.1f} {y:.1f}a{size} {size} 0 1 0 {2 * size} 0a{size} {size} 0 1 0 {-2 * size} "
        "0z"
    )


def _thinned(points: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """Return at most `_MOST_POINTS` points: the largest of each stretch."""
    size = -(-len(points) // _MOST_POINTS)
    return [
        max(points[at : at + size], key=lambda one: one[1]) for at in range(0, len(points), size)
    ]


def _short(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")


_NARROWEST = 0.05


def curve_chart(
    title: str,
    points: Sequence[tuple[float, float]],
    chosen: tuple[float, float],
    *,
    across: str,
    upright: str,
    words: Callable[[float], str] = figure,
) -> Markup:
    """Return a chart of a curve through points (x, y), both 0 to 1, with a mark at the `chosen` one.

    `across` and `upright` name both; `words` formats a value for people. It ends a little beyond
    the chosen point and the one from which on the curve is at its top.
    """
    axis = Axis(0.0, 1.0)
    top = max(y for _, y in (*points, chosen))
    reached = min(x for x, y in (*points, chosen) if y == top)
    horizontal = Axis(0.0, min(1.0, max(_NARROWEST, 1.5 * reached, 1.5 * chosen[0])))

    def place(x: float, y: float) -> tuple[float, float]:
        return _LEFT + 6 + x / horizontal.high * (_ACROSS - 12), _down(axis, y)

    shown = [one for one in points if one[0] <= horizontal.high]
    parts = [_grid(axis, words), _polyline([place(*one) for one in shown])]
    for tick in horizontal.ticks:
        at, _ = place(tick, 0.0)
        parts.append(_label(at, _HEIGHT - _BOTTOM + 14, words(tick), "middle"))
    parts.append(
        _label(
            (_LEFT + _WIDTH - _RIGHT) / 2, _HEIGHT - 5, f"{across}; upwards: {upright}", "middle"
        )
    )
    x, y = chosen
    text = f"{upright} {words(y)}, {across} {words(x)}"
    parts.append(mark("green", *place(x, y), text))
    parts.append(_label(_WIDTH - _RIGHT, _down(axis, 0.3), text, "end"))
    return _drawing(f"{title}. {text}", parts)


class Dot(NamedTuple):
    """A named point of a scatter chart; those `on_front` are joined, a `main` one is a diamond."""

    name: str
    x: float
    y: float
    on_front: bool = False
    main: bool = False


_LABEL_HEIGHT = 11.0
_LABELS_LEFT = 208


def scatter_chart(title: str, dots: Sequence[Dot], *, across: str, upright: str) -> Markup:
    """Return a chart of points (x, y), from 0 upwards, with their names on the right.

    Those on the front are joined by a line and have an asterisk.
    `across` and `upright` name both axes.
    """
    low, high = (end(one.x for one in dots) for end in (min, max))
    horizontal = Axis(0.0 if low < high / 2 else low, high, 3)
    vertical = Axis(0.0, max(one.y for one in dots) or 1.0)
    most = _LABELS_LEFT - 12

    def place(one: Dot) -> tuple[float, float]:
        share = (one.x - horizontal.low) / (horizontal.high - horizontal.low)
        return _LEFT + 6 + share * (most - _LEFT - 12), _down(vertical, one.y)

    parts = [_grid(vertical, figure, most)]
    for tick in horizontal.ticks:
        x, _ = place(Dot("", tick, 0.0))
        parts.append(_label(x, _HEIGHT - _BOTTOM + 14, horizontal.text(tick), "middle"))
    parts.append(_label((_LEFT + most) / 2, _HEIGHT - 5, f"{across}; upwards: {upright}", "middle"))
    front = sorted((place(one) for one in dots if one.on_front), key=lambda one: one[0])
    parts.append(_polyline(front))
    step = min(_LABEL_HEIGHT, (_HEIGHT - _BOTTOM - 8) / len(dots))
    sentences, lowest = [f"{title}, {upright} upwards"], -step
    heights = []
    ordered = sorted(dots, key=lambda one: -one.y)
    for one in ordered:
        lowest = max(place(one)[1] + 4, lowest + step)
        heights.append(lowest)
    for place_from_below in range(len(ordered)):  # labels that don't fit move others up
        bound = _HEIGHT - _BOTTOM + 4 - place_from_below * step
        heights[-1 - place_from_below] = min(heights[-1 - place_from_below], bound)
    for one, height in zip(ordered, heights, strict=True):
        x, y = place(one)
        text = f"{one.name}: {across} {figure(one.x)}, {upright} {figure(one.y)}"
        sentences.append(text + (", on the front" if one.on_front else ""))
        lead = Markup('<path class="grid" fill="none" d="M{} {}L{} {}"/>')
        parts.append(lead.format(_short(x), _short(y), _LABELS_LEFT - 3, _short(height - 4)))
        parts.append(mark("regression" if one.main else "green", x, y, text))
        parts.append(_label(_LABELS_LEFT, height, one.name + " *" * one.on_front, "start"))
    return _drawing(". ".join(sentences), parts)


_STYLE = (
    "text{font:11px sans-serif;fill:#555}.grid,.axis,line{stroke:#ddd}"
    ".line{fill:none;stroke:#1f5fa8;stroke-width:1.75}.mark{fill:#1f5fa8;stroke:none}"
)


def standalone(chart: Markup) -> str:
    """Return a chart as an SVG file."""
    start, rest = str(chart).split(">", 1)
    size = f' width="{2 * _WIDTH}" height="{2 * _HEIGHT}"'
    return f'{start} xmlns="http://www.w3.org/2000/svg"{size}><style>{_STYLE}</style>{rest}'

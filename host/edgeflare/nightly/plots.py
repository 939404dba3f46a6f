"""Line charts over nights as inline SVG: no script, no network, a text alternative in each."""

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeGuard

from markupsafe import Markup

_WIDTH, _HEIGHT = 320, 150  # of the drawing's own units; it is scaled to the page
_LEFT, _RIGHT, _TOP, _BOTTOM = 46, 12, 10, 24
_SIZE = 3.0


class Point(NamedTuple):
    """A night on the horizontal axis: its day in words, and how it ended: a `RunState` or "accepted"."""

    day: str
    state: str


class Line(NamedTuple):
    """One line of a chart: its name, a value for each night (None: none that night), the number of its style."""

    name: str
    values: Sequence[float | None]
    style: int = 1


STATE_WORDS = {
    "green": "green",
    "first": "green, the first",
    "accepted": "red, accepted later",
    "regression": "red",
    "away": "away",
    "failed": "not run",
}
"""What a night's state is called for people; each has a mark of a shape of its own."""


def number(value: float) -> str:
    """Return a figure in few digits."""
    value = round(value, 12)
    if value == int(value) and abs(value) < 1e6:
        return str(int(value))
    return f"{value:.3g}"


def percent(value: float) -> str:
    """Return a share as per cent."""
    return f"{100 * value:.3g} %"


def line_chart(
    title: str,
    nights: Sequence[Point],
    lines: Sequence[Line],
    *,
    words: Callable[[float], str] = number,
    least: float | None = None,
    most: float | None = None,
) -> Markup | None:
    """Return a chart of some lines over the same nights; None where no night has a value.

    The vertical axis spans the values, `least` and `most` included where given. The first line carries
    each night's mark: a disc (green), a diamond (red), a triangle on the axis (away), a cross on the axis
    (not run). `words` writes a value for people.
    """
    values = [value for line in lines for value in line.values if _is_drawn(value)]
    if not values:
        return None
    ends = [*values, *(one for one in (least, most) if one is not None)]
    marked = ticks(min(ends), max(ends))
    across = _Across(len(nights))
    down = _Down(marked[0], marked[-1])
    parts = [_axes(marked, down, nights, across, words)]
    parts += [_polylines(line, across, down) for line in lines]
    first = lines[0]
    for index, (night, value) in enumerate(zip(nights, first.values, strict=True)):
        said = f"{night.day}: {STATE_WORDS[night.state]}"
        said += "".join(
            f", {line.name} {words(here)}"
            for line in lines
            if _is_drawn(here := line.values[index])
        )
        y = down(value) if _is_drawn(value) else _HEIGHT - _BOTTOM
        if _is_drawn(value) or night.state in ("away", "failed", "regression"):
            parts.append(mark(night.state, across(index), y, said))
    return Markup(
        '<svg class="chart" viewBox="0 0 {} {}" role="img" aria-label="{}">{}</svg>'
    ).format(_WIDTH, _HEIGHT, alternative(title, nights, lines, words), Markup("").join(parts))


def mark(state: str, x: float, y: float, said: str = "") -> Markup:
    """Return a night's mark at a place; `said` is shown to who points at it."""
    size = _SIZE if state in ("green", "first") else _SIZE + 2
    title = Markup("<title>{}</title>").format(said) if said else Markup("")
    return Markup('<path class="mark {}" d="{}">{}</path>').format(
        state, _outline(state, x, y, size), title
    )


def alternative(
    title: str, nights: Sequence[Point], lines: Sequence[Line], words: Callable[[float], str]
) -> str:
    """Return what a chart shows, in words."""
    said = [f"{title} over {len(nights)} night{'' if len(nights) == 1 else 's'}"]
    for line in lines:
        values = [value for value in line.values if _is_drawn(value)]
        if values:
            said.append(
                f"{line.name}: lowest {words(min(values))}, highest {words(max(values))}, "
                f"last {words(values[-1])}"
            )
    for state in ("regression", "accepted", "away", "failed"):
        days = [night.day for night in nights if night.state == state]
        if days:
            more = f" and {len(days) - 3} more" if len(days) > 3 else ""
            said.append(f"{STATE_WORDS[state]} on {', '.join(days[-3:])}{more}")
    return ". ".join(said)


class _Across:
    """Where a night stands, from left to right."""

    def __init__(self, nights: int) -> None:
        self._nights = nights

    def __call__(self, index: int) -> float:
        share = 0.5 if self._nights < 2 else index / (self._nights - 1)
        return _LEFT + 6 + share * (_WIDTH - _LEFT - _RIGHT - 12)


class _Down:
    """Where a value stands; the largest on top."""

    def __init__(self, low: float, high: float) -> None:
        self.low, self.high = low, high

    def __call__(self, value: float) -> float:
        share = (value - self.low) / (self.high - self.low)
        return _HEIGHT - _BOTTOM - share * (_HEIGHT - _TOP - _BOTTOM)


def _is_drawn(value: float | None) -> TypeGuard[float]:
    return value is not None and math.isfinite(value)


def ticks(low: float, high: float) -> list[float]:
    """Return two to five round numbers in even steps, the first not above `low`, the last not below `high`."""
    if low == high:
        low, high = (0.0, abs(high) or 1.0) if high >= 0 else (low, 0.0)
    rough = (high - low) / 3
    size = 10.0 ** math.floor(math.log10(rough))
    step = next(size * one for one in (1, 2, 5, 10) if size * one >= rough * (1 - 1e-9))
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return [index * step for index in range(first, last + 1)]


def _axes(
    marked: Sequence[float],
    down: _Down,
    nights: Sequence[Point],
    across: _Across,
    words: Callable[[float], str],
) -> Markup:
    parts = []
    for value in marked:
        y = down(value)
        parts.append(
            Markup(
                '<line class="grid" x1="{}" x2="{}" y1="{:.1f}" y2="{:.1f}"/>'
                '<text x="{}" y="{:.1f}" text-anchor="end">{}</text>'
            ).format(_LEFT, _WIDTH - _RIGHT, y, y, _LEFT - 5, y + 3.5, words(value))
        )
    ends = [(0, "start" if len(nights) > 1 else "middle")]
    if len(nights) > 1:
        ends.append((len(nights) - 1, "end"))
    for index, anchor in ends:
        x = across(index) + {"start": -6, "end": 6}.get(anchor, 0)
        parts.append(
            Markup('<text x="{:.1f}" y="{}" text-anchor="{}">{}</text>').format(
                x, _HEIGHT - 8, anchor, nights[index].day
            )
        )
    return Markup("").join(parts)


def _polylines(line: Line, across: _Across, down: _Down) -> Markup:
    """Return a line in as many pieces as nights without a value leave."""
    pieces: list[list[str]] = [[]]
    for index, value in enumerate(line.values):
        if _is_drawn(value):
            pieces[-1].append(f"{across(index):.1f},{down(value):.1f}")
        elif pieces[-1]:
            pieces.append([])
    return Markup("").join(
        Markup('<polyline class="line line-{}" points="{}"/>').format(line.style, " ".join(piece))
        for piece in pieces
        if len(piece) > 1
    )


def _outline(state: str, x: float, y: float, size: float) -> str:
    if state in ("regression", "accepted"):
        return f"M{x:.1f} {y - size:.1f}l{size} {size}l{-size} {size}l{-size} {-size}z"
    if state == "away":
        return f"M{x:.1f} {y - size:.1f}l{size} {1.8 * size:.1f}h{-2 * size}z"
    if state == "failed":
        return f"M{x - size:.1f} {y - size:.1f}l{2 * size} {2 * size}m0 {-2 * size}l{-2 * size} {2 * size}"
    return f"M{x - size:.1f} {y:.1f}a{size} {size} 0 1 0 {2 * size} 0a{size} {size} 0 1 0 {-2 * size} 0z"

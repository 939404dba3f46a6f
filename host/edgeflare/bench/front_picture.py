"""Pictures of how sure of different answers searches made both models, for how many queries, how far away."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from edgeflare.bench.drawing import as_png, new_figure
from edgeflare.bench.fronts import FrontStep

_WIDTH, _HEIGHT, _LEGEND_LINE = 10.0, 4.2, 0.22  # inches
_WIDE = 20.0
_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000", "#8a8a8a")
_STYLES = ("-", "--", ":")
_DOTS = 0.3  # opacity
_PER_LINE = 4
_NONE = "no triggering input in most of the searches"


class Margins(NamedTuple):
    """What is drawn of one strategy on one pair.

    `steps` as `median_front` returns them; its curve ends at `queries`, the most that a search
    spent. `triggers` are (L2, smaller margin) of each triggering input for which both are known.
    """

    steps: Sequence[FrontStep]
    queries: int
    triggers: Sequence[tuple[float, float]]


def front_picture(
    pair: str, strategies: Mapping[str, Margins], *, of: str = "pixels from 0 to 1"
) -> bytes:
    """Return a PNG of two panels: the smaller margin against device queries, and against L2.

    Both share the margin's logarithmic scale, on which a margin of 0 is not seen; queries and L2 are
    logarithmic where the largest is 20 times the smallest or more. `of`: what L2 is the distance of. Raises UsageError where matplotlib
    is missing.
    """
    lines = -(-len(strategies) // _PER_LINE)
    figure = new_figure(_WIDTH, _HEIGHT + _LEGEND_LINE * lines)
    left, right = figure.subplots(1, 2, sharey=True)
    handles = {}
    for number, (name, margins) in enumerate(strategies.items()):
        look = {
            "color": _COLOURS[number % len(_COLOURS)],
            "linestyle": _STYLES[number // len(_COLOURS) % len(_STYLES)],
        }
        handles[name] = _curve(left, margins, look)
        _dots(right, margins.triggers, look["color"])
    _logarithmic(left.set_xscale, (one.queries for one in strategies.values()))
    _logarithmic(right.set_xscale, (l2 for one in strategies.values() for l2, _ in one.triggers))
    known = [margin for one in strategies.values() for margin in _margins(one) if margin > 0]
    if known:
        left.set_yscale("log")
        top = min(1.0, _decade(max(known) * 1.1, np.ceil))
        left.set_ylim(_decade(min(known) / 1.1, np.floor), top)
        left.yaxis.set_major_formatter("{x:g}")
    left.set_xlabel("device queries of the search")
    left.set_ylabel("the smaller margin of both models")
    left.set_title("median of all searches", fontsize=10)
    right.set_xlabel(f"L2 to the seed input ({of})")
    right.set_title("each triggering input, and the medians", fontsize=10)
    for axis in (left, right):
        axis.spines[["top", "right"]].set_visible(False)
        axis.grid(visible=True, which="major", color="#dddddd", linewidth=0.6)
        axis.set_axisbelow(True)
        if axis.get_xscale() == "log":
            axis.xaxis.set_major_formatter("{x:,g}")
        elif axis is left:
            axis.xaxis.get_major_locator().set_params(integer=True)
    if not any(step.margin > 0 for one in strategies.values() for step in one.steps):
        left.text(0.5, 0.5, _NONE, transform=left.transAxes, ha="center")
        left.set_xticks([])
    figure.legend(
        list(handles.values()),
        list(handles),
        loc="outside lower center",
        ncols=min(_PER_LINE, len(handles)),
        fontsize=9,
        frameon=False,
    )
    figure.suptitle(pair, fontsize=12, fontweight="bold")
    return as_png(figure)


def _curve(axis: Any, margins: Margins, look: Mapping[str, str]) -> Any:
    """Draw the steps from the first that isn't 0, to the most queries that were spent; return the line."""
    steps = [step for step in margins.steps if step.margin > 0]
    at = [step.queries for step in steps]
    best = [step.margin for step in steps]
    if steps:
        at.append(max(margins.queries, at[-1]))
        best.append(best[-1])
    (line,) = axis.plot(at, best, drawstyle="steps-post", linewidth=1.8, **look)
    if steps:
        axis.plot(at[:1], best[:1], "o", markersize=5, color=look["color"])
    return line


def _dots(axis: Any, triggers: Sequence[tuple[float, float]], colour: str) -> None:
    if not triggers:
        return
    l2, margin = np.array(triggers, np.float64).T
    axis.plot(l2, margin, "o", markersize=3, alpha=_DOTS, color=colour, markeredgewidth=0)
    axis.plot(
        [np.median(l2)],
        [np.median(margin)],
        "o",
        markersize=11,
        color=colour,
        markeredgecolor="white",
        markeredgewidth=1.5,
        zorder=3,
    )


def _decade(value: float, rounded: Any) -> float:
    return float(10.0 ** rounded(np.log10(value)))


def _margins(margins: Margins) -> list[float]:
    return [step.margin for step in margins.steps] + [margin for _, margin in margins.triggers]


def _logarithmic(set_scale: Any, values: Iterable[float]) -> None:
    positive = [value for value in values if value > 0]
    if positive and max(positive) >= _WIDE * min(positive):
        set_scale("log")

"""The pictures of a bench's report: one of queries and one of margins a pair."""

import io
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from edgeflare.errors import UsageError
from edgeflare.words.inputs import units_of
from edgeflare_bench.cell_figures import CellFigures, FrontStep
from edgeflare_bench.report import BenchReport
from edgeflare_bench.searches import SearchRow

_DPI = 110


def _new_figure(width: float, height: float) -> Any:
    """Return an empty matplotlib figure, in inches. Raises UsageError without matplotlib."""
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError as error:
        raise UsageError(
            "the pictures need matplotlib; install it with `pip install 'edgeflare[bench]'`"
        ) from error
    figure = Figure(figsize=(width, height), dpi=_DPI, layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def _as_png(figure: Any) -> bytes:
    """Return a figure as a PNG file; the same figure gives the same bytes."""
    file = io.BytesIO()
    figure.savefig(file, format="png")
    return file.getvalue()


_HISTOGRAM_WIDTH, _PANEL_HEIGHT, _MARGIN = 8.0, 1.8, 1.0  # inches
_BINS, _FEW_BINS = 40, 10
_WIDE = 20.0
_BARS, _MEAN, _MEDIAN = "#8fb3d9", "#c0392b", "#1b3a57"


def histograms(
    pair: str, queries: Mapping[str, Sequence[float]], seeds: Mapping[str, int]
) -> bytes:
    """Return a PNG with a panel a strategy: how many seed inputs needed how many queries.

    `queries` has for each strategy one number a seed input on which a triggering input was found:
    the mean of its repeats; `seeds` how many were searched from. All panels share the range of
    queries, on a logarithmic scale where one strategy needs 20 times as many as another. Raises
    UsageError where matplotlib is missing.
    """
    figure = _new_figure(_HISTOGRAM_WIDTH, _PANEL_HEIGHT * len(queries) + _MARGIN)
    axes = figure.subplots(len(queries), 1, sharex=True, squeeze=False)[:, 0]
    logarithmic = _is_wide(queries.values())
    edges = _edges(queries.values(), logarithmic=logarithmic)
    for axis, (strategy, values) in zip(axes, queries.items(), strict=True):
        _panel(axis, values, edges)
        title = f"{strategy}   ({len(values)} of {seeds[strategy]} seeds)"
        axis.set_title(title, loc="left", fontsize=10)
    if logarithmic:
        axes[-1].set_xscale("log")
        axes[-1].xaxis.set_major_formatter("{x:,.0f}")
    axes[-1].set_xlim(edges[0], edges[-1])
    scale = ", logarithmic scale" if logarithmic else ""
    axes[-1].set_xlabel(f"queries until a triggering input was found (mean of the repeats{scale})")
    figure.suptitle(pair, fontsize=12, fontweight="bold")
    return _as_png(figure)


def _panel(axis: Any, values: Sequence[float], edges: Any) -> None:
    axis.spines[["top", "right"]].set_visible(False)
    axis.yaxis.get_major_locator().set_params(integer=True, nbins=4)
    if not values:
        axis.text(0.5, 0.5, "no triggering input", transform=axis.transAxes, ha="center")
        axis.set_yticks([])
        return
    axis.set_ylabel("seed inputs", fontsize=9)
    axis.hist(values, bins=edges, color=_BARS, edgecolor="white", linewidth=0.5)
    mean, median = float(np.mean(values)), float(np.median(values))
    axis.axvline(mean, color=_MEAN, linewidth=1.6, label=f"mean {mean:,.1f}")
    axis.axvline(
        median, color=_MEDIAN, linewidth=1.6, linestyle="--", label=f"median {median:,.1f}"
    )
    above = {"loc": "lower right", "bbox_to_anchor": (1.0, 0.97), "ncols": 2, "borderaxespad": 0.0}
    axis.legend(fontsize=9, frameon=False, **above)


def _is_wide(all_values: Any) -> bool:
    medians = [float(np.median(values)) for values in all_values if len(values)]
    return bool(medians) and max(medians) >= _WIDE * max(1.0, min(medians))


def _edges(all_values: Any, *, logarithmic: bool) -> Any:
    values = np.concatenate([np.asarray(values, np.float64) for values in all_values])
    largest = float(values.max(initial=1.0))
    if logarithmic:
        return np.geomspace(max(0.9, float(values.min()) * 0.9), largest * 1.1, _BINS + 1)
    return np.linspace(0.0, largest * 1.05, int(min(_BINS, max(_FEW_BINS, largest))) + 1)


_WIDTH, _HEIGHT, _LEGEND_LINE = 10.0, 4.2, 0.22  # inches
_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000", "#8a8a8a")
_STYLES = ("-", "--", ":")
_DOTS = 0.3  # opacity
_PER_LINE = 4
_NONE = "no triggering input in most of the searches"


class MarginCurve(NamedTuple):
    """Data of one strategy on one pair.

    `steps` as `median_front` returns them; its curve ends at `queries`, the most that a search
    spent. `triggers` are (L2, smaller margin) of each triggering input for which both are known.
    """

    steps: Sequence[FrontStep]
    queries: int
    triggers: Sequence[tuple[float, float]]


def front_picture(
    pair: str, strategies: Mapping[str, MarginCurve], *, of: str = "pixels from 0 to 1"
) -> bytes:
    """Return a PNG of two panels: the smaller margin against device queries, and against L2.

    Both share the margin's logarithmic scale, on which a margin of 0 is not seen; queries and L2
    are logarithmic where the largest is 20 times the smallest or more. `of`: what L2 is the
    distance of. Raises UsageError where matplotlib is missing.
    """
    lines = -(-len(strategies) // _PER_LINE)
    figure = _new_figure(_WIDTH, _HEIGHT + _LEGEND_LINE * lines)
    left, right = figure.subplots(1, 2, sharey=True)
    handles = {}
    for number, (name, margins) in enumerate(strategies.items()):
        style = {
            "color": _COLOURS[number % len(_COLOURS)],
            "linestyle": _STYLES[number // len(_COLOURS) % len(_STYLES)],
        }
        handles[name] = _curve(left, margins, style)
        _dots(right, margins.triggers, style["color"])
    _logarithmic(left.set_xscale, (one.queries for one in strategies.values()))
    _logarithmic(right.set_xscale, (l2 for one in strategies.values() for l2, _ in one.triggers))
    known = [margin for one in strategies.values() for margin in _margin_axis(one) if margin > 0]
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
    columns = min(_PER_LINE, len(handles))
    below = {"loc": "outside lower center", "ncols": columns, "fontsize": 9, "frameon": False}
    figure.legend(list(handles.values()), list(handles), **below)
    figure.suptitle(pair, fontsize=12, fontweight="bold")
    return _as_png(figure)


def _curve(axis: Any, margins: MarginCurve, style: Mapping[str, str]) -> Any:
    """Draw the steps from the first above 0 to the most queries spent; return the line."""
    steps = [step for step in margins.steps if step.margin > 0]
    at = [step.queries for step in steps]
    best = [step.margin for step in steps]
    if steps:
        at.append(max(margins.queries, at[-1]))
        best.append(best[-1])
    (line,) = axis.plot(at, best, drawstyle="steps-post", linewidth=1.8, **style)
    if steps:
        axis.plot(at[:1], best[:1], "o", markersize=5, color=style["color"])
    return line


def _dots(axis: Any, triggers: Sequence[tuple[float, float]], colour: str) -> None:
    if not triggers:
        return
    l2, margin = np.array(triggers, np.float64).T
    axis.plot(l2, margin, "o", markersize=3, alpha=_DOTS, color=colour, markeredgewidth=0)
    edge = {"markeredgecolor": "white", "markeredgewidth": 1.5}
    middle = [np.median(l2)], [np.median(margin)]
    axis.plot(*middle, "o", markersize=11, color=colour, zorder=3, **edge)


def _decade(value: float, rounded: Any) -> float:
    return float(10.0 ** rounded(np.log10(value)))


def _margin_axis(margins: MarginCurve) -> list[float]:
    return [step.margin for step in margins.steps] + [margin for _, margin in margins.triggers]


def _logarithmic(set_scale: Any, values: Iterable[float]) -> None:
    positive = [value for value in values if value > 0]
    if positive and max(positive) >= _WIDE * min(positive):
        set_scale("log")


def draw(report: BenchReport) -> tuple[dict[str, bytes], dict[str, bytes], str]:
    """Return PNG files by pair, for each with a triggering input: histograms, and fronts.

    Without matplotlib there are none; the last says so.
    """
    all_histograms: dict[str, bytes] = {}
    fronts: dict[str, bytes] = {}
    for pair in dict.fromkeys(row.pair for row in report.searches if row.found):
        cells = [cell for cell in report.cells if cell.pair == pair]
        rows: dict[str, list[SearchRow]] = {cell.strategy: [] for cell in cells}
        for row in report.searches:
            if row.pair == pair and row.searched:
                rows[row.strategy].append(row)
        try:
            all_histograms[pair] = _histograms(pair, rows)
            margins = {cell.strategy: _margins(cell, rows[cell.strategy]) for cell in cells}
            if any(one.triggers or len(one.steps) > 1 for one in margins.values()):
                of = units_of(1 if pair in report.audio else None).l2
                fronts[pair] = front_picture(pair, margins, of=of)
        except UsageError as error:
            return {}, {}, str(error)
    return all_histograms, fronts, ""


def _histograms(pair: str, all_rows: Mapping[str, Sequence[SearchRow]]) -> bytes:
    queries, seeds = {}, {}
    for strategy, rows in all_rows.items():
        groups: dict[str, list[int]] = {row.seed_id: [] for row in rows}
        for row in rows:
            groups[row.seed_id] += [row.queries] if row.found else []
        queries[strategy] = [float(np.mean(group)) for group in groups.values() if group]
        seeds[strategy] = len(groups)
    return histograms(pair, queries, seeds)


def _margins(cell: CellFigures, rows: Sequence[SearchRow]) -> MarginCurve:
    return MarginCurve(
        steps=cell.front,
        queries=max((row.queries for row in rows), default=0),
        triggers=[
            (row.l2, row.severity)
            for row in rows
            if row.found and row.l2 is not None and row.severity is not None
        ],
    )

"""Histograms of the queries that searches needed, like the paper's figure 4."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from edgeflare.bench.drawing import as_png, new_figure

_WIDTH, _PANEL_HEIGHT, _MARGIN = 8.0, 1.8, 1.0  # inches
_BINS, _FEW_BINS = 40, 10
_WIDE = 20.0
_BARS, _MEAN, _MEDIAN = "#8fb3d9", "#c0392b", "#1b3a57"


def histograms(
    pair: str, queries: Mapping[str, Sequence[float]], seeds: Mapping[str, int]
) -> bytes:
    """Return a PNG with a panel a strategy: how many seed inputs needed how many queries.

    `queries` has for each strategy one number a seed input on which a triggering input was found: the
    mean of its repeats; `seeds` how many were searched from. All panels share the range of queries,
    on a logarithmic scale where one strategy needs 20 times as many as another. Raises UsageError
    where matplotlib is missing.
    """
    figure = new_figure(_WIDTH, _PANEL_HEIGHT * len(queries) + _MARGIN)
    axes = figure.subplots(len(queries), 1, sharex=True, squeeze=False)[:, 0]
    logarithmic = _is_wide(queries.values())
    edges = _edges(queries.values(), logarithmic=logarithmic)
    for axis, (strategy, values) in zip(axes, queries.items(), strict=True):
        _panel(axis, values, edges)
        axis.set_title(
            f"{strategy}   ({len(values)} of {seeds[strategy]} seeds)",
            loc="left",
            fontsize=10,
        )
    if logarithmic:
        axes[-1].set_xscale("log")
        axes[-1].xaxis.set_major_formatter("{x:,.0f}")
    axes[-1].set_xlim(edges[0], edges[-1])
    scale = ", logarithmic scale" if logarithmic else ""
    axes[-1].set_xlabel(f"queries until a triggering input was found (mean of the repeats{scale})")
    figure.suptitle(pair, fontsize=12, fontweight="bold")
    return as_png(figure)


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

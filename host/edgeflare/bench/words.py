"""Figures of a bench in words, for Markdown."""

from collections.abc import Sequence

from edgeflare.analysis.words import NOTHING, number_text, percent_text, plain
from edgeflare.bench.cell_figures import PublishedFigures


def with_interval(value: float | None, interval: tuple[float, float] | None) -> str:
    """Return a mean with its interval behind it."""
    if interval is None:
        return number_text(value)
    return f"{number_text(value)} [{number_text(interval[0])}, {number_text(interval[1])}]"


def published(figures: Sequence[PublishedFigures]) -> str:
    """Return what others say, each with its source."""
    told = []
    for one in figures:
        parts = [
            *([f"{number_text(one.queries)} queries"] if one.queries is not None else []),
            *([percent_text(one.success)] if one.success is not None else []),
            *([f"{number_text(one.seconds, 3)} s"] if one.seconds is not None else []),
        ]
        told.append(f"{', '.join(parts) or NOTHING} ({plain(one.source)})")
    return "; ".join(told) or NOTHING

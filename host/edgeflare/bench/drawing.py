"""What the report's pictures share: matplotlib, where it is there."""

import io
from typing import Any

from edgeflare.errors import UsageError

DPI = 110


def new_figure(width: float, height: float) -> Any:
    """Return an empty matplotlib figure of so many inches. Raises UsageError where matplotlib is missing."""
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError as error:
        raise UsageError(
            "the pictures need matplotlib; install it with `pip install 'edgeflare[bench]'`"
        ) from error
    figure = Figure(figsize=(width, height), dpi=DPI, layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def as_png(figure: Any) -> bytes:
    """Return a figure as a PNG file; the same figure gives the same bytes."""
    file = io.BytesIO()
    figure.savefig(file, format="png")
    return file.getvalue()

"""The pictures of a bench's report: one of queries and one of margins a pair."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from edgeflare.bench.cell_figures import CellFigures
from edgeflare.bench.figures import histograms
from edgeflare.bench.front_picture import Margins, front_picture
from edgeflare.bench.report import BenchReport
from edgeflare.bench.rows import SearchRow
from edgeflare.errors import UsageError


class Pictures(NamedTuple):
    """PNG files by pair, for each with a triggering input; `notice` says why there are none."""

    histograms: dict[str, bytes]
    fronts: dict[str, bytes]
    notice: str = ""


def draw(report: BenchReport) -> Pictures:
    """Return the pictures of a report; without matplotlib there are none, and a notice says so."""
    drawn = Pictures({}, {})
    for pair in dict.fromkeys(row.pair for row in report.searches if row.found):
        cells = {cell.strategy: cell for cell in report.cells if cell.pair == pair}
        rows = {
            name: [row for row in report.searches if (row.pair, row.strategy) == (pair, name)]
            for name in cells
        }
        try:
            drawn.histograms[pair] = _histograms(pair, rows)
            margins = {name: _margins(cell, rows[name]) for name, cell in cells.items()}
            if any(one.triggers or len(one.steps) > 1 for one in margins.values()):
                of = "samples from -1 to 1" if pair in report.audio else "pixels from 0 to 1"
                drawn.fronts[pair] = front_picture(pair, margins, of=of)
        except UsageError as error:
            return Pictures({}, {}, str(error))
    return drawn


def _histograms(pair: str, all_rows: dict[str, list[SearchRow]]) -> bytes:
    queries, seeds = {}, {}
    for strategy, rows in all_rows.items():
        groups: dict[str, list[int]] = {}
        for row in rows:
            if row.searched:
                groups.setdefault(row.seed_id, []).extend([row.queries] if row.found else [])
        queries[strategy] = [float(np.mean(group)) for group in groups.values() if group]
        seeds[strategy] = len(groups)
    return histograms(pair, queries, seeds)


def _margins(cell: CellFigures, rows: Sequence[SearchRow]) -> Margins:
    return Margins(
        steps=cell.front,
        queries=max((row.queries for row in rows if row.searched), default=0),
        triggers=list(_triggers(rows)),
    )


def _triggers(rows: Sequence[SearchRow]) -> Iterable[tuple[float, float]]:
    for row in rows:
        if row.l2 is not None and row.smaller_margin is not None:
            yield row.l2, row.smaller_margin

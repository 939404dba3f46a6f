"""The class matrix of the triggers: what the original says, what the deployed model says, how often."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from edgeflare.analysis.page.gallery import pair_key

MOST_CLASSES = 40
_MOST_PAIRS = 20
_SHADES = 5


@dataclass(frozen=True)
class Cell:
    """A pair of labels: both classes, the count of its triggers, its key for filters, a shade from 1 to 5."""

    original: int
    deployed: int
    count: int
    key: str
    shade: int


class MatrixRow(NamedTuple):
    """An original label with a cell for each deployed label, None where the pair doesn't occur."""

    original: int
    cells: list[Cell | None]
    total: int


@dataclass(frozen=True)
class Matrix:
    """The pairs of labels. `rows` is empty where there are too many classes for a matrix; `top` then has the
    most frequent pairs, and `left_out` counts those beyond them. `totals` are those of the `columns`."""

    columns: list[int]
    rows: list[MatrixRow]
    totals: list[int]
    top: list[Cell]
    left_out: int
    count: int


def matrix(pairs: Mapping[tuple[int, int], int]) -> Matrix:
    """Return the matrix of the pairs (original, deployed) that occur, with their counts."""
    most = max(pairs.values(), default=1)
    cells = {
        pair: Cell(*pair, count, pair_key(*pair), _shade(count, most))
        for pair, count in pairs.items()
    }
    lines = sorted({original for original, _ in pairs})
    columns = sorted({deployed for _, deployed in pairs})
    ranked = sorted(cells.values(), key=lambda one: (-one.count, one.original, one.deployed))
    if max(len(lines), len(columns)) > MOST_CLASSES:
        left_out = max(0, len(ranked) - _MOST_PAIRS)
        return Matrix([], [], [], ranked[:_MOST_PAIRS], left_out, sum(pairs.values()))
    rows = [
        MatrixRow(
            one,
            [cells.get((one, other)) for other in columns],
            sum(pairs.get((one, other), 0) for other in columns),
        )
        for one in lines
    ]
    totals = [sum(pairs.get((one, other), 0) for one in lines) for other in columns]
    return Matrix(columns, rows, totals, ranked[:_MOST_PAIRS], 0, sum(pairs.values()))


def _shade(count: int, most: int) -> int:
    """Return 1 to 5, by the root of the share, so that rare pairs are told apart, too."""
    return min(_SHADES, 1 + int(_SHADES * math.sqrt((count - 1) / most)))

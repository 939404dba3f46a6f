"""Tables that leave out the least needed figures where the terminal is narrow."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from rich.cells import cell_len, set_cell_size
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from edgeflare.cli.tables import plain_table

_UNBOUNDED = 10_000  # columns


class Column(NamedTuple):
    """A figure of a row. Of two columns the one with the greater `need` is left out later; 0: never."""

    heading: str
    need: int
    figure: Callable[[Any], str]
    text: bool = False


def fitted(columns: Sequence[Column], rows: Sequence[Any], console: Console) -> Table:
    """Return the table with as many of the columns as the console has room for."""
    left = list(columns)
    unbounded = console.options.update(max_width=_UNBOUNDED)
    while True:
        table = plain_table(*(column.heading for column in left))
        for column, drawn in zip(left, table.columns, strict=True):
            drawn.justify = "left" if column.text else "right"
        for row in rows:
            table.add_row(*(escape(column.figure(row)) for column in left))
        needless = [column for column in left if column.need]
        if not needless or console.measure(table, options=unbounded).maximum <= console.width:
            return table
        left.remove(min(needless, key=lambda column: column.need))


def print_whole(table: Table, console: Console) -> None:
    """Print a table with no cell broken; where it is wider than the terminal, so are its lines."""
    unbounded = console.options.update(max_width=_UNBOUNDED)
    if console.measure(table, options=unbounded).maximum <= console.width:
        console.print(table)
        return
    columns = [[column.header, *column.cells] for column in table.columns]
    widths = [max(cell_len(str(cell)) for cell in column) for column in columns]
    for row in zip(*columns, strict=True):
        cells = (set_cell_size(str(cell), width) for cell, width in zip(row, widths, strict=True))
        console.print("  ".join(cells).rstrip(), soft_wrap=True, highlight=False)

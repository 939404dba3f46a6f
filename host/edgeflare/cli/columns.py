"""Tables that leave out the least needed figures where the terminal is narrow."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

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
    width = console.measure(table, options=unbounded).maximum
    Console(width=max(console.width, width)).print(table)

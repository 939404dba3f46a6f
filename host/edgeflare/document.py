"""What a report consists of: blocks, worded once, which each format renders.

All texts in blocks are plain. `edgeflare.reports.document` prints them to a terminal, and writes
them as Markdown or as HTML. What only a page can show (pictures, charts, cells to choose) other
formats leave out, or have the blocks in `text` in its place.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

from edgeflare._internal.text import NOTHING

if TYPE_CHECKING:
    from markupsafe import Markup

Name: TypeAlias = Callable[[int | None], str]
"""Returns the name of a class, or its number; a dash or the like for None."""
Tone: TypeAlias = Literal["plain", "strong", "muted", "good", "warn", "bad", "note"]
"""How a text is meant; a "note" explains figures to the readers of a page, others leave it out."""

_SHADES = 5


@dataclass(frozen=True)
class Heading:
    """The title of a section; `level` 1 is that of the whole document."""

    text: str
    level: int = 3


@dataclass(frozen=True)
class Text:
    """A paragraph. `has_code`: text between backticks is code."""

    text: str
    tone: Tone = "plain"
    has_code: bool = False


@dataclass(frozen=True)
class Prose:
    """Trusted Markdown that explains figures; a terminal shows the `brief` text instead."""

    markdown: str
    brief: str = ""


@dataclass(frozen=True)
class CommandLine:
    """A command line for the reader to run."""

    text: str


class Item(NamedTuple):
    """An entry of a list; the `label` comes before the text, in the colour of `tone`."""

    text: str
    tone: Tone = "plain"
    label: str = ""


@dataclass(frozen=True)
class Listing:
    """A list of sentences."""

    items: tuple[Item, ...]


class KeyFigure(NamedTuple):
    """One result: name, value and a remark. `main`: it belongs on top of a page."""

    name: str
    value: str
    about: str = ""
    main: bool = False

    @property
    def text(self) -> str:
        """Value and remark in one line."""
        return f"{self.value} ({self.about})" if self.about else self.value


@dataclass(frozen=True)
class Figures:
    """Key figures, one below the other."""

    rows: tuple[KeyFigure, ...]


class Column(NamedTuple):
    """A column of a table.

    A terminal too narrow for all drops those of `drop_order` 1, then of 2, and so on; those of 0
    never. `figure` returns a row's cell. A column of `text` is aligned to the left. One that is
    `optional` is dropped everywhere if no row has a value in it.
    """

    heading: str
    drop_order: int
    figure: Callable[[Any], str]
    text: bool = False
    optional: bool = False


@dataclass(frozen=True)
class Table:
    """Rows of any type, from which each column takes its figure; one without rows is left out.

    `title` is a sentence above it, `identifier` the element's id in HTML. A table that is
    `unbroken` has no cell folded, even if its lines are longer than the terminal's.
    """

    columns: tuple[Column, ...]
    rows: Sequence[Any]
    title: str = ""
    identifier: str = ""
    unbroken: bool = False

    @property
    def shown(self) -> list[Column]:
        """The columns that have a value in some row, or are not optional."""
        return [
            column
            for column in self.columns
            if not column.optional
            or any(column.figure(row) not in ("", NOTHING) for row in self.rows)
        ]

    def cells(self, columns: Sequence[Column]) -> list[list[str]]:
        """Return the texts of some columns, row by row; where an optional one has none, a dash."""
        return [
            [column.figure(row) or (NOTHING if column.optional else "") for column in columns]
            for row in self.rows
        ]


@dataclass(frozen=True)
class Picture:
    """A picture by reference: its file's relative address in a URL, and what it shows.

    Only Markdown has it.
    """

    address: str
    text: str


class Cell(NamedTuple):
    """A cell of a matrix.

    `shade` colours it, 1 to 5 by its size, 0 not at all. `key` is what the gallery is filtered by
    where the cell is chosen, and `words` say what it counts; "": it can't be chosen.
    """

    text: str
    shade: int = 0
    key: str = ""
    words: str = ""


@dataclass(frozen=True)
class Matrix:
    """A table of counts on a page, with `text` in its place elsewhere.

    The first `labels` cells of a row are texts that name it, the last `totals` are sums. One with
    `long_names` has its headings upright.
    """

    columns: tuple[str, ...]
    rows: Sequence[Sequence[str | Cell]]
    labels: int = 1
    totals: int = 0
    long_names: bool = False
    text: "tuple[Block, ...]" = ()


class Example(NamedTuple):
    """An input on a page: its title, what it is, a muted remark, and its picture as PNG.

    `alternative` says what the picture shows; `deviates` marks it as a deviation.
    """

    title: str
    words: str
    remark: str = ""
    picture: bytes = b""
    alternative: str = ""
    deviates: bool = True


@dataclass(frozen=True)
class Examples:
    """Inputs on a page, made only where they are shown, with `text` in their place elsewhere."""

    make: Callable[[], Sequence[Example]]
    title: str = ""
    text: "tuple[Block, ...]" = ()


@dataclass(frozen=True)
class Charts:
    """Drawings on a page, each with its title, made only where they are shown.

    `lines` name the lines of each.
    """

    draw: "Callable[[], Sequence[tuple[str, Markup]]]"
    lines: tuple[str, ...] = ()


@dataclass(frozen=True)
class Fold:
    """Details on a page, folded under a title; other formats leave them out."""

    title: str
    blocks: "tuple[Block, ...]"
    is_open: bool = False


Block: TypeAlias = (
    Heading
    | Text
    | Prose
    | CommandLine
    | Listing
    | Figures
    | Table
    | Picture
    | Matrix
    | Examples
    | Charts
    | Fold
)
"""A part of a document."""


def in_text(blocks: Iterable[Block]) -> Iterator[Block]:
    """Yield what a format without pictures shows of some blocks."""
    for block in blocks:
        match block:
            case Matrix() | Examples():
                yield from in_text(block.text)
            case Charts() | Fold() | Text(tone="note"):
                pass
            case _:
                yield block


@dataclass(frozen=True)
class Section:
    """A part of a report: its blocks, without a heading of its own, and the numbers they are made of.

    `id` names it in addresses and in JSON. `key_figures` are those that belong on top of a report.
    `data` is a record of the numbers, which JSON has. A section that is not `brief` is left out in a
    terminal; `order` is its place, those of plug-ins 500 where they state none.
    """

    id: str
    title: str
    blocks: tuple[Block, ...]
    key_figures: tuple[KeyFigure, ...] = ()
    data: object = None
    brief: bool = True
    order: int = 500


def section_blocks(sections: Iterable[Section]) -> Iterator[Block]:
    """Yield the blocks of sections for a text, each section below its heading."""
    for section in sections:
        blocks = [*in_text(section.blocks)]
        if blocks and section.title:
            yield Heading(section.title)
        if blocks:
            yield from blocks


def table_of(header: Sequence[str], rows: Sequence[Sequence[str]], *, text: int = 1) -> Table:
    """Return a table of ready cells; the first `text` columns are aligned to the left."""

    def column(number: int, heading: str) -> Column:
        return Column(heading, 0, lambda row: str(row[number]), text=number < text)

    return Table(tuple(column(*one) for one in enumerate(header)), rows)


def shade(count: int, most: int) -> int:
    """Return the shade of a count, 1 to 5, by the root of the share, so that rare pairs differ, too."""
    return min(_SHADES, 1 + int(_SHADES * math.sqrt((count - 1) / most)))

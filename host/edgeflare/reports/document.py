"""Documents rendered: printed to a terminal, written as Markdown, or as HTML.

All texts in blocks are plain; each renderer escapes them for its format and drops control
characters.
"""

import base64
import re
from collections.abc import Iterable, Sequence
from io import StringIO
from urllib.parse import quote

from markupsafe import Markup
from rich import box
from rich.cells import cell_len, set_cell_size
from rich.console import Console
from rich.markup import escape
from rich.table import Table as RichTable

from edgeflare._internal.text import clean_text
from edgeflare.document import (
    Block,
    Cell,
    Charts,
    Column,
    CommandLine,
    Example,
    Examples,
    Figures,
    Fold,
    Heading,
    Item,
    KeyFigure,
    Listing,
    Matrix,
    Picture,
    Prose,
    Table,
    Text,
    Tone,
    in_text,
    table_of,
)

__all__ = [
    "Block",
    "Cell",
    "Charts",
    "Column",
    "CommandLine",
    "Example",
    "Examples",
    "Figures",
    "Fold",
    "Heading",
    "Item",
    "KeyFigure",
    "Listing",
    "Matrix",
    "Picture",
    "Prose",
    "Table",
    "Text",
    "Tone",
    "code",
    "plain",
    "print_document",
    "table_of",
    "to_html",
    "to_markdown",
    "to_text",
]

_STYLES = {"strong": "bold", "muted": "dim", "good": "green", "warn": "yellow", "bad": "red"}
_UNBOUNDED = 10_000  # columns of a terminal
_CODE = re.compile(r"\\`(.*?)\\`")
_ITSELF = r"\1"
_ESCAPED = re.compile(r"\\(.)")


# Terminal


def print_document(blocks: Iterable[Block], console: Console | None = None) -> None:
    """Print a document to stdout; narrow terminals drop less important columns."""
    console = console or Console()
    for block in in_text(blocks):
        match block:
            case Heading(text):
                _print(console, escape(clean_text(text)), "strong")
            case Text(text, tone):
                _print(console, escape(clean_text(text, lines=True)), tone)
            case CommandLine(text) | Prose(brief=text) if text:
                _print(console, escape(clean_text(text, lines=True)))
            case Listing(items) if items:
                for item in items:
                    _print_item(console, item)
                console.print()
            case Figures(rows):
                table = _rich_table(["", ""], [[one.name, one.text] for one in rows], header=False)
                table.columns[0].no_wrap = True
                console.print(table, highlight=False)
            case Table() if block.rows:
                _print_table(block, console)


def to_text(blocks: Iterable[Block]) -> str:
    """Return the document as a terminal without an end shows it, without colours."""
    text = StringIO()
    print_document(blocks, Console(file=text, width=_UNBOUNDED, color_system=None))
    return "\n".join(line.rstrip() for line in text.getvalue().splitlines())


def _print(console: Console, text: str, tone: Tone = "plain") -> None:
    console.print(text, style=_STYLES.get(tone), soft_wrap=True, highlight=False)


def _print_item(console: Console, item: Item) -> None:
    text = escape(clean_text(item.text))
    if item.label:
        _print(console, f"[{_STYLES.get(item.tone, 'none')}]{item.label}[/] {text}")
    else:
        _print(console, text, item.tone)


def _print_table(block: Table, console: Console) -> None:
    if block.title:
        _print(console, escape(clean_text(block.title)))
    columns = block.shown
    unbounded = console.options.update(max_width=_UNBOUNDED)
    while True:
        cells = block.cells(columns)
        table = _rich_table([column.heading for column in columns], cells)
        for column, drawn in zip(columns, table.columns, strict=True):
            drawn.justify = "left" if column.text else "right"
        fits = console.measure(table, options=unbounded).maximum <= console.width
        droppable = [column for column in columns if column.drop_order]
        if fits or not droppable:
            break
        columns.remove(min(droppable, key=lambda column: column.drop_order))
    if fits or not block.unbroken:
        console.print(table, highlight=False)
        return
    lines = [[column.heading for column in columns], *cells]
    widths = [max(map(cell_len, column)) for column in zip(*lines, strict=True)]
    for line in lines:
        sized = (set_cell_size(cell, width) for cell, width in zip(line, widths, strict=True))
        _print(console, escape("  ".join(sized).rstrip()))


def _rich_table(
    headings: Sequence[str], rows: Iterable[Sequence[str]], *, header: bool = True
) -> RichTable:
    table = RichTable(box=box.SIMPLE, show_header=header, pad_edge=False)
    for heading in headings:
        table.add_column(escape(heading), overflow="fold")
    for row in rows:
        table.add_row(*(escape(clean_text(cell)) for cell in row))
    return table


# Markdown


def to_markdown(blocks: Iterable[Block]) -> str:
    """Return the document as Markdown, without a line break at its end."""
    return "\n\n".join(filter(None, map(_markdown, in_text(blocks))))


def _markdown(block: Block) -> str:
    match block:
        case Heading(text, level):
            return f"{'#' * level} {plain(text)}"
        case Text(text, tone, has_code):
            words = _with_code(text) if has_code else plain(text)
            return {"strong": f"**{words}**", "warn": f"> {words}"}.get(tone, words)
        case Prose(markdown):
            return markdown
        case CommandLine(text):
            return _code_block(text)
        case Listing(items):
            return "\n".join(
                f"- {f'**{one.label}** ' if one.label else ''}{plain(one.text)}" for one in items
            )
        case Picture(address, text):
            return f"{plain(text)}\n\n![{plain(text)}]({address})"
        case Figures(rows):
            return _markdown_table(["", "figure"], [[one.name, one.text] for one in rows], 2)
        case Table() if block.rows:
            columns = block.shown
            headings = [column.heading for column in columns]
            text_columns = [column.text for column in columns]
            table = _markdown_table(headings, block.cells(columns), text_columns)
            return f"{plain(block.title)}\n\n{table}" if block.title else table
    return ""


def _markdown_table(
    header: Sequence[str], rows: Sequence[Sequence[str]], text: Sequence[bool] | int
) -> str:
    left = [True] * text if isinstance(text, int) else text
    lines = [
        [plain(heading) for heading in header],
        ["---" if one else "---:" for one in left],
        *([plain(cell) for cell in row] for row in rows),
    ]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def plain(text: str) -> str:
    """Return text escaped for a Markdown table or line, without control characters."""
    words = clean_text(" ".join(text.split()))
    for sign in "\\`*_|<>[]&~$":
        words = words.replace(sign, f"\\{sign}")
    return words


def code(text: str) -> str:
    """Return text as a code span; its fence is longer than any run of backticks in it."""
    words = clean_text(" ".join(text.split()))
    fence = "`" * (1 + max(map(len, re.findall("`+", words)), default=0))
    space = " " if "`" in words else ""
    return f"{fence}{space}{words}{space}{fence}"


def _with_code(text: str) -> str:
    return _CODE.sub(lambda found: f"`{_ESCAPED.sub(_ITSELF, found[1])}`", plain(text))


def _code_block(line: str) -> str:
    line = clean_text(line, lines=True)
    fence = "`" * max(3, 1 + max(map(len, re.findall("`+", line)), default=0))
    return f"{fence}sh\n{line}\n{fence}"


# HTML


def to_html(blocks: Iterable[Block]) -> Markup:
    """Return the document as elements of a page's section, in which headings are an ``<h3>``."""
    return Markup("\n").join(map(_html, blocks))


def _html(block: Block) -> Markup:
    match block:
        case Heading(text, level):
            return Markup("<h{0}>{1}</h{0}>").format(min(level, 3), clean_text(text))
        case Text(text, tone):
            style = "muted small" if tone == "note" else tone
            return Markup('<p class="{}">{}</p>').format(style, clean_text(text))
        case CommandLine(text):
            return Markup(
                '<div class="command"><pre tabindex="0"><code>{}</code></pre>'
                '<button type="button" class="copy" hidden>Copy</button></div>'
            ).format(clean_text(text, lines=True))
        case Listing(items):
            lines = (
                Markup('<li class="{}"><strong>{}</strong> {}</li>').format(
                    item.tone, item.label.capitalize(), clean_text(item.text)
                )
                for item in items
            )
            return Markup('<ul class="list">{}</ul>').format(Markup("").join(lines))
        case Figures(rows):
            pairs = (
                Markup("<div><dt>{}</dt><dd>{}</dd></div>").format(one.name, clean_text(one.text))
                for one in rows
            )
            return Markup('<dl class="pairs">{}</dl>').format(Markup("").join(pairs))
        case Table() if block.rows:
            return _html_table(block)
        case Matrix():
            return _html_matrix(block)
        case Examples(make, title):
            heading = _html(Heading(title)) if title else ""
            return Markup('{}<div class="worst">{}</div>').format(
                heading, Markup("\n").join(map(_html_example, make()))
            )
        case Charts(draw, lines):
            return _html_charts(draw(), lines)
        case Fold(title, blocks, is_open):
            return Markup("<details{}><summary>{}</summary>\n{}\n</details>").format(
                _OPEN if is_open else "", clean_text(title), to_html(blocks)
            )
    return Markup("")


_OPEN = Markup(" open")
_CORNER, _TOTAL = Markup(' class="corner"'), Markup(' class="total"')


def _html_matrix(block: Matrix) -> Markup:
    style = "matrix named" if block.long_names else "matrix" if block.labels == 1 else "pairs"
    sums = len(block.columns) - block.totals
    head = Markup("").join(
        Markup('<th scope="col"{}><span>{}</span></th>').format(
            _CORNER if number == 0 else _TOTAL if number >= sums else "",
            clean_text(text),
        )
        for number, text in enumerate(block.columns)
    )
    rows = []
    for row in block.rows:
        first, *cells = row
        line = Markup('<tr><th scope="row">{}</th>').format(
            clean_text(first if isinstance(first, str) else first.text)
        )
        for number, cell in enumerate(cells, 1):
            if isinstance(cell, str):
                total = _TOTAL if number >= sums else ""
                line += Markup("<td{}>{}</td>").format(total, clean_text(cell))
            else:
                line += _html_cell(cell)
        rows.append(line + Markup("</tr>"))
    return Markup(
        '<div class="wide" tabindex="0" role="region" aria-label="{}"><table class="{}">'
        "<thead><tr>{}</tr></thead><tbody>{}</tbody></table></div>"
    ).format(block.columns[0], style, head, Markup("\n").join(rows))


def _html_cell(cell: Cell) -> Markup:
    shade = Markup(' class="heat-{}"').format(cell.shade) if cell.shade else Markup("")
    if not cell.key:
        return Markup("<td{}><span>{}</span></td>").format(shade, clean_text(cell.text))
    return Markup('<td{}><a href="#pair={}" data-pair="{}" aria-label="{}">{}</a></td>').format(
        shade, quote(cell.key), cell.key, clean_text(cell.words), clean_text(cell.text)
    )


def _html_example(one: Example) -> Markup:
    picture = remark = Markup("")
    if one.picture:
        picture = Markup('<img src="data:image/png;base64,{}" alt="{}" loading="lazy">').format(
            base64.b64encode(one.picture).decode(), clean_text(one.alternative)
        )
    if one.remark:
        remark = Markup('<br><span class="muted">{}</span>').format(clean_text(one.remark))
    return Markup(
        '<figure class="panel card{}">{}<figcaption><strong>{}</strong><br>{}{}</figcaption></figure>'
    ).format(
        " deviates" * one.deviates, picture, clean_text(one.title), clean_text(one.words), remark
    )


def _html_charts(drawings: Sequence[tuple[str, Markup]], lines: Sequence[str]) -> Markup:
    figures = Markup("\n").join(
        Markup('<figure class="chart"><figcaption>{}</figcaption>{}</figure>').format(
            clean_text(title), drawing
        )
        for title, drawing in drawings
    )
    named = Markup("").join(
        Markup('<li><span class="key line-{}"></span>{}</li>').format(number, clean_text(line))
        for number, line in enumerate(lines, 1)
    )
    legend = Markup('<ul class="legend">{}</ul>').format(named) if lines else Markup("")
    return (
        Markup('<div class="grid">{}</div>{}').format(figures, legend) if drawings else Markup("")
    )


def _html_table(block: Table) -> Markup:
    columns = block.shown
    numbers = [Markup("") if column.text else Markup(' class="number"') for column in columns]
    head = (
        Markup('<th scope="col"{}>{}</th>').format(number, column.heading)
        for number, column in zip(numbers, columns, strict=True)
    )
    rows = []
    for row in block.cells(columns):
        first, *cells = map(clean_text, row)
        line = Markup('<tr><th scope="row">{}</th>').format(first)
        for number, cell in zip(numbers[1:], cells, strict=True):
            line += Markup("<td{}>{}</td>").format(number, cell)
        rows.append(line + Markup("</tr>"))
    return Markup(
        '<div class="wide" tabindex="0" role="region" '
        'aria-label="{}"><table{}>{}<thead><tr>{}</tr></thead>'
        "<tbody>{}</tbody></table></div>"
    ).format(
        block.title or block.identifier or columns[0].heading,
        Markup(' id="{}"').format(block.identifier) if block.identifier else "",
        Markup("<caption>{}</caption>").format(block.title) if block.title else "",
        Markup("").join(head),
        Markup("\n").join(rows),
    )

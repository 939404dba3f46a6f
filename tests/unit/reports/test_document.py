"""One document, printed to a terminal and written as Markdown and as HTML."""

import pytest
from markupsafe import Markup
from rich.console import Console

from edgeflare.document import (
    Block,
    Cell,
    Charts,
    Column,
    Example,
    Examples,
    Figures,
    Fold,
    Heading,
    Item,
    KeyFigure,
    Listing,
    Matrix,
    Table,
    Text,
)
from edgeflare.reports.document import print_document, to_html, to_markdown

HOSTILE = "[bold]<b>|`x`\x1b[31m\n"
COLUMNS = (
    Column("name", 0, lambda row: row[0], text=True),
    Column("needed little", 1, lambda row: row[1]),
    Column("needed more", 2, lambda row: row[2]),
    Column("never known", 0, lambda row: "", optional=True),
)
DOCUMENT: list[Block] = [
    Heading("Figures"),
    Figures((KeyFigure("rate", "50 %", "1 of 2"),)),
    Table(COLUMNS, [(HOSTILE, "12,345", "67,890")]),
    Listing((Item("a limit", "bad", "crossed"),)),
    Text(HOSTILE),
    Table(COLUMNS, []),
]


@pytest.mark.parametrize(("width", "kept"), [(80, 3), (40, 2), (20, 1)])
def test_a_narrow_terminal_drops_what_is_least_important(
    width: int, kept: int, capsys: pytest.CaptureFixture[str]
) -> None:
    print_document(DOCUMENT, Console(width=width))
    out = capsys.readouterr().out
    assert [name in out for name in ("name", "more", "little")] == [n < kept for n in range(3)]
    assert "never known" not in out
    assert "\x1b" not in out


def test_markdown_and_html_have_every_known_column_and_no_markup_of_a_text() -> None:
    markdown, html = to_markdown(DOCUMENT), to_html(DOCUMENT)
    for text in (markdown, html):
        assert "(1 of 2)" in text
        assert all(name in text for name in ("little", "more", "67,890"))
        assert "never known" not in text
        assert "\x1b" not in text
    assert r"\[bold\]\<b\>\|\`x\`" in markdown
    assert "**crossed** a limit" in markdown
    assert "&lt;b&gt;" in html
    assert "<b>" not in html
    assert html.count("<table") == markdown.count("needed more") == 1


def test_what_only_a_page_can_show_has_blocks_in_its_place_elsewhere(
    capsys: pytest.CaptureFixture[str],
) -> None:
    asked: list[str] = []

    def examples() -> list[Example]:
        asked.append("examples")
        return [Example("4 -> 9", "darker", picture=b"PNG", alternative="seed <1>")]

    blocks = [
        Matrix(
            ("original", "9"), [("4", Cell("12", 5, "4-9", "12 triggers"))], text=(Text("12 of 4"),)
        ),
        Examples(examples, text=(Text("darker"),)),
        Charts(lambda: [("by severity", Markup("<svg></svg>"))], lines=("all",)),
        Fold("more", (Text("folded"),)),
        Text("how to read it", "note"),
    ]
    print_document(blocks)
    assert capsys.readouterr().out.split("\n") == ["12 of 4", "darker", ""]
    assert to_markdown(blocks) == "12 of 4\n\ndarker"
    assert asked == []
    page = to_html(blocks)
    assert '<a href="#pair=4-9" data-pair="4-9" aria-label="12 triggers">12</a>' in page
    assert 'alt="seed &lt;1&gt;"' in page
    assert "<figcaption>by severity</figcaption><svg></svg>" in page
    assert "<details><summary>more</summary>" in page
    assert '<p class="muted small">how to read it</p>' in page

"""What a terminal would obey, in names of files, devices and operators or in arguments, is shown."""

import io
import re
from pathlib import Path

import pytest
from command import ROOT, edgeflare
from rich.table import Table
from rich.text import Text
from shown_numbers import numbers

from edgeflare._internal.text import above_text, names_text, visible_text
from edgeflare.cli import terminal
from edgeflare.cli.display.tables import TerminalConsole, json_text

HOSTILE = "a\x1b[31m\x1b]0;title\x07b\r\x7f\x9b2J\u202ec\udcffd"
SHOWN = r"a\x1b[31m\x1b]0;title\x07b\x0d\x7f\x9b2J\u202ec\xffd"


def test_lines_and_letters_stay() -> None:
    text = "größer\n\t日本 \u200d✓"
    assert visible_text(text) == text


def test_controls_are_spelled() -> None:
    assert visible_text(HOSTILE) == SHOWN
    assert visible_text("\ud800\u2028") == r"\ud800\u2028"


def test_every_way_to_print_spells_them(capsys: pytest.CaptureFixture[str]) -> None:
    terminal.echo(HOSTILE)
    terminal.echo_err(HOSTILE, end="")
    assert tuple(capsys.readouterr()) == (f"{SHOWN}\n", SHOWN)


def test_a_table_has_rich_s_own_styles_alone() -> None:
    stream = io.StringIO()
    console = TerminalConsole(file=stream, force_terminal=True, color_system="standard", width=200)
    table = Table(title=Text(HOSTILE))
    table.add_column(Text(HOSTILE))
    table.add_row(Text(HOSTILE, style="red"))
    console.print(table)
    printed = stream.getvalue()
    assert "\x1b[31m" in printed, "rich's red"
    assert "\x07" not in printed
    assert printed.count(r"\x1b]0;tit") == 3
    assert re.findall(r"\x1b(?!\[[\d;]*m)", printed) == []


def test_json_stays_json() -> None:
    assert json_text({"name": "\x7f\x1b"}) == r'{"name": "\u007f\u001b"}'


@pytest.mark.parametrize(
    "arguments",
    [("show", HOSTILE), (HOSTILE,), ("show", f"--{HOSTILE}"), ("devices", HOSTILE)],
    ids=["folder", "command", "flag", "subcommand"],
)
def test_arguments_are_spelled(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    ran = edgeflare(*arguments, home=tmp_path)
    assert ran.code == 2
    assert r"\x1b[31m" in ran.both
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e]", ran.both)


def test_nothing_else_in_the_command_line_prints() -> None:
    """Ruff forbids `print`, but where it is allowed by name; consoles are made in many places."""
    folder = ROOT / "host" / "edgeflare" / "cli"
    sources = {path: path.read_text(encoding="utf-8") for path in folder.rglob("*.py")}
    assert [path.name for path, text in sources.items() if "T201" in text] == ["terminal.py"]
    console = re.compile(r"\bConsole\(")
    assert [path for path, text in sources.items() if console.search(text)] == []
    assert not any(re.search(r"sys\.std(out|err)\.write\(", text) for text in sources.values())


@pytest.mark.parametrize(
    "arguments",
    [
        ("show", ""),
        ("run", "--seeds=", "--original", "a.onnx"),
        ("report", "campaign", "--out", ""),
    ],
)
def test_an_empty_path_is_not_this_folder(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    ran = edgeflare(*arguments, home=tmp_path)
    assert ran.code == 2
    assert "empty text" in " ".join(ran.err.split())


def test_an_empty_path_in_a_file_is_not_its_folder(tmp_path: Path) -> None:
    (tmp_path / "campaign.toml").write_text("[seeds]\npath = ''\n")
    ran = edgeflare("run", "campaign.toml", home=tmp_path)
    assert ran.code == 2
    assert "`seeds.path`" in ran.sentence


def test_a_list_whose_length_a_file_decides_is_cut() -> None:
    assert numbers(names_text([f"o{n}" for n in range(100_000)], 2)) == "0 1 99998"
    assert names_text({"a": 1, "b": 2}) == "a, b"


def test_a_number_above_its_limit_is_seen_to_be() -> None:
    shown = [above_text(value, 100) for value in (100.000001, 100.3, 164, 4294.8)]
    assert shown == ["100.1", "100.3", "164", "4,295"]

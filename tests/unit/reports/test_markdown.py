"""The Markdown report: its size, what it leaves out, and its pictures."""

import re
import sqlite3
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from urllib.parse import unquote

import cv2
import numpy as np
import pytest
from stores import compared_campaign, store_of

from edgeflare.analysis import summarize
from edgeflare.analysis.agreement import Agreement
from edgeflare.document import (
    Block,
    CommandLine,
    Heading,
    Item,
    Listing,
    Picture,
    Text,
    section_blocks,
    table_of,
)
from edgeflare.reports import report_text
from edgeflare.reports.document import to_markdown
from edgeflare.reports.media import small_panel
from edgeflare.reports.render.markdown import MOST_BYTES, fitted_markdown
from edgeflare.reports.sections.campaign import report_sections
from edgeflare.reports.text_reports import write_text_report
from edgeflare.store import Store

STEP_SUMMARY = 1024 * 1024
WIDE = "\U0001f984"  # four bytes
REST = "`edgeflare report c --format json`"


def size(text: str) -> int:
    return len(text.encode())


def multiplied(folder: Path, count: int) -> Path:
    """A campaign with so many triggers: one outcome, copied in the database."""
    names = [f"photos/{WIDE * 50}/{n:05d}.png" for n in range(count)]
    first = {"seed": names[0], "trigger": 1, "l2": 1.0, "linf": 1}
    first |= {"original_label": 4, "deployed_label": 9}
    with store_of(folder, [first], seeds=names, finished=True) as store:
        store.complete_seeds([], [])
    with closing(sqlite3.connect(folder / "campaign.sqlite")) as database, database:
        names = [row[1] for row in database.execute("pragma table_info(outcomes)")]
        copied = ["n" if name in ("position", "seed") else name for name in names]
        # positions start where the seeds' do
        (start,) = database.execute("select min(position) from seeds").fetchone()
        (place,) = database.execute("select min(position) from outcomes").fetchone()
        copied[names.index("position")] = f"n + {place - start}"
        database.execute(
            f"with recursive numbers(n) as (select {start + 1} union all "
            f"select n + 1 from numbers where n < {start + count - 1}) "
            f"insert into outcomes select {', '.join(copied)} from outcomes, numbers"
        )
    return folder


def test_of_thousands_of_triggers_the_first_are_shown_and_the_others_counted(
    tmp_path: Path,
) -> None:
    folder = multiplied(tmp_path / "c", 2100)
    text = report_text(folder, "markdown")
    assert size(text) < 20_000
    assert "2,100 seeds (100" in text
    assert text.count(".png | 4 -\\> 9 |") == 10
    (rest,) = (line for line in text.splitlines() if line.startswith("Left out here: "))
    assert "triggers; `edgeflare report`" in rest


def test_a_campaign_with_megabytes_of_notices_is_cut_where_each_list_is(tmp_path: Path) -> None:
    with Store.create(tmp_path / "c", {}) as store:
        store.complete_seeds([], [f"{number}: {WIDE * 1000}" for number in range(2000)])
        text = report_text(store, "markdown")
        whole = report_text(store, "json")
    assert size(whole) > 8 * STEP_SUMMARY
    assert size(text) <= MOST_BYTES < STEP_SUMMARY
    assert "EdgeFlare: c" in text
    shown = re.findall(rf"(?m)^- (\d+): {WIDE}", text)
    assert shown == [str(number) for number in range(len(shown))]
    assert len(shown) == 100
    left_out = f"Left out, to stay below 1 MB: 1,900 more; all of them: `edgeflare report {tmp_path}/c --format json`"
    assert text.rstrip().endswith(left_out)


def test_a_large_fleet_keeps_every_section(tmp_path: Path) -> None:
    with compared_campaign(tmp_path / "c", {"board": "pi"}, {"board": "jetson"}) as store:
        summary = summarize(store)
        (pair,) = summary.agreements

        def between(first: int, second: int) -> Agreement:
            names = (f"{WIDE * 30} {first}", f"{WIDE * 30} {second}")
            return replace(pair, first=names[0], second=names[1])

        pairs = tuple(between(one, other) for one in range(120) for other in range(one))
        fleet = replace(summary, agreements=pairs)
        blocks = [*section_blocks(report_sections(fleet, store, str))]
    assert size(to_markdown(blocks)) > 2 * STEP_SUMMARY
    text = fitted_markdown(blocks, REST, MOST_BYTES)
    assert MOST_BYTES / 20 < size(text) <= MOST_BYTES
    headings = [block.text for block in blocks if isinstance(block, Heading)]
    assert re.findall("(?m)^### (.*)", text) == headings
    counts = [
        int(one.replace(",", "")) for one in re.findall(r"1 MB: ([\d,]+) more; all of them", text)
    ]
    rows = 2 * len(pairs)
    assert counts[0] == rows - 1000
    assert text.count(REST) == len(counts)


LONG = WIDE * 3_000_000
BLOCKS: dict[str, Sequence[Block]] = {
    "a paragraph": [Heading("a"), Text(LONG), Text("the end")],
    "an item": [Heading("a"), Listing((Item(LONG), Item("the end"))), Text("the end")],
    "a heading": [Heading(LONG), Text("the end")],
    "a picture": [Heading("a"), Picture("x.png", LONG), Text("the end")],
    "a cell": [Heading("a"), table_of(["a"], [[LONG]] * 3), Text("the end")],
    "signs that are escaped": [Heading("a"), Text("*" * 999_999), Text("the end")],
}


@pytest.mark.parametrize("which", BLOCKS)
def test_a_long_text_is_shortened_and_the_rest_stays(which: str) -> None:
    text = fitted_markdown(BLOCKS[which], REST, MOST_BYTES)
    assert size(text) <= MOST_BYTES
    assert "..." in text
    assert text.endswith("the end\n")


@pytest.mark.parametrize(
    "blocks",
    [
        lambda: [Heading("a"), *(Text(f"{number} {WIDE * 90}") for number in range(20_000))],
        lambda: [Heading("a"), Text("b"), CommandLine("x" * 2_000_000), Text("the end")],
        lambda: [Heading("a"), table_of(["a"] * 4000, [[WIDE * 90] * 4000] * 3)],
    ],
    ids=["many blocks", "a command", "columns"],
)
def test_what_cannot_be_shortened_is_left_out_from_the_end(
    blocks: Callable[[], Sequence[Block]],
) -> None:
    text = fitted_markdown(blocks(), REST, MOST_BYTES)
    assert size(text) <= MOST_BYTES
    assert text.startswith("### a\n")
    assert "below 1 MB" in text


def test_what_fits_is_not_touched() -> None:
    blocks = [Heading("a"), Listing(tuple(Item(str(number)) for number in range(2000)))]
    assert fitted_markdown(blocks, REST, MOST_BYTES) == f"{to_markdown(blocks)}\n"


# Pictures


def addresses(text: str) -> list[str]:
    return re.findall(r"(?m)^!\[.*\]\(([^()]*)\)$", text)


def test_a_file_has_pictures_beside_it_and_a_text_has_none(every_status, tmp_path: Path) -> None:
    out = tmp_path / "re (port) ü.md"
    with every_status() as store:
        written = write_text_report(store, "markdown", out)
        assert addresses(report_text(store, "markdown")) == []
        without = write_text_report(store, "markdown", tmp_path / "plain.md", pictures=False)
    text = out.read_text(encoding="utf-8")
    shown = addresses(text)
    assert written.pictures == len(shown) == 3
    files = [out.parent / unquote(one) for one in shown]
    assert [file.parent.name for file in files] == ["re (port) ü-pictures"] * 3
    assert [cv2.imread(str(file)).shape for file in files] == [(256, 784, 3)] * 2 + [(256, 256, 3)]
    assert "0 -\\> 1](re%20%28port%29" in text
    assert without.pictures == 0
    assert not (tmp_path / "plain-pictures").exists()


def test_pictures_of_an_earlier_report_go_and_other_files_stay(
    every_status, tmp_path: Path
) -> None:
    folder = tmp_path / "r-pictures"
    folder.mkdir()
    for name in ("00009-gone-panel.png", "mine.png", f"{'0' * 24}.png"):
        (folder / name).write_bytes(b"x")
    with every_status() as store:
        written = write_text_report(store, "markdown", tmp_path / "r.md")
        write_text_report(store, "markdown", tmp_path / "r.md")
    names = {path.name for path in folder.iterdir()}
    assert names & {"00009-gone-panel.png", "mine.png", f"{'0' * 24}.png"} == {
        "mine.png",
        f"{'0' * 24}.png",
    }
    assert len(names) == 2 + written.pictures


def test_of_audio_the_pictures_are_spectrograms(ran, tmp_path: Path) -> None:
    written = write_text_report(ran("audio"), "markdown", tmp_path / "r.md")
    shown = addresses((tmp_path / "r.md").read_text(encoding="utf-8"))
    assert written.pictures == len(shown) > 0
    for one in shown:
        assert cv2.imread(str(tmp_path / unquote(one))).shape[1] > 640


@pytest.mark.parametrize(
    ("shape", "expected"),
    [
        ((4, 4, 1), (256, 784)),
        ((600, 300, 3), (256, 400)),
        ((300, 1, 1), (256, 19)),
        ((48, 320, 3), (130, 256)),
    ],
    ids=["small", "large", "narrow", "a line of text"],
)
def test_a_panel_is_of_moderate_size(
    shape: tuple[int, int, int], expected: tuple[int, int]
) -> None:
    seed = np.zeros(shape, np.uint8)
    trigger = seed.copy()
    trigger[0, 0] = 9
    panel = cv2.imdecode(np.frombuffer(small_panel(seed, trigger, None), np.uint8), 1)
    assert panel.shape[:2] == expected
    alone = cv2.imdecode(np.frombuffer(small_panel(seed, trigger[1:], None), np.uint8), 1)
    assert alone.size < panel.size

"""A campaign or a replay as Markdown: short, of bounded size, with pictures by reference."""

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice

from edgeflare._internal.text import clean_text
from edgeflare.analysis.findings import Finding, results
from edgeflare.document import (
    Block,
    Column,
    Figures,
    Heading,
    Listing,
    Picture,
    Table,
    Text,
    section_blocks,
)
from edgeflare.reports.campaign import MOST_SHOWN, limits_list, notices_list
from edgeflare.reports.export import file_stem
from edgeflare.reports.render.options import PictureFolder, RenderOptions
from edgeflare.reports.report import Report, outcome_words
from edgeflare.store import campaign_text
from edgeflare.store.samples import SampleReader
from edgeflare.types import TRIGGERS

MOST_BYTES = 1_000_000
"""The largest size of the text in UTF-8. A step summary of GitHub takes 1024 * 1024 bytes, and the
step may write more into it."""

_LEVELS = ((1000, 4000), (300, 1000), (100, 300), (30, 200), (10, 100))
"""Largest numbers of rows of a table or list, and of characters of a text, the first that fits."""


def markdown(report: Report, options: RenderOptions) -> Iterator[str]:
    """Yield verdict, limits and sections, in at most `MOST_BYTES` bytes.

    The first triggers, of a replay the first inputs that deviate, are added to the pictures of the
    `options` and shown from there.
    """
    outcome = "Failed. " if report.crossed else "Undecided. " if report.undecided else "Passed. "
    passed = outcome if report.has_limits else ""
    blocks = [
        Heading(f"EdgeFlare: {report.store.folder.resolve().name}", 2),
        Text(passed + report.text, "strong"),
        *map(Text, filter(None, [*report.guidance, report.progress])),
        *limits_list(report.checks),
    ]
    for section in report.sections:
        blocks += section_blocks([section])
        if section.id in ("triggers", "replay") and options.pictures is not None:
            blocks += _pictures(report, _shown(report), options.pictures)
    where = shlex.join(["edgeflare", "report", campaign_text(report.store.folder.resolve())])
    yield fitted_markdown(blocks, f"`{where} --format json`", MOST_BYTES)


def _shown(report: Report) -> list[Finding]:
    """Return the first triggers; of a replay the first inputs that deviate, new ones or else known ones."""
    if report.replay is None:
        triggers = (one for one in report.findings() if one.outcome.status in TRIGGERS)
        return list(islice(triggers, MOST_SHOWN))
    shown = (report.replay.new or report.replay.still)[:MOST_SHOWN]
    wanted = {one.place for one in shown}
    inputs = (result for result in results(report.store) if result.outcome.place in wanted)
    return list(islice(inputs, len(wanted)))


def _pictures(report: Report, shown: Sequence[Finding], pictures: PictureFolder) -> Sequence[Block]:
    """Return pictures of seed, trigger and difference side by side, each in one file."""
    from edgeflare.reports.media import finding_panel

    blocks: list[Block] = []
    reader = SampleReader(report.store.sample_to_show)
    for one in shown:
        pair = reader.pair(one.seed.sample, one.outcome.trigger or one.seed.sample)
        if pair is None:
            continue
        made = finding_panel(
            *pair, (one.outcome.original, one.outcome.deployed), report.store.sample_rate
        )
        address = pictures.add(file_stem(one.seed, one.outcome.replica), made)
        text = f"{one.outcome.seed_text}: {outcome_words(report, one.outcome)}"
        blocks.append(Picture(address, text))
    if not blocks:
        return notices_list(reader.notices)
    title = "Seed, trigger, and their difference"
    if report.store.kind.is_drawn:
        title = "Seed, and trigger with the original's and with the deployed model's boxes"
    if report.replay:
        title = "Inputs that deviate"
    return [Heading(title), *notices_list(reader.notices), *blocks]


# Size


def fitted_markdown(blocks: Sequence[Block], rest: str, most_bytes: int) -> str:
    """Return the document in at most so many bytes of UTF-8, with a line break at its end.

    Where it is larger, tables and lists end after some rows, each with a sentence that counts what
    is left out, and long texts are shortened; last of all, blocks at the end are left out. `rest`
    says where all of it is, with code between backticks.
    """
    from edgeflare.reports.document import to_markdown

    text, shorter = f"{to_markdown(blocks)}\n", list(blocks)
    for rows, length in _LEVELS:
        if _size(text) <= most_bytes:
            return text
        shorter = [one for block in blocks for one in _shortened(block, rows, length, rest)]
        text = f"{to_markdown(shorter)}\n"
    more = Text(f"The rest is left out, to stay below 1 MB; all of it: {rest}", has_code=True)
    while _size(text) > most_bytes and len(shorter) > 1:
        shorter = shorter[: len(shorter) // 2]
        text = f"{to_markdown([*shorter, more])}\n"
    return text


def _size(text: str) -> int:
    return len(text.encode(errors="replace"))


def _shortened(block: Block, rows: int, length: int, rest: str) -> list[Block]:
    """Return a block with so many rows of texts of so many characters, and what it lacks."""

    def short(text: str) -> str:
        return clean_text(text, length)

    count = 0
    match block:
        case Table():
            count = len(block.rows)
            block = replace(
                block,
                columns=tuple(_shorter_column(column, length) for column in block.columns),
                rows=block.rows[:rows],
            )
        case Listing(items):
            count = len(items)
            block = Listing(tuple(item._replace(text=short(item.text)) for item in items[:rows]))
        case Figures(figures):
            count = len(figures)
            block = Figures(
                tuple(
                    figure._replace(value=short(figure.value), about=short(figure.about))
                    for figure in figures[:rows]
                )
            )
        case Heading(text) | Text(text):
            block = replace(block, text=short(text))
        case Picture(_, text):
            block = replace(block, text=short(text))
    if count <= rows:
        return [block]
    words = f"Left out, to stay below 1 MB: {count - rows:,} more; all of them: {rest}"
    return [block, Text(words, has_code=True)]


def _shorter_column(column: Column, length: int) -> Column:
    return column._replace(figure=lambda row: clean_text(column.figure(row), length))

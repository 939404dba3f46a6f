"""A campaign or a replay as Markdown: short, of bounded size, with pictures by reference."""

import re
import shlex
from collections.abc import Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from urllib.parse import quote

from edgeflare._internal.files import write_whole
from edgeflare._internal.text import clean_text
from edgeflare.analysis.findings import Finding, findings, results
from edgeflare.analysis.replay import ReplaySummary
from edgeflare.document import (
    Block,
    Column,
    CommandLine,
    Figures,
    Heading,
    Listing,
    Picture,
    Table,
    Text,
)
from edgeflare.reports.campaign import (
    MOST_SHOWN,
    STEPS_SHOWN,
    TriggerLine,
    answers_heading,
    campaign_blocks,
    known_cause,
    limits_list,
    notices_list,
    triggers_table,
)
from edgeflare.reports.document import to_markdown
from edgeflare.reports.export import file_stem
from edgeflare.reports.media import finding_panel
from edgeflare.reports.replay import replay_inputs
from edgeflare.reports.report_data import ReportData, outcome_words
from edgeflare.store import campaign_text
from edgeflare.store.samples import SampleReader
from edgeflare.strategies.operators import describe_last_mutations
from edgeflare.types import TRIGGERS

MOST_BYTES = 1_000_000
"""The largest size of the text in UTF-8. A step summary of GitHub takes 1024 * 1024 bytes, and the
step may write more into it."""

_LEVELS = ((1000, 4000), (300, 1000), (100, 300), (30, 200), (10, 100))
"""Largest numbers of rows of a table or list, and of characters of a text, the first that fits."""

_PICTURE_NAME = re.compile(r"[0-9]{5}-.*-panel\.png")


class PictureFolder:
    """The PNG files of a Markdown file: a folder beside it, with its name."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._files: dict[str, bytes] = {}

    @classmethod
    def of(cls, report: Path) -> "PictureFolder":
        """Return that of a report's file: ``report-pictures`` of ``report.md``."""
        return cls(report.with_name(f"{report.stem}-pictures"))

    def add(self, stem: str, data: bytes) -> str:
        """Add a picture; return its relative address as part of a URL. `write` writes it."""
        name = f"{stem}-panel.png"
        self._files[name] = data
        return quote(f"{self._folder.name}/{name}", errors="replace")

    def write(self) -> None:
        """Write the pictures, and remove those of an earlier report; other files stay.

        Raises OSError.
        """
        if self._files:
            self._folder.mkdir(parents=True, exist_ok=True)
        for name, data in self._files.items():
            write_whole(self._folder / name, data)
        if self._folder.is_dir():
            for path in self._folder.iterdir():
                if _PICTURE_NAME.fullmatch(path.name) and path.name not in self._files:
                    path.unlink()

    def __len__(self) -> int:
        return len(self._files)


def markdown_text(data: ReportData, pictures: PictureFolder | None = None) -> str:
    """Return verdict, limits, key figures, pairs, devices, triggers and notices.

    It has at most `MOST_BYTES` bytes. The first triggers, of a replay the first inputs that
    deviate, are added to the `pictures` and shown from there.
    """
    outcome = "Failed. " if data.crossed else "Undecided. " if data.undecided else "Passed. "
    passed = outcome if data.has_limits else ""
    replay = data.replay
    blocks = [
        Heading(f"EdgeFlare: {data.store.folder.resolve().name}", 2),
        Text(passed + data.verdict, "strong"),
        *map(Text, filter(None, [*data.guidance, data.progress])),
        *limits_list(data.limits),
    ]
    if replay is None:
        blocks += campaign_blocks(data.summary, _first_triggers(data, pictures), data.name)
    else:
        blocks += replay_inputs(replay, data.name)
        if pictures is not None:
            blocks += _pictures(data, _deviating(data, replay), pictures)
        blocks += notices_list(data.summary.notices)
    where = shlex.join(["edgeflare", "report", campaign_text(data.store.folder.resolve())])
    return fitted_markdown(blocks, f"`{where} --format json`", MOST_BYTES)


def _first_triggers(data: ReportData, pictures: PictureFolder | None) -> Sequence[Block]:
    triggers = (finding for finding in findings(data.store) if finding.outcome.status in TRIGGERS)
    first = list(islice(triggers, MOST_SHOWN))
    if not first:
        return []
    total = sum(data.summary.by_status[status.value] for status in TRIGGERS)
    lines = [_trigger_line(data, one) for one in first]
    shown = [] if pictures is None else _pictures(data, first, pictures)
    return [
        *triggers_table(lines, total, answers_heading(data.summary)),
        Text("To see one again:"),
        CommandLine(first[0].command),
        *shown,
    ]


def _trigger_line(data: ReportData, finding: Finding) -> TriggerLine:
    one = finding.outcome
    return TriggerLine(
        seed=_seed_words(finding),
        answers=outcome_words(data, one),
        cause=known_cause(finding.cause),
        steps=describe_last_mutations(one.mutations, STEPS_SHOWN),
        l2=one.l2,
        snr_db=one.snr_db,
        smaller_margin=one.severity,
    )


def _seed_words(finding: Finding) -> str:
    one = finding.outcome
    return f"{one.seed_id} on {one.replica}" if one.replica else one.seed_id


def _deviating(data: ReportData, replay: ReplaySummary) -> list[Finding]:
    """Return the first inputs of a replay that deviate: new ones, or else known ones."""
    wanted = {(one.id, one.replica) for one in (replay.new or replay.still)[:MOST_SHOWN]}
    inputs = (
        result
        for result in results(data.store)
        if (result.seed.id, result.outcome.replica) in wanted
    )
    return list(islice(inputs, len(wanted)))


def _pictures(
    data: ReportData, shown: Sequence[Finding], pictures: PictureFolder
) -> Sequence[Block]:
    """Return pictures of seed, trigger and difference side by side, each in one file."""
    blocks: list[Block] = []
    reader = SampleReader(data.store.sample_to_show)
    for one in shown:
        pair = reader.pair(one.seed.sample, one.outcome.trigger or one.seed.sample)
        if pair is None:
            continue
        made = finding_panel(
            *pair, (one.outcome.original, one.outcome.deployed), data.store.sample_rate
        )
        address = pictures.add(file_stem(one.seed, one.outcome.replica), made)
        text = f"{_seed_words(one)}: {outcome_words(data, one.outcome)}"
        blocks.append(Picture(address, text))
    if not blocks:
        return notices_list(reader.notices)
    title = "Seed, trigger, and their difference"
    if data.store.kind.is_drawn:
        title = "Seed, and trigger with the original's and with the deployed model's boxes"
    if data.replay:
        title = "Inputs that deviate"
    return [Heading(title), *notices_list(reader.notices), *blocks]


# Size


def fitted_markdown(blocks: Sequence[Block], rest: str, most_bytes: int) -> str:
    """Return the document in at most so many bytes of UTF-8, with a line break at its end.

    Where it is larger, tables and lists end after some rows, each with a sentence that counts what
    is left out, and long texts are shortened; last of all, blocks at the end are left out. `rest`
    says where all of it is, with code between backticks.
    """
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

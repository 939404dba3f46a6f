"""The tables of everyday faults, each stated once for the terminal and for ``report.md``."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from edgeflare._internal.text import NOTHING, percent_text
from edgeflare.document import Block, Column, Heading, Item, Listing, Table, Text
from edgeflare.reports.document import to_markdown
from edgeflare_bench.everyday import figures
from edgeflare_bench.everyday.figures import FaultRow
from edgeflare_bench.everyday.suite import EverydayBench, FirstAnswer
from edgeflare_bench.reports.writing import json_bytes, write_files
from edgeflare_bench.words import everyday as words


def _share(part: int, count: int) -> str:
    return f"{part} of {count} ({percent_text(part / count, 0)})" if count else NOTHING


def _interval(row: FaultRow) -> str:
    if row.low is None or row.high is None:
        return NOTHING
    return f"{percent_text(row.low, 0)} to {percent_text(row.high, 0)}"


_FAULT_COLUMNS = (
    Column("by", 1, lambda row: row.by, text=True),
    Column("faults", 0, lambda row: row.value, text=True),
    Column("first right", 0, lambda row: _share(row.right, row.faults)),
    Column("interval", 3, _interval),
    Column("kind right", 2, lambda row: _share(row.kind_right, row.faults)),
    Column("proved", 0, lambda row: _share(row.proved, row.faults)),
    Column("right of proved", 0, lambda row: _share(row.proved_right, row.proved)),
    Column("next step holds", 0, lambda row: _share(row.mended, row.tried)),
)
_HEALTHY_COLUMNS = (
    Column("tool chain", 0, lambda row: row.tool_chain, text=True),
    Column("asked", 0, lambda row: "a device" if row.is_device else "files alone", text=True),
    Column("pairs", 0, lambda row: str(row.pairs)),
    Column("false alarms", 0, lambda row: str(row.alarms)),
    Column("at most", 0, lambda row: percent_text(row.high)),
)


def everyday_document(bench: EverydayBench) -> list[Block]:
    """Return the report of a bench of everyday faults."""
    faults = figures.faults_of(bench)
    healthy = [answer for answer in bench.results if not answer.fault]
    spent = figures.costs(bench)
    return [
        Heading("Everyday faults", 1),
        Text(words.about(bench)),
        *([Text(words.costs(spent))] if spent is not None else []),
        Heading("Faults", 2),
        Text(words.FAULTS),
        Table(_FAULT_COLUMNS, list(figures.fault_rows(bench))),
        Heading("Healthy pairs", 2),
        Text(words.HEALTHY),
        Table(_HEALTHY_COLUMNS, list(figures.healthy_rows(bench))),
        *_listed(words.ALARMS, _wrong(healthy), words.expected),
        *_listed(words.WRONG, _wrong(faults), words.expected),
        *_listed(
            words.NOT_SEEN,
            [answer for answer in bench.results if answer.without],
            lambda answer: answer.without,
        ),
    ]


def _wrong(answers: Sequence[FirstAnswer]) -> list[FirstAnswer]:
    return [answer for answer in answers if not answer.is_right]


def _listed(
    title: str, answers: Sequence[FirstAnswer], why: Callable[[FirstAnswer], str]
) -> Iterator[Block]:
    if answers:
        yield Heading(f"{title} ({len(answers)})", 2)
        yield Listing(
            tuple(Item(f"{answer.name}, {answer.tool_chain}: {why(answer)}") for answer in answers)
        )


def everyday_report(bench: EverydayBench) -> dict[str, Any]:
    """Return the report as a JSON object: settings, rows and every pair."""
    return {
        "suite": bench.suite.model_dump(mode="json"),
        "faults": [row._asdict() for row in figures.fault_rows(bench)],
        "healthy": [row._asdict() for row in figures.healthy_rows(bench)],
        "pairs": [answer.to_json() for answer in bench.results],
    }


def write_everyday_report(bench: EverydayBench) -> Path:
    """Write ``report.md`` and ``report.json``; return the first. Raises StoreError."""
    text = f"{to_markdown(everyday_document(bench))}\n"
    values = json_bytes(everyday_report(bench))
    return write_files(bench.folder, {"report.md": text.encode(), "report.json": values})[0]

"""The tables of everyday faults, each stated once for the terminal and for ``report.md``."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from edgeflare._internal.text import NOTHING, percent_text
from edgeflare.document import Block, Column, Heading, Item, Listing, Table, Text
from edgeflare.reports.document import to_markdown
from edgeflare_bench.everyday import figures
from edgeflare_bench.everyday.figures import FaultRow
from edgeflare_bench.everyday.suite import EverydayBench, Told
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
    healthy = [one for one in bench.told if not one.fault]
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
        *_listed(words.ALARMS, [one for one in healthy if not one.is_right], words.expected),
        *_listed(words.WRONG, [one for one in faults if not one.is_right], words.expected),
        *_listed(
            words.NOT_SEEN, [one for one in bench.told if one.without], lambda one: one.without
        ),
    ]


def _listed(title: str, told: Sequence[Told], why: Callable[[Told], str]) -> Iterator[Block]:
    if told:
        yield Heading(f"{title} ({len(told)})", 2)
        yield Listing(tuple(Item(f"{one.name}, {one.tool_chain}: {why(one)}") for one in told))


def everyday_report(bench: EverydayBench) -> dict[str, Any]:
    """Return the report as a JSON object: settings, rows and every pair."""
    return {
        "suite": bench.suite.model_dump(mode="json"),
        "faults": [row._asdict() for row in figures.fault_rows(bench)],
        "healthy": [row._asdict() for row in figures.healthy_rows(bench)],
        "pairs": [one.to_json() for one in bench.told],
    }


def write_everyday_report(bench: EverydayBench) -> Path:
    """Write ``report.md`` and ``report.json``; return the first. Raises StoreError."""
    text = f"{to_markdown(everyday_document(bench))}\n"
    values = json_bytes(everyday_report(bench))
    return write_files(bench.folder, {"report.md": text.encode(), "report.json": values})[0]

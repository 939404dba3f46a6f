"""Results on stdout: a document for people, or one JSON object for machines."""

import json
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from rich.console import Console

from edgeflare._internal.text import counted
from edgeflare.reports import Block, Text, print_document

if TYPE_CHECKING:
    from edgeflare import Summary
    from edgeflare.bench import BenchReport
    from edgeflare.reports import ExportReport


def print_json(value: Any) -> None:
    """Print one JSON object."""
    print(json.dumps(value, indent=2))  # noqa: T201


def print_result(
    as_json: bool, values: Callable[[], Any], document: Callable[[], Iterable[Block]]
) -> None:
    """Print a result: its JSON `values` or its document."""
    if as_json:
        print_json(values())
    else:
        print_document(document())


def print_summary(summary: "Summary", as_json: bool, *, wide: bool = False) -> None:
    """Print what a campaign found; `wide`: with every step of the triggers shown."""
    from edgeflare.reports import summary_document

    width = None if wide else Console().width
    print_result(as_json, summary.to_json, lambda: summary_document(summary, width=width))


def print_bench(report: "BenchReport", as_json: bool, *, searches: bool = False) -> None:
    """Print what a bench found so far; `searches`: with each of them."""
    from edgeflare.bench import bench_summary

    def values() -> dict[str, Any]:
        every = {"searches": [row.to_json() for row in report.searches]} if searches else {}
        return report.to_json() | every

    print_result(as_json, values, lambda: bench_summary(report, searches=searches))


def print_export(report: "ExportReport", as_json: bool) -> None:
    """Print what an export wrote."""
    counts = ", ".join(f"{count} {status}" for status, count in report.by_status.items())
    found = counted(report.findings, "finding")
    text = f"{found}{f' ({counts})' if counts else ''}, {report.files} files in {report.folder}"
    print_result(as_json, report.to_json, lambda: [Text(text)])

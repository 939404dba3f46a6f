"""Results for people (tables on stdout) and for machines (one JSON object on stdout)."""

import json
from typing import Any

from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from edgeflare.analysis import ExportReport


def print_json(value: Any) -> None:
    """Print one JSON object."""
    print(json.dumps(value, indent=2))  # noqa: T201


def print_export(report: ExportReport, as_json: bool) -> None:
    """Print what an export wrote."""
    if as_json:
        print_json(report.to_json())
        return
    statuses = escape(", ".join(f"{count} {status}" for status, count in report.by_status.items()))
    told = f" ({statuses})" if statuses else ""
    Console().print(
        f"{report.findings} finding{'' if report.findings == 1 else 's'}{told}, {report.files} files in "
        f"{escape(report.folder)}"
    )


def plain_table(*columns: str, header: bool = True) -> Table:
    """Return a table with lines only below its heading; what is too long for a column is folded."""
    table = Table(box=box.SIMPLE, show_header=header, pad_edge=False)
    for column in columns:
        table.add_column(column, overflow="fold")
    return table


def text_parts(original: str | None, deployed: str | None) -> tuple[str | None, str | None]:
    """Return two texts from shortly before the first word that differs; whole where there is only one."""
    from edgeflare.transcripts import excerpts

    if original is None or deployed is None:
        return original, deployed
    return excerpts(original, deployed)


def answer_words(label: int | None, text: str | None) -> str:
    """Return what a model says, escaped for the console: a class, the text it heard in quotes, or a dash."""
    if text is not None:
        return escape(f'"{text}"')
    return "-" if label is None else str(label)

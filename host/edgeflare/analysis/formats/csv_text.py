"""The findings as comma-separated values."""

import csv
import io
from collections.abc import Iterator
from typing import Any

from edgeflare.analysis.findings import findings
from edgeflare.analysis.formats.finding_rows import finding_row
from edgeflare.analysis.formats.material import Material

COLUMNS = (
    *("seed_id", "replica", "status", "cause", "label"),
    *("original_label", "deployed_label", "original_class", "deployed_class"),
    *("original_margin", "deployed_margin", "l2", "linf"),
    *("seed_queries", "search_queries", "confirmation_queries", "host_only_queries"),
    *("round_trips", "seconds", "device_seconds", "confirmed"),
    *("device_name", "device", "environment", "original_model", "deployed_model"),
    *("seed_sample", "trigger_sample", "steps", "detail", "finished_at", "command"),
)
"""The columns, in order; empty where nothing is known. `steps` are the mutations in words."""


def text(material: Material) -> str:
    """Return a line for each finding, below one with the names of the columns."""
    file = io.StringIO(newline="")
    writer = csv.DictWriter(file, COLUMNS, extrasaction="ignore", lineterminator="\n")
    writer.writeheader()
    writer.writerows(_lines(material))
    return file.getvalue()


def _lines(material: Material) -> Iterator[dict[str, Any]]:
    for finding in findings(material.store):
        row = finding_row(material, finding)
        queries = {f"{name}_queries": count for name, count in row.pop("queries").items()}
        line = {**row, **queries, "steps": " + ".join(row["words"])}
        yield {name: _one_break(value) for name, value in line.items()}


def _one_break(value: Any) -> Any:
    """Return a text with line feeds for carriage returns, which the writer would leave without quotes."""
    if not isinstance(value, str):
        return value
    return value.replace("\r\n", "\n").replace("\r", "\n")

"""The findings, or the inputs of a replay, as comma-separated values."""

import csv
import io
from collections.abc import Iterator
from typing import Any

from edgeflare.analysis.findings import csv_cell, findings, results
from edgeflare.analysis.replay import ReplaySummary
from edgeflare.campaign.replay.results import replay_inputs
from edgeflare.reports.text_reports import ReportData, finding_row

COLUMNS = (
    *("seed_id", "replica", "status", "state", "cause", "label"),
    *("original_label", "deployed_label", "original_class", "deployed_class"),
    *("original_text", "deployed_text"),
    *("original_label_before", "deployed_label_before"),
    *("original_text_before", "deployed_text_before"),
    *("original_margin", "deployed_margin", "l2", "linf", "snr_db"),
    *("seed_queries", "search_queries", "confirmation_queries", "host_only_queries"),
    *("round_trips", "seconds", "device_seconds", "confirmed"),
    *("device_name", "device", "environment", "original_model", "deployed_model"),
    *("seed_sample", "trigger_sample", "steps", "detail", "finished_at", "command"),
)
"""The columns, in order; empty where nothing is known. `steps` are the mutations in words.

Classes have labels, what speech recognisers heard are texts. `l2`, `linf` and `snr_db` are as `edgeflare.metrics`
has them. A text that begins like a formula has an apostrophe before it. `state`, the labels and the texts before are those of a replay's input, see `ReplayedInput`.
"""

_OF_INPUT = (
    *("original_label", "deployed_label", "original_label_before", "deployed_label_before"),
    *("original_text", "deployed_text", "original_text_before", "deployed_text_before"),
    *("original_margin", "deployed_margin", "l2"),
)
"""What a replay knows of an input better than the outcome, in which the input is a seed."""


def text(material: ReportData) -> str:
    """Return a line for each finding, of a replay for each input, below one with the names of the columns."""
    file = io.StringIO(newline="")
    writer = csv.DictWriter(file, COLUMNS, extrasaction="ignore", lineterminator="\n")
    writer.writeheader()
    writer.writerows(_lines(material))
    return file.getvalue()


def _lines(material: ReportData) -> Iterator[dict[str, Any]]:
    rows = _found(material) if material.replay is None else _replayed(material, material.replay)
    for row in rows:
        queries = {f"{name}_queries": count for name, count in row.pop("queries").items()}
        line = {**row, **queries, "steps": " + ".join(row["words"])}
        yield {name: csv_cell(value) for name, value in line.items()}


def _found(material: ReportData) -> Iterator[dict[str, Any]]:
    for finding in findings(material.store):
        yield finding_row(material, finding)


def _replayed(material: ReportData, replay: ReplaySummary) -> Iterator[dict[str, Any]]:
    """Every input that was asked about: what its outcome says, and what became of it."""
    inputs = {(one.id, one.replica): one for one in replay.inputs}
    labels = {name: one.label for name, one in replay_inputs(material.store).items()}
    for result in results(material.store):
        one = inputs.get((result.seed.id, result.outcome.replica))
        if one is None:
            continue
        yield {
            **finding_row(material, result),
            "state": one.state,
            "label": labels[one.id],
            **{name: getattr(one, name) for name in _OF_INPUT},
            "original_class": _class(material, one.original_label),
            "deployed_class": _class(material, one.deployed_label),
            "linf": 0 if one.kind == "seed" else None,
            "snr_db": None,
        }


def _class(material: ReportData, label: int | None) -> str | None:
    return None if label is None or material.names is None else material.name(label)

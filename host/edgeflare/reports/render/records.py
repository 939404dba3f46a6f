"""A report for programs: a JSON object, and CSV with a line a finding."""

import io
from collections.abc import Iterator
from csv import DictWriter
from json import dumps
from typing import Any

from pydantic import TypeAdapter

from edgeflare.analysis.findings import (
    Finding,
    csv_cell,
    jsonable,
    outcome_part,
    results,
    seed_part,
)
from edgeflare.analysis.replay import ReplaySummary
from edgeflare.answers.metrics import difference_text
from edgeflare.campaign.replay.results import replay_inputs as stored_inputs
from edgeflare.document import Section
from edgeflare.reports.render.options import RenderOptions
from edgeflare.reports.report import Report
from edgeflare.reports.survey.export import survey_findings


def finding_row(report: Report, finding: Finding) -> dict[str, Any]:
    """Return a finding with its seed, its cause, and the line that sends it again.

    `original_class` and `deployed_class` are the labels' names, None where they have none;
    `disagreement` is how far both answers are apart, from 0 to 1.
    """
    row = outcome_part(report.summary.models, finding.outcome)
    labels = {name: row[f"{name}_label"] for name in ("original", "deployed")}
    named = report.names is not None
    return {
        **row,
        "difference": difference_text(
            finding.outcome.original, finding.outcome.deployed, report.name
        ),
        "disagreement": jsonable(finding.outcome.disagreement),
        **seed_part(finding.seed, row),
        **{
            f"{name}_class": report.name(label) if named and label is not None else None
            for name, label in labels.items()
        },
        "cause": finding.cause,
        "layer": finding.layer,
        "command": finding.command,
    }


# CSV

CSV_COLUMNS = (
    *("seed_id", "replica", "status", "state", "cause", "label"),
    *("original_label", "deployed_label", "original_class", "deployed_class"),
    *("original_text", "deployed_text"),
    *("original_label_before", "deployed_label_before"),
    *("original_text_before", "deployed_text_before"),
    *("original_margin", "deployed_margin", "l2", "linf", "snr_db"),
    *("seed_queries", "search_queries", "confirmation_queries", "host_only_queries"),
    *("round_trips", "seconds", "device_seconds", "confirmed"),
    *("device_name", "device", "environment", "original_model", "deployed_model"),
    *("seed_sample", "trigger_sample", "steps", "detail", "finished_at", "command", "layer"),
    "difference",
)
"""The columns, in order; empty where nothing is known. `steps` are the mutations in words.

Classes have labels, transcripts are texts. `difference` has those of detections, or the
distance of values, in words. `l2`, `linf` and `snr_db` are as `edgeflare.metrics` has
them. A text that begins like a formula has an apostrophe before it. `state`, the labels and the
texts before are those of a replay's input, see `ReplayedInput`.
"""

_OF_INPUT = (
    *("original_label", "deployed_label", "original_label_before", "deployed_label_before"),
    *("original_text", "deployed_text", "original_text_before", "deployed_text_before"),
    *("original_margin", "deployed_margin", "l2"),
)
"""What a replay knows of an input better than the outcome, in which the input is a seed."""


def csv(report: Report, _: RenderOptions) -> Iterator[str]:
    """Yield a line for each finding, or each input of a replay, below the header."""
    file = io.StringIO(newline="")
    writer = DictWriter(file, CSV_COLUMNS, extrasaction="ignore", lineterminator="\n")
    writer.writeheader()
    for line in _csv_lines(report):
        writer.writerow(line)
        yield file.getvalue()
        file.seek(file.truncate(0))
    yield file.getvalue()


def _csv_lines(report: Report) -> Iterator[dict[str, Any]]:
    rows = _found(report) if report.replay is None else _replayed(report, report.replay)
    for row in rows:
        queries = {f"{name}_queries": count for name, count in row.pop("queries").items()}
        line = {**row, **queries, "steps": " + ".join(row["words"])}
        yield {name: csv_cell(value) for name, value in line.items()}


def _found(report: Report) -> Iterator[dict[str, Any]]:
    for finding in report.findings():
        yield finding_row(report, finding)


def _replayed(report: Report, replay: ReplaySummary) -> Iterator[dict[str, Any]]:
    """Yield every input that was sent: its outcome and its state."""
    inputs = {one.place: one for one in replay.inputs}
    labels = {name: one.label for name, one in stored_inputs(report.store).items()}
    for result in results(report.store):
        one = inputs.get(result.outcome.place)
        if one is None:
            continue
        yield {
            **finding_row(report, result),
            "state": one.state,
            "label": labels[one.id],
            **{name: getattr(one, name) for name in _OF_INPUT},
            "original_class": _class(report, one.original_label),
            "deployed_class": _class(report, one.deployed_label),
            "linf": 0 if one.kind == "seed" else None,
            "snr_db": None,
        }


def _class(report: Report, label: int | None) -> str | None:
    return None if label is None or report.names is None else report.name(label)


# JSON


def json(report: Report, _: RenderOptions) -> Iterator[str]:
    """Yield the object, each finding on a line of its own; NaN and infinity are texts."""
    replay = report.replay
    values: dict[str, Any] = {
        **report.summary.to_json(),
        "verdict": report.text,
        "limits": [check.to_json() for check in report.checks],
        "replay": None if replay is None else replay.to_json(),
        "class_names": report.names,
        "sections": [_section(section) for section in report.sections],
    }
    yield "{\n"
    for name, value in values.items():
        yield f"{dumps(name)}: {_dumped(value)},\n"
    yield '"findings": ['
    for number, finding in enumerate(report.findings()):
        yield f"{',' if number else ''}\n{_dumped(finding_row(report, finding))}"
    yield '\n],\n"survey_findings": ['
    for number, row in enumerate(survey_findings(report.store)):
        yield f"{',' if number else ''}\n{_dumped(row)}"
    yield "\n]\n}\n"


def _section(section: Section) -> dict[str, Any]:
    """Return a section's title, its key figures as texts, and its numbers."""
    data = section.data
    return {
        "id": section.id,
        "title": section.title,
        "figures": [
            {"name": figure.name, "value": figure.value, "about": figure.about}
            for figure in section.key_figures
        ],
        "data": None if data is None else TypeAdapter(type(data)).dump_python(data, mode="json"),
    }


def _dumped(value: Any) -> str:
    try:
        return dumps(value, allow_nan=False)
    except ValueError:  # NaN or infinity
        return dumps(jsonable(value), allow_nan=False)

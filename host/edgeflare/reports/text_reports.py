"""A campaign's result as a text that other programs and people read."""

import csv
import io
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias

from edgeflare._internal.files import replacing
from edgeflare.analysis.findings import (
    Finding,
    count_findings,
    csv_cell,
    findings,
    jsonable,
    outcome_part,
    results,
    seed_part,
)
from edgeflare.analysis.limits import LimitCheck
from edgeflare.analysis.replay import ReplaySummary
from edgeflare.answers.metrics import difference_text
from edgeflare.campaign.replay.results import replay_inputs as stored_inputs
from edgeflare.errors import UsageError
from edgeflare.reports.campaign import summary_json
from edgeflare.reports.export import check_report_path, translate_report_errors
from edgeflare.reports.junit import junit_pieces
from edgeflare.reports.markdown import PictureFolder, markdown_text
from edgeflare.reports.report_data import ReportData, report_data
from edgeflare.reports.survey.export import count_survey_findings, survey_findings
from edgeflare.store import Store, open_store

ReportFormat: TypeAlias = Literal["junit", "json", "markdown", "csv"]
"""A format of `report_text`."""


def report_text(
    campaign: Store | Path,
    format: ReportFormat,  # noqa: A002
    *,
    class_names: Sequence[str] | None = None,
    limits: tuple[LimitCheck, ...] | None = None,
) -> str:
    """Return the results of a campaign, or a replay, as one text.

    "junit": XML that CI systems show as test cases: a limit each, a seed input each, or an input of
    a replay each. "json": one object, the `Summary` with `verdict`, `limits`, `replay`,
    `findings` and `survey_findings`, the confident deviations of the survey. "markdown": what a comment on a change or a job's summary needs, always below 1 MB
    in UTF-8; what is left out for that is counted. "csv": a line a finding, of a replay an input,
    with the columns `CSV_COLUMNS`.

    `class_names` are in the order of the classes' numbers; by default those of the campaign's own
    label mapping, where that file is still there. `limits` are those of `check_limits` by default.
    What UTF-8 has no place for, as in names of files in another encoding, becomes a question mark.

    Raises UsageError for another format or too few class names, StoreError where the folder can't
    be used.
    """
    with open_store(campaign) as store:
        return b"".join(_pieces(store, format, class_names, limits)).decode()


def _pieces(
    store: Store,
    format: ReportFormat,  # noqa: A002
    class_names: Sequence[str] | None,
    limits: tuple[LimitCheck, ...] | None = None,
    pictures: PictureFolder | None = None,
) -> Iterator[bytes]:
    """Return the report in UTF-8, piece by piece."""
    writers: Mapping[str, Callable[[ReportData], Iterable[str]]] = {
        "junit": junit_pieces,
        "json": _json,
        "markdown": lambda data: [markdown_text(data, pictures=pictures)],
        "csv": _csv,
    }
    if format not in writers:
        raise UsageError(f"there is no report format {format!r}; take one of {', '.join(writers)}")
    pieces = writers[format](report_data(store, class_names, limits))
    return (piece.encode(errors="replace") for piece in pieces)


@dataclass(frozen=True)
class TextReport:
    """A report that was written: the file, its size in bytes, and its number of findings.

    `pictures` are files beside it. `survey_findings` are the confident deviations of the survey,
    which are not among the findings.
    """

    path: str
    bytes: int
    findings: int
    pictures: int = 0
    survey_findings: int = 0


def write_text_report(
    campaign: Store | Path,
    format: ReportFormat,  # noqa: A002
    path: Path,
    *,
    class_names: Sequence[str] | None = None,
    pictures: bool = True,
) -> TextReport:
    """Write `report_text` to a file, whole or not at all; an earlier file is replaced, missing
    folders made.

    With `pictures` Markdown shows the first triggers, of a replay the inputs that deviate: PNG
    files in a folder beside the file, ``report-pictures`` of ``report.md``, which it refers to.

    Raises what `report_text` does, UsageError for a path that is a folder or the campaign's own
    database, StoreError where the file can't be written, DiskFullError where no space is left.
    """
    with open_store(campaign) as store:
        check_report_path(path, store.folder)
        count, surveyed = count_findings(store), count_survey_findings(store)
        shown = PictureFolder.of(path) if pictures and format == "markdown" else None
        pieces = _pieces(store, format, class_names, pictures=shown)
        with translate_report_errors(path), replacing(path, durable=True) as file:
            size = sum(map(file.write, pieces))
            if shown is not None:
                shown.write()
    files = 0 if shown is None else len(shown)
    return TextReport(str(path), size, count, files, surveyed)


def finding_row(data: ReportData, finding: Finding) -> dict[str, Any]:
    """Return a finding with its seed, its cause, and the line that sends it again.

    `original_class` and `deployed_class` are the labels' names, None where they have none;
    `disagreement` is how far both answers are apart, from 0 to 1.
    """
    row = outcome_part(data.summary.models, finding.outcome)
    labels = {name: row[f"{name}_label"] for name in ("original", "deployed")}
    known = data.names is not None
    return {
        **row,
        "difference": difference_text(
            finding.outcome.original, finding.outcome.deployed, data.name
        ),
        "disagreement": jsonable(finding.outcome.disagreement),
        **seed_part(finding.seed, row),
        **{
            f"{name}_class": data.name(label) if known and label is not None else None
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


def _csv(data: ReportData) -> Iterator[str]:
    """Yield a line for each finding, or each input of a replay, below the header."""
    file = io.StringIO(newline="")
    writer = csv.DictWriter(file, CSV_COLUMNS, extrasaction="ignore", lineterminator="\n")
    writer.writeheader()
    for line in _csv_lines(data):
        writer.writerow(line)
        yield file.getvalue()
        file.seek(file.truncate(0))
    yield file.getvalue()


def _csv_lines(data: ReportData) -> Iterator[dict[str, Any]]:
    rows = _found(data) if data.replay is None else _replayed(data, data.replay)
    for row in rows:
        queries = {f"{name}_queries": count for name, count in row.pop("queries").items()}
        line = {**row, **queries, "steps": " + ".join(row["words"])}
        yield {name: csv_cell(value) for name, value in line.items()}


def _found(data: ReportData) -> Iterator[dict[str, Any]]:
    for finding in findings(data.store):
        yield finding_row(data, finding)


def _replayed(data: ReportData, replay: ReplaySummary) -> Iterator[dict[str, Any]]:
    """Yield every input that was sent: its outcome and its state."""
    inputs = {(one.id, one.replica): one for one in replay.inputs}
    labels = {name: one.label for name, one in stored_inputs(data.store).items()}
    for result in results(data.store):
        one = inputs.get((result.seed.id, result.outcome.replica))
        if one is None:
            continue
        yield {
            **finding_row(data, result),
            "state": one.state,
            "label": labels[one.id],
            **{name: getattr(one, name) for name in _OF_INPUT},
            "original_class": _class(data, one.original_label),
            "deployed_class": _class(data, one.deployed_label),
            "linf": 0 if one.kind == "seed" else None,
            "snr_db": None,
        }


def _class(data: ReportData, label: int | None) -> str | None:
    return None if label is None or data.names is None else data.name(label)


# JSON


def _json(data: ReportData) -> Iterator[str]:
    """Yield the object, each finding on a line of its own; NaN and infinity are texts."""
    replay = data.replay
    known: dict[str, Any] = {
        **summary_json(data.summary),
        "verdict": data.verdict,
        "limits": [one.to_json() for one in data.limits],
        "replay": None if replay is None else replay.to_json(),
        "class_names": data.names,
    }
    yield "{\n"
    for name, value in known.items():
        yield f"{json.dumps(name)}: {_dumped(value)},\n"
    yield '"findings": ['
    for number, finding in enumerate(findings(data.store)):
        yield f"{',' if number else ''}\n{_dumped(finding_row(data, finding))}"
    yield '\n],\n"survey_findings": ['
    for number, row in enumerate(survey_findings(data.store)):
        yield f"{',' if number else ''}\n{_dumped(row)}"
    yield "\n]\n}\n"


def _dumped(value: Any) -> str:
    try:
        return json.dumps(value, allow_nan=False)
    except ValueError:  # NaN or infinity
        return json.dumps(jsonable(value), allow_nan=False)

"""Results on stdout: a document for people, or one JSON object for machines."""

import json
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

from edgeflare._internal import records
from edgeflare._internal.text import counted, visible_text
from edgeflare.cli.terminal import echo, findings_text
from edgeflare.reports import Block, Text, print_document

if TYPE_CHECKING:
    from edgeflare import Summary
    from edgeflare.reports import ExportReport, MlflowRun


class TerminalConsole(Console):
    """Prints texts of any origin: nothing in them is obeyed by the terminal but rich's own styles."""

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterator[Segment]:
        """Yield the segments to print; their texts as `visible_text` shows them."""
        for segment in super().render(renderable, options):
            if segment.control or segment.text.isprintable():
                yield segment
            else:
                yield Segment(visible_text(segment.text), segment.style)


def json_text(value: Any, indent: int | None = None) -> str:
    """Return a JSON object in ASCII, without the one control character that JSON allows."""
    return json.dumps(value, indent=indent).replace("\x7f", "\\u007f")


def print_json(value: Any) -> None:
    """Print one JSON object."""
    echo(json_text(value, indent=2))


def print_result(as_json: bool, values: Any, document: Callable[[], Iterable[Block]]) -> None:
    """Print a result: its JSON `values`, a record or what returns them, or its document."""
    if as_json:
        if not callable(values):
            values = records.as_json(values)
        print_json(values() if callable(values) else values)
    else:
        print_document(document(), TerminalConsole())


def print_summary(summary: "Summary", as_json: bool, *, wide: bool = False) -> None:
    """Print what a campaign found; `wide`: with every step of the triggers shown."""
    from edgeflare.reports import summary_document

    width = None if wide else TerminalConsole().width
    print_result(as_json, summary.to_json, lambda: summary_document(summary, width=width))


def print_export(report: "ExportReport | None", run: "MlflowRun | None", as_json: bool) -> None:
    """Print what an export wrote, and the run that it logged."""

    def values() -> dict[str, Any]:
        files = {} if report is None else report.to_json()
        return files if run is None else files | {"mlflow": run.to_json()}

    def document() -> Iterator[Block]:
        if report is not None:
            counts = ", ".join(f"{count} {status}" for status, count in report.by_status.items())
            found = findings_text(report.findings, report.survey_findings, counts)
            yield Text(f"{found}, {report.files} files in {report.folder}")
            yield from map(Text, report.notices)
        if run is not None:
            what = "new" if run.is_new else "brought up to date"
            yield Text(
                f"run {run.run_id} ({what}) of the experiment {run.experiment} on "
                f"{run.tracking_uri}: {run.metrics} metrics, {run.params} parameters, "
                f"{counted(run.artifacts, 'file')}"
            )

    print_result(as_json, values, document)

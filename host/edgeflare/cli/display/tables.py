"""Results on stdout: a document for people, or one JSON object for machines."""

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.text import Text as RichText

from edgeflare._internal import records
from edgeflare._internal.text import counted, visible_text
from edgeflare.cli.terminal import echo, findings_text
from edgeflare.reports import Block, Text, print_document

if TYPE_CHECKING:
    from edgeflare import Summary
    from edgeflare.nightly import Night, NightRun
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


_NIGHT_STYLES = {
    "green": "green",
    "first": "green",
    "regression": "bold red",
    "away": "yellow",
    "failed": "yellow",
}
_NIGHT_WORDS = {"first": "green (first)", "regression": "red", "failed": "not run"}


def state_word(state: str) -> str:
    """Return how a run's state is called in the terminal."""
    return _NIGHT_WORDS.get(state, state)


def print_night(night: "Night", json: bool) -> None:
    """Print how a night came out: a line for each run, with the reasons where it is not green."""
    if json:
        print_json(night.to_json())
        return
    console = TerminalConsole(highlight=False)
    for run in night.runs:
        console.print(_night_line(run), soft_wrap=True)
        for words in run.words:
            console.print(RichText(f"  {words}"), soft_wrap=True)
        for changed in run.changed:
            console.print(RichText(f"  changed: {changed}", style="dim"), soft_wrap=True)
    console.print(RichText(f"Night {night.number}: {night.verdict}", style="bold"), soft_wrap=True)


def print_accepted(lines: Sequence[str], json: bool) -> None:
    """Print what was taken for the new baseline."""
    if json:
        print_json({"accepted": list(lines)})
        return
    for line in lines:
        echo(line)


def _night_line(run: "NightRun") -> RichText:
    line = RichText(state_word(run.state), style=_NIGHT_STYLES[run.state])
    line.append(f"  {run.name}", style="not bold default")
    if run.figures:
        line.append(f": {run.figures}", style="not bold default")
    return line

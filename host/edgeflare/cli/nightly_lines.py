"""Shows a night: while it runs on stderr, and how it came out on stdout."""

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from rich.console import Console
from rich.text import Text

from edgeflare.cli.bench_bars import Log, Terminal
from edgeflare.cli.stopping import Stop
from edgeflare.cli.tables import print_json
from edgeflare.nightly import Night, NightlyProgress, NightRun

_STYLES = {
    "green": "green",
    "first": "green",
    "regression": "bold red",
    "away": "yellow",
    "failed": "yellow",
}
_WORDS = {"first": "green (first)", "regression": "red", "failed": "not run"}


@contextmanager
def watching_nightly(stop: Stop) -> Iterator["NightDisplay"]:
    """Yield the function to which a night reports: in a terminal bars, elsewhere lines; all on stderr."""
    view = Terminal(stop) if sys.stderr.isatty() else Log()
    with view:
        yield NightDisplay(view)


class NightDisplay:
    """Takes what a night reports."""

    def __init__(self, view: Log | Terminal) -> None:
        self._view = view

    def __call__(self, report: NightlyProgress) -> None:
        """Take a report."""
        name = f"{report.number} of {report.total}: {report.model} on {report.device}"
        if report.ended is not None:
            self._view.ended(f"{name}: {_WORDS.get(report.ended.state, report.ended.state)}")
        elif report.event is None:
            self._view.begin(name)
        else:
            self._view(report.event)


def print_night(night: Night, json: bool) -> None:
    """Print how a night came out: a line for each run, with the reasons where it is not green."""
    if json:
        print_json(night.to_json())
        return
    console = Console(highlight=False)
    for run in night.runs:
        console.print(_line(run), soft_wrap=True)
        for words in run.words:
            console.print(Text(f"  {words}"), soft_wrap=True)
        for changed in run.changed:
            console.print(Text(f"  changed: {changed}", style="dim"), soft_wrap=True)
    console.print(Text(f"Night {night.number}: {night.verdict}", style="bold"), soft_wrap=True)


def print_accepted(lines: Sequence[str], json: bool) -> None:
    """Print what was taken for the new baseline."""
    if json:
        print_json({"accepted": list(lines)})
        return
    for line in lines:
        print(line)  # noqa: T201


def _line(run: NightRun) -> Text:
    line = Text(_WORDS.get(run.state, run.state), style=_STYLES[run.state])
    line.append(f"  {run.name}", style="not bold default")
    if run.figures:
        line.append(f": {run.figures}", style="not bold default")
    return line

"""Shows a running bench: which cell of how many, its campaign below, a line for each cell that ends."""

import shlex
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType

from rich.console import Console
from rich.text import Text

from edgeflare import Event, Notice, Summary, UsageError, summarize
from edgeflare.bench import BenchProgress, open_bench
from edgeflare.cli.guard import say
from edgeflare.cli.stopping import Stop
from edgeflare.cli.watch import Lines

_RESUME = "edgeflare bench resume"


@contextmanager
def watching_bench(stop: Stop, folder: Path) -> Iterator["BenchDisplay"]:
    """Yield the function to which the bench in `folder` reports: in a terminal bars, elsewhere lines.

    All of it goes to stderr. Where the bench stops in the middle, how to go on is said last.
    """
    view = Terminal(stop) if sys.stderr.isatty() else Log()
    display = BenchDisplay(folder, view)
    try:
        with view:
            yield display
            display.end()
    except BaseException as error:
        if display.begun and not isinstance(error, UsageError) and _RESUME not in str(error):
            display.advise()
        raise
    if not display.begun:
        say(f"note: {folder} is finished: nothing is left to do")


class BenchDisplay:
    """Takes what a bench reports, and notices where a cell ends."""

    def __init__(self, folder: Path, view: "Log | Terminal") -> None:
        self._folder = folder
        self._view = view
        self._last: BenchProgress | None = None
        self._advised = False

    @property
    def begun(self) -> bool:
        """Whether a cell has begun."""
        return self._last is not None

    def __call__(self, report: BenchProgress) -> None:
        """Take a report."""
        if self._last is None or self._last.cell != report.cell:
            self.end()
            self._last = report
            self._view.begin(_name(report))
        event = report.event
        if isinstance(event, Notice) and _RESUME in event.text:
            self._advised = True
        if event is not None:
            self._view(event)

    def end(self) -> None:
        """Tell what the last cell found, if it is finished; one that can't be run was told of as a notice."""
        if self._last is None:
            return
        bench = open_bench(self._folder)
        cell = self._last.cell
        if bench.state(cell) == "finished":
            self._view.ended(f"{_name(self._last)}: {_figures(summarize(bench.campaign(cell)))}")

    def advise(self) -> None:
        """Say how to go on, unless the bench has said it."""
        if not self._advised:
            command = shlex.join(["edgeflare", "bench", "resume", str(self._folder)])
            say(f"note: the cells that are finished are kept; go on with: {command}")


def _name(report: BenchProgress) -> str:
    cell = report.cell
    return (
        f"cell {report.number} of {report.total}: {cell.pair}, {cell.strategy}, "
        f"repeat {cell.repeat}"
    )


def _figures(summary: Summary) -> str:
    text = f"found {summary.found} of {summary.searched} searched"
    if summary.queries_found is not None:
        text += f", mean {summary.queries_found.mean:.1f} queries"
    return text


class Log:
    """Plain lines, for what is no terminal."""

    def __init__(self) -> None:
        self._lines = Lines()

    def __enter__(self) -> None:
        return None

    def __exit__(self, *error: object) -> None:
        return None

    def begin(self, cell: str) -> None:
        """Begin with a cell."""
        self._lines = Lines()
        say(cell)

    def ended(self, line: str) -> None:
        """Show what a cell has found."""
        say(line)

    def __call__(self, event: Event) -> None:
        """Take what the cell's campaign reports."""
        self._lines(event)


class Terminal:
    """The running cell's bars below a line that says which it is; the lines of those that ended stay."""

    def __init__(self, stop: Stop, console: Console | None = None) -> None:
        from edgeflare.cli.bars import Bars

        self.bars = Bars(stop, console)

    def __enter__(self) -> None:
        self.bars.__enter__()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if error is None:
            self.bars.restart(None)
        self.bars.__exit__(kind, error, trace)

    def begin(self, cell: str) -> None:
        """Begin with a cell."""
        self.bars.restart(Text(cell, style="bold"))

    def ended(self, line: str) -> None:
        """Show what a cell has found; its bars make room for the next one's."""
        self.bars.keep(Text(line))

    def __call__(self, event: Event) -> None:
        """Take what the cell's campaign reports."""
        self.bars(event)

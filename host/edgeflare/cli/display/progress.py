"""Shows running campaigns: bars in a terminal, plain lines elsewhere; always on stderr."""

import shlex
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial

import rich.progress
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.markup import escape
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    ProgressColumn,
    SpinnerColumn,
    Task,
    TaskID,
    TextColumn,
    TimeRemainingColumn,
)
from rich.table import Column
from rich.text import Text

from edgeflare import Event, Notice, summarize
from edgeflare.campaign import BatchProgress, FleetStatus, Stage, Step
from edgeflare.cli.display.status import MOST_LINES, device_sentence, device_table, rate_text
from edgeflare.cli.display.tables import TerminalConsole
from edgeflare.cli.terminal import StopSignal, echo_err, handling_signals
from edgeflare.devices import DeviceStatus
from edgeflare.errors import DiskFullError, UsageError
from edgeflare.store import campaign_text

_SECONDS_BETWEEN_LINES = 5.0
_SECONDS_BETWEEN_DEVICE_LINES = 30.0


@contextmanager
def progress_display() -> "Iterator[TerminalProgress | PlainProgress]":
    """Yield the function to which a campaign reports; signals are handled in the meantime."""
    with handling_signals() as stop, _display(stop) as view:
        yield view


@contextmanager
def _display(stop: StopSignal) -> "Iterator[TerminalProgress | PlainProgress]":
    if not sys.stderr.isatty():
        yield PlainProgress()
        return

    with TerminalProgress(stop) as bars:
        yield bars


@contextmanager
def batch_display(
    stop: StopSignal,
    *,
    what: str = "",
    result: "Callable[[BatchProgress], str] | None" = None,
    advice: Callable[[BatchProgress], str] | None = None,
) -> "Iterator[BatchDisplay]":
    """Yield the function to which a batch reports.

    `what` stands before a campaign's number; `result` returns the result of a campaign in a few
    words (by default what it found). Where the command fails once the batch has begun, the `advice`
    how to continue is printed last. What is no batch reports to the `view`.
    """
    display = None
    try:
        with _display(stop) as view:
            display = BatchDisplay(view, what, result or found)
            yield display
            if display.last:
                view.restart("")
    except BaseException as error:
        last = display and display.last
        said = isinstance(error, UsageError | DiskFullError)  # unless it came after the last one
        if last and advice and (last.ended or not said):
            echo_err(f"note: {advice(last)}")
        raise


class BatchDisplay:
    """Shows the running campaign, its events, and a line for each one that has ended."""

    def __init__(
        self,
        view: "TerminalProgress | PlainProgress",
        what: str,
        result: Callable[[BatchProgress], str],
    ) -> None:
        self.last: BatchProgress | None = None
        self.view = view
        self._what = what
        self._result = result

    def __call__(self, report: BatchProgress) -> None:
        """Take a report."""
        self.last = report
        heading = f"{self._what}{report.number} of {report.total}: {report.name}"
        event = report.event
        if report.ended:
            if result := self._result(report):
                self.view.keep(f"{heading}: {result}")
        elif event is None:
            self.view.restart(heading)
        else:  # it is the batch that is to be resumed, not one campaign of it
            self.view(Notice(event.text) if isinstance(event, Notice) else event)


def found(report: BatchProgress) -> str:
    """Return what a campaign has found; nothing for a failed one, which a notice reports."""
    if report.ended != "finished":
        return ""
    summary = summarize(report.folder)
    text = f"found {summary.found} of {summary.searched} searched"
    if summary.queries_found is not None:
        text += f", mean {summary.queries_found.mean:.1f} queries"
    return text


def _notice_text(notice: Notice) -> str:
    """Return a notice with how to resume the campaign that has stopped."""
    if notice.resume is None:
        return notice.text
    command = shlex.join(["edgeflare", "resume", campaign_text(notice.resume)])
    return f"{notice.text}; go on with: {command}"


class PlainProgress:
    """Prints a line for each stage and notice, and one every few seconds during a stage.

    A device has a line when its state changes, and every half minute otherwise.
    """

    def __init__(self) -> None:
        self.restart("")

    def restart(self, heading: str) -> None:
        """Begin with another campaign."""
        if heading:
            echo_err(heading)
        self._stage = Stage("", "")
        self._shown: Step | None = None
        self._began = self._last = time.monotonic()
        self._devices: dict[str, tuple[str, float]] = {}

    def keep(self, line: str) -> None:
        """Print the result of a campaign."""
        echo_err(line)

    def __call__(self, event: Event) -> None:
        """Show an event of the campaign."""
        now = time.monotonic()
        if isinstance(event, Stage):
            if event[:2] != self._stage[:2]:  # else the stage continues
                echo_err(": ".join(filter(None, event[:2])))
            self._stage, self._began, self._last = event, now, now
            self._shown = None
        elif isinstance(event, Notice):
            echo_err(f"note: {_notice_text(event)}")
        elif isinstance(event, FleetStatus):
            for device in event.devices:
                self._show_device(device, now)
        elif event != self._shown and (
            event.done == self._stage.total or now - self._last >= _SECONDS_BETWEEN_LINES
        ):
            self._last, self._shown = now, event
            echo_err(f"{self._stage.name}: {self._progress(event, now)}")

    def _show_device(self, device: DeviceStatus, now: float) -> None:
        state, last = self._devices.get(device.name, ("up", self._began))
        if device.state.value != state or now - last >= _SECONDS_BETWEEN_DEVICE_LINES:
            echo_err(device_sentence(device))
            last = now
        self._devices[device.name] = (device.state.value, last)

    def _progress(self, step: Step, now: float) -> str:
        total = self._stage.total
        line = f"{step.done}" if total is None else f"{step.done} of {total}"
        elapsed = max(now - self._began, 1e-9)
        if step.queries:
            line += (
                f", found {step.found} of {step.searched} searched, {step.queries} search queries, "
                f"{rate_text(step.queries / elapsed)} queries/s"
            )
        if step.under_way:
            line += (
                f"; {step.under_way} under way, {step.with_trigger} with a trigger, "
                f"{step.host_only_queries} host queries"
            )
        waiting = any(state != "up" for state, _ in self._devices.values())
        if total and 0 < step.done < total and not waiting:
            line += f", about {elapsed / step.done * (total - step.done):.0f} s left"
        return line


_LINES_OF_BARS = 8
_FRAMES_PER_SECOND = 5
_USUAL, _WIDE = 80, 100  # columns of a terminal


class _Rate(ProgressColumn):
    """Finished steps a second."""

    def render(self, task: Task) -> Text:
        """Return the rate as text."""
        speed = task.finished_speed or task.speed
        return Text("" if speed is None else f"{speed:.1f}/s", style="dim")


class TerminalProgress(AbstractContextManager["TerminalProgress"]):
    """One bar for each stage; finished bars stay. Below them a line for each device.

    Of several campaigns in a row the running one's bars are shown, below a line with its name.
    After a signal the display ends before the next notice is printed.
    """

    def __init__(self, stop: StopSignal, console: Console | None = None) -> None:
        self._stop = stop
        self._console = TerminalConsole(stderr=True) if console is None else console
        width = self._console.width
        self._show_queries = width >= _USUAL
        self._bars = rich.progress.Progress(*_columns(width), console=self._console)
        self._task: TaskID | None = None
        self._devices: tuple[DeviceStatus, ...] = ()
        self._heading = Text()
        self._live = Live(
            console=self._console, get_renderable=self._frame, refresh_per_second=_FRAMES_PER_SECOND
        )
        self._live.start()

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        if error is None:
            self._finish()
        self._end()

    def __call__(self, event: Event) -> None:
        """Show an event of the campaign."""
        if isinstance(event, Notice):
            self._show_notice(_notice_text(event))
        elif isinstance(event, FleetStatus):
            self._devices = event.devices
        elif isinstance(event, Stage):
            self._begin(event)
        elif self._task is not None:
            self._bars.update(self._task, completed=event.done, found=self._found(event))

    def restart(self, heading: str) -> None:
        """Remove a finished campaign's bars; `heading` is shown above those of the next one."""
        self._devices, self._task, self._heading = (), None, Text(heading, style="bold")
        self._bars = rich.progress.Progress(*_columns(self._console.width), console=self._console)

    def keep(self, line: str) -> None:
        """Print a line above the bars, which stays."""
        self._console.print(Text(line), soft_wrap=True, highlight=False)

    def _begin(self, stage: Stage) -> None:
        self._finish()
        description = f"[bold]{escape(stage.name)}[/] {escape(stage.detail)}"
        if self._task is None or self._bars.tasks[self._task].description != description:
            self._task = self._bars.add_task(description, total=stage.total, found="")
        else:
            self._bars.reset(self._task, total=stage.total)

    def _found(self, step: Step) -> str:
        if not step.queries and not step.host_only_queries:
            return ""
        text = f"found {step.found}/{step.searched}"
        if step.with_trigger:
            text += f" (+{step.with_trigger})"
        if self._show_queries:
            queries, what = step.queries, "queries"
            if not step.done:  # until the first search has ended, the host's queries show progress
                queries, what = step.host_only_queries, "on host"
            text += f", {_short(queries)} {what}"
        return text

    def _show_notice(self, text: str) -> None:
        if self._stop.asked:
            self._end()
        self._console.print(f"[yellow]note:[/] {escape(text)}", soft_wrap=True, highlight=False)

    def _frame(self) -> Group:
        parts: list[RenderableType] = [self._bars]
        if self._heading:
            heading = self._heading.copy()
            heading.truncate(self._console.width, overflow="ellipsis")
            parts.insert(0, heading)
        if self._devices:
            most = max(1, min(MOST_LINES, self._console.height - _LINES_OF_BARS))
            parts.append(device_table(self._devices, self._console.width, most))
        return Group(*parts)

    def _finish(self) -> None:
        self._devices = ()
        if self._task is not None:
            task = self._bars.tasks[self._task]
            total = task.completed if task.total is None else task.total
            self._bars.update(self._task, total=max(total, 1), completed=max(total, 1))

    def _end(self) -> None:
        self._devices = ()
        self._live.stop()


def _columns(width: int) -> list[ProgressColumn]:
    whole = partial(Column, no_wrap=True)
    columns: list[ProgressColumn] = [
        SpinnerColumn(finished_text="✓"),
        TextColumn(
            "{task.description}",
            table_column=whole(max_width=22 if width >= _WIDE else 18, overflow="ellipsis"),
        ),
        MofNCompleteColumn(table_column=whole()),
        TimeRemainingColumn(compact=True, table_column=whole()),
        TextColumn("{task.fields[found]}", table_column=whole()),
    ]
    if width >= _WIDE:
        columns.insert(3, _Rate(table_column=whole()))
    if width >= _USUAL:
        columns.insert(2, BarColumn(bar_width=8, table_column=whole()))
    return columns


def _short(count: int) -> str:
    for size, unit in ((1e6, "M"), (1e3, "k")):
        if count >= 10 * size:
            return f"{count / size:.1f}{unit}"
    return str(count)

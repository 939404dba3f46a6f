"""The progress display of a terminal."""

from contextlib import AbstractContextManager
from functools import partial
from types import TracebackType

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

from edgeflare import Event, Notice
from edgeflare.campaign import Fleet, Stage, Step
from edgeflare.cli.device_lines import MOST_LINES, device_table
from edgeflare.cli.stopping import Stop
from edgeflare.cli.watch import notice_text
from edgeflare.devices import DeviceStatus

_LINES_OF_BARS = 8
_FRAMES_PER_SECOND = 5
_USUAL, _WIDE = 80, 100  # columns of a terminal


class _Rate(ProgressColumn):
    """Finished steps a second."""

    def render(self, task: Task) -> Text:
        """Return the rate as text."""
        speed = task.finished_speed or task.speed
        return Text("" if speed is None else f"{speed:.1f}/s", style="dim")


class Bars(AbstractContextManager["Bars"]):
    """One bar for each stage; finished bars stay. Below them a line for each device.

    Of several campaigns in a row the running one's bars are shown, below a line that says which it is.

    Once the user has asked for an end, the display ends before anything more is said.
    """

    def __init__(self, stop: Stop, console: Console | None = None) -> None:
        self._stop = stop
        self._console = Console(stderr=True) if console is None else console
        width = self._console.width
        self._tell_queries = width >= _USUAL
        self._bars = rich.progress.Progress(*_columns(width), console=self._console)
        self._task: TaskID | None = None
        self._devices: tuple[DeviceStatus, ...] = ()
        self._heading = Text()
        self._live = Live(
            console=self._console, get_renderable=self._frame, refresh_per_second=_FRAMES_PER_SECOND
        )
        self._live.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if error is None:
            self._finish()
        self._end()

    def __call__(self, event: Event) -> None:
        """Show an event of the campaign."""
        if isinstance(event, Notice):
            self._say(notice_text(event))
        elif isinstance(event, Fleet):
            self._devices = event.devices
        elif isinstance(event, Stage):
            self._begin(event)
        elif self._task is not None:
            self._bars.update(self._task, completed=event.done, found=self._found(event))

    def restart(self, heading: str) -> None:
        """Remove the bars of a finished campaign; `heading` is shown above those of the next one."""
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
        if not step.queries and not step.host_queries:
            return ""
        text = f"found {step.found}/{step.searched}"
        if step.in_hand:
            text += f" (+{step.in_hand})"
        if self._tell_queries:
            queries, what = step.queries, "queries"
            if not step.done:  # until the first search has ended, the host's queries show progress
                queries, what = step.host_queries, "on host"
            text += f", {_short(queries)} {what}"
        return text

    def _say(self, text: str) -> None:
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

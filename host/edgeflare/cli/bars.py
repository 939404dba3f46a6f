"""The progress display of a terminal."""

from contextlib import AbstractContextManager
from types import TracebackType

from rich.console import Console
from rich.markup import escape
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    SpinnerColumn,
    Task,
    TaskID,
    TextColumn,
    TimeRemainingColumn,
)
from rich.table import Column
from rich.text import Text

from edgeflare import Event, Notice, Stage


class _Rate(ProgressColumn):
    """Finished steps a second."""

    def render(self, task: Task) -> Text:
        """Return the rate as text."""
        speed = task.finished_speed or task.speed
        return Text("" if speed is None else f"{speed:.1f}/s", style="dim")


class Bars(AbstractContextManager["Bars"]):
    """One bar a stage, the finished ones stay; what was found so far stands behind the bar."""

    def __init__(self) -> None:
        self._bars = Progress(
            SpinnerColumn(finished_text="✓"),
            TextColumn(
                "{task.description}",
                table_column=Column(max_width=22, no_wrap=True, overflow="ellipsis"),
            ),
            BarColumn(bar_width=8, table_column=Column(no_wrap=True)),
            MofNCompleteColumn(table_column=Column(no_wrap=True)),
            _Rate(table_column=Column(no_wrap=True)),
            TimeRemainingColumn(compact=True, table_column=Column(no_wrap=True)),
            TextColumn("{task.fields[found]}"),
            console=Console(stderr=True),
        )
        self._task: TaskID | None = None
        self._bars.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if error is None:
            self._finish()
        self._bars.stop()

    def __call__(self, event: Event) -> None:
        """Take what the campaign reports."""
        if isinstance(event, Stage):
            self._finish()
            self._task = self._bars.add_task(
                f"[bold]{escape(event.name)}[/] {escape(event.detail)}",
                total=event.total,
                found="",
            )
        elif isinstance(event, Notice):
            self._bars.console.print(f"[yellow]note:[/] {escape(event.text)}")
        elif self._task is not None:
            found = (
                f"found {event.found}/{event.searched}, {event.queries} queries"
                if event.queries
                else ""
            )
            self._bars.update(self._task, completed=event.done, found=found)

    def _finish(self) -> None:
        if self._task is not None:
            task = self._bars.tasks[self._task]
            total = task.completed if task.total is None else task.total
            self._bars.update(self._task, total=max(total, 1), completed=max(total, 1))

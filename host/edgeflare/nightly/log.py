"""A night's ``log.txt``: every notice and every stage, with the time."""

from collections.abc import Callable
from datetime import datetime, timezone
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

from edgeflare.campaign.progress import Event, Notice, Stage, Step
from edgeflare.store.failures import told_of

if TYPE_CHECKING:
    from typing_extensions import Self


class NightLog:
    """Lines with the time in UTC, each on disk at once. Raises StoreError, DiskFullError among them."""

    def __init__(self, path: Path, clock: Callable[[], datetime]) -> None:
        self._path = path
        self._clock = clock
        self._stage: Stage | None = None
        self._where = ""
        self._last: Step | None = None
        with told_of(path.parent):
            self._file = path.open("a", encoding="utf-8", buffering=1)

    def line(self, text: str) -> None:
        """Write a line; further lines of the text are indented."""
        now = self._clock().astimezone(timezone.utc)
        first, *rest = text.splitlines() or [""]
        lines = [f"{now:%Y-%m-%dT%H:%M:%SZ} {first}", *(f"    {one}" for one in rest)]
        with told_of(self._path.parent):
            self._file.write("".join(f"{one}\n" for one in lines))

    def event(self, event: Event, where: str) -> None:
        """Log an event of the campaign called `where`."""
        if isinstance(event, Notice):
            self.line(f"{where}: note: {event.text}")
        elif isinstance(event, Stage):
            self.end_stage()
            self._stage, self._where = event, where
            self.line(f"{where}: {event.name}: {event.detail}")
        elif isinstance(event, Step):
            self._last = event

    def end_stage(self) -> None:
        """Log the progress of the stage that has ended."""
        if self._stage is not None and self._last is not None:
            total = "" if self._stage.total is None else f" of {self._stage.total}"
            found = f", found {self._last.found}" if self._last.searched else ""
            self.line(f"{self._where}: {self._stage.name}: {self._last.done}{total} done{found}")
        self._stage = self._last = None

    def __enter__(self) -> "Self":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        with told_of(self._path.parent):
            self._file.close()

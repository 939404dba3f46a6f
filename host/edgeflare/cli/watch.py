"""Shows a running campaign: bars in a terminal, plain lines elsewhere; always on stderr."""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

from edgeflare import Event, Notice, Progress, Stage, Step
from edgeflare.cli.guard import say

_SECONDS_BETWEEN_LINES = 5.0


@contextmanager
def watching() -> Iterator[Progress]:
    """Yield the function to which a campaign reports."""
    if not sys.stderr.isatty():
        yield _Lines()
        return
    from edgeflare.cli.bars import Bars

    with Bars() as bars:
        yield bars


class _Lines:
    """One line for each stage and notice, and one every few seconds while a stage runs."""

    def __init__(self) -> None:
        self._stage = Stage("", "")
        self._began = self._last = time.monotonic()

    def __call__(self, event: Event) -> None:
        now = time.monotonic()
        if isinstance(event, Stage):
            self._stage, self._began, self._last = event, now, now
            say(f"{event.name}: {event.detail}")
        elif isinstance(event, Notice):
            say(f"note: {event.text}")
        elif event.done == self._stage.total or now - self._last >= _SECONDS_BETWEEN_LINES:
            self._last = now
            say(f"{self._stage.name}: {self._progress(event, now)}")

    def _progress(self, step: Step, now: float) -> str:
        total = self._stage.total
        line = f"{step.done}" if total is None else f"{step.done} of {total}"
        elapsed = max(now - self._began, 1e-9)
        if step.queries:
            line += (
                f", found {step.found} of {step.searched} searched, {step.queries} search queries, "
                f"{step.queries / elapsed:.0f} queries/s"
            )
        if total and 0 < step.done < total:
            line += f", about {elapsed / step.done * (total - step.done):.0f} s left"
        return line

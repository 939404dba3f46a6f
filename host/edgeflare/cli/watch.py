"""Shows running campaigns: bars in a terminal, plain lines elsewhere; always on stderr."""

import shlex
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from edgeflare import Event, Notice, summarize
from edgeflare.campaign import BatchProgress, Fleet, Stage, Step
from edgeflare.cli.guard import say
from edgeflare.cli.stopping import Stop
from edgeflare.devices import DeviceStatus
from edgeflare.errors import DiskFullError, UsageError

if TYPE_CHECKING:
    from edgeflare.cli.bars import Bars

_SECONDS_BETWEEN_LINES = 5.0
_SECONDS_BETWEEN_DEVICE_LINES = 30.0


@contextmanager
def watching(stop: Stop) -> "Iterator[Bars | Lines]":
    """Yield the function to which a campaign reports."""
    if not sys.stderr.isatty():
        yield Lines()
        return
    from edgeflare.cli.bars import Bars

    with Bars(stop) as bars:
        yield bars


@contextmanager
def watching_batch(
    stop: Stop,
    *,
    what: str = "",
    result: "Callable[[BatchProgress], str] | None" = None,
    advice: Callable[[BatchProgress], str] | None = None,
) -> "Iterator[BatchDisplay]":
    """Yield the function to which a batch reports.

    `what` stands before a campaign's number; `result` says in a few words what came of a campaign (by default what
    it found). Where the batch stops in the middle, the `advice` how to continue is said last.
    """
    display = None
    try:
        with watching(stop) as view:
            display = BatchDisplay(view, what, result or found)
            yield display
            view.restart("")
    except BaseException as error:
        last = display and display.last
        if last and advice and not isinstance(error, UsageError | DiskFullError):
            say(f"note: {advice(last)}")
        raise


class BatchDisplay:
    """Shows which campaign of how many runs, what it reports, and a line for each one that has ended."""

    def __init__(
        self, view: "Bars | Lines", what: str, result: Callable[[BatchProgress], str]
    ) -> None:
        self.last: BatchProgress | None = None
        self._view = view
        self._what = what
        self._result = result

    def __call__(self, report: BatchProgress) -> None:
        """Take a report."""
        self.last = report
        heading = f"{self._what}{report.number} of {report.total}: {report.name}"
        event = report.event
        if report.ended:
            if result := self._result(report):
                self._view.keep(f"{heading}: {result}")
        elif event is None:
            self._view.restart(heading)
        else:  # it is the batch that is to be resumed, not one campaign of it
            self._view(Notice(event.text) if isinstance(event, Notice) else event)


def found(report: BatchProgress) -> str:
    """Return what a campaign has found; nothing for one that failed, of which a notice has told."""
    if report.ended != "finished":
        return ""
    summary = summarize(report.folder)
    text = f"found {summary.found} of {summary.searched} searched"
    if summary.queries_found is not None:
        text += f", mean {summary.queries_found.mean:.1f} queries"
    return text


def notice_text(notice: Notice) -> str:
    """Return a notice with how to resume the campaign that has stopped."""
    if notice.resume is None:
        return notice.text
    command = shlex.join(["edgeflare", "resume", str(notice.resume)])
    return f"{notice.text}; go on with: {command}"


class Lines:
    """Prints a line for each stage and notice, and one every few seconds during a stage.

    A device has a line when its state changes, and every half minute otherwise.
    """

    def __init__(self) -> None:
        self.restart("")

    def restart(self, heading: str) -> None:
        """Begin with another campaign."""
        if heading:
            say(heading)
        self._stage = Stage("", "")
        self._told: Step | None = None
        self._began = self._last = time.monotonic()
        self._devices: dict[str, tuple[str, float]] = {}

    def keep(self, line: str) -> None:
        """Print the result of a campaign."""
        say(line)

    def __call__(self, event: Event) -> None:
        """Show an event of the campaign."""
        now = time.monotonic()
        if isinstance(event, Stage):
            if event[:2] != self._stage[:2]:  # else the stage continues
                say(f"{event.name}: {event.detail}")
            self._stage, self._began, self._last = event, now, now
            self._told = None
        elif isinstance(event, Notice):
            say(f"note: {notice_text(event)}")
        elif isinstance(event, Fleet):
            for device in event.devices:
                self._tell_of(device, now)
        elif event != self._told and (
            event.done == self._stage.total or now - self._last >= _SECONDS_BETWEEN_LINES
        ):
            self._last, self._told = now, event
            say(f"{self._stage.name}: {self._progress(event, now)}")

    def _tell_of(self, device: DeviceStatus, now: float) -> None:
        from edgeflare.cli.device_lines import device_sentence

        state, last = self._devices.get(device.name, ("up", self._began))
        if device.state.value != state or now - last >= _SECONDS_BETWEEN_DEVICE_LINES:
            say(device_sentence(device))
            last = now
        self._devices[device.name] = (device.state.value, last)

    def _progress(self, step: Step, now: float) -> str:
        total = self._stage.total
        line = f"{step.done}" if total is None else f"{step.done} of {total}"
        elapsed = max(now - self._began, 1e-9)
        if step.queries:
            from edgeflare.cli.device_lines import rate_text

            line += (
                f", found {step.found} of {step.searched} searched, {step.queries} search queries, "
                f"{rate_text(step.queries / elapsed)} queries/s"
            )
        if step.under_way:
            line += (
                f"; {step.under_way} under way, {step.in_hand} with a trigger, "
                f"{step.host_queries} host queries"
            )
        waiting = any(state != "up" for state, _ in self._devices.values())
        if total and 0 < step.done < total and not waiting:
            line += f", about {elapsed / step.done * (total - step.done):.0f} s left"
        return line

"""Shows a running campaign: bars in a terminal, plain lines elsewhere; always on stderr."""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

from edgeflare import Event, Notice
from edgeflare.campaign import Fleet, Progress, Stage, Step
from edgeflare.cli.guard import say
from edgeflare.cli.stopping import Stop
from edgeflare.devices import DeviceStatus

_SECONDS_BETWEEN_LINES = 5.0
_SECONDS_BETWEEN_DEVICE_LINES = 30.0


@contextmanager
def watching(stop: Stop) -> Iterator[Progress]:
    """Yield the function to which a campaign reports."""
    if not sys.stderr.isatty():
        yield Lines()
        return
    from edgeflare.cli.bars import Bars

    with Bars(stop) as bars:
        yield bars


class Lines:
    """One line for each stage and notice, and one every few seconds while a stage gets on.

    A device has a line when it goes or comes back, and every half minute else.
    """

    def __init__(self) -> None:
        self._stage = Stage("", "")
        self._told: Step | None = None
        self._began = self._last = time.monotonic()
        self._devices: dict[str, tuple[str, float]] = {}

    def __call__(self, event: Event) -> None:
        """Take what the campaign reports."""
        now = time.monotonic()
        if isinstance(event, Stage):
            if event[:2] != self._stage[:2]:  # else it goes on with what is left of it
                say(f"{event.name}: {event.detail}")
            self._stage, self._began, self._last = event, now, now
            self._told = None
        elif isinstance(event, Notice):
            say(f"note: {event.text}")
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
                f"; {step.under_way} under way, {step.in_hand} with a trigger in hand, "
                f"{step.host_queries} host queries"
            )
        waiting = any(state != "up" for state, _ in self._devices.values())
        if total and 0 < step.done < total and not waiting:
            line += f", about {elapsed / step.done * (total - step.done):.0f} s left"
        return line

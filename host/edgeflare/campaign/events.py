"""The events that a running campaign reports."""

import queue
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple, TypeAlias

from edgeflare.campaign.status import (
    CampaignStatus,
    RunState,
    count_outcomes,
    first_status,
    now,
    write_status,
)
from edgeflare.devices import DeviceStatus
from edgeflare.store import Store


class Stage(NamedTuple):
    """A stage begins: "device", "seeds", "seed queries", "survey", "pursuit", "search", "replay",
    "control" or "layers".

    `total` is its number of steps where known.
    """

    name: str
    detail: str
    total: int | None = None


class Step(NamedTuple):
    """`done` of the stage's total; in "search" also the outcome counts so far.

    `queries` and `host_only_queries` (inputs given to the original alone) are those of all
    searches, also of the `under_way` ones, `with_trigger` of which have a triggering input already.
    """

    done: int
    found: int = 0
    searched: int = 0
    queries: int = 0
    host_only_queries: int = 0
    under_way: int = 0
    with_trigger: int = 0


class Notice(NamedTuple):
    """A message for the user.

    `resume` is the folder of a campaign that has stopped, from which `edgeflare resume` goes on;
    None where the campaign goes on by itself.
    """

    text: str
    resume: Path | None = None


class FleetStatus(NamedTuple):
    """What every device of the campaign does right now; reported about once a second."""

    devices: tuple[DeviceStatus, ...]


Event: TypeAlias = Stage | Step | Notice | FleetStatus
"""What a run reports while it goes on."""
Progress: TypeAlias = Callable[[Event], None]
"""Is called with every event, by the thread that runs the campaign."""


class BatchProgress(NamedTuple):
    """Progress of a batch (bench, comparison, night): campaign `number` (from 1) of `total`.

    `name` is the campaign's in the batch, `folder` where it lies. `event` is what the campaign
    reports. Without one, the campaign begins, or `ended` says how it came out: "finished", "failed"
    or a night's `RunState`.
    """

    name: str
    folder: Path
    number: int
    total: int
    event: Event | None = None
    ended: str = ""


BatchWatch: TypeAlias = Callable[[BatchProgress], None]


def silent(event: Event | BatchProgress) -> None:
    """Ignore it."""
    del event


_EVERY_S = 1.0


class Reporter:
    """Passes events on and writes the live status into the campaign's folder.

    `queue_notice` may be called from any thread; everything else is called by one
    thread. The status is written from `watch` on.
    """

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._queued: queue.SimpleQueue[str] = queue.SimpleQueue()
        self._store: Store | None = None
        self._live: CampaignStatus | None = None
        self._fleet: Callable[[], tuple[DeviceStatus, ...]] = tuple
        self._next = 0.0
        self.queue_notice = self._queued.put
        self._lock = threading.Lock()

    def watch(self, store: Store, fleet: Callable[[], tuple[DeviceStatus, ...]]) -> None:
        """Write the live status from now on, with the device status that `fleet` returns."""
        self._store = store
        so_far = count_outcomes(store)
        self._live = replace(
            first_status(store.folder),
            found=so_far.found,
            searched=so_far.searched,
            queries=so_far.queries,
        )
        self._fleet = fleet

    def __call__(self, event: Event) -> None:
        """Take an event; each second the live status is written."""
        self._report_queued()
        self._progress(event)
        live = self._live
        if isinstance(event, Stage) and live is not None:
            live = replace(
                live, stage=event.name, detail=event.detail, done=0, total=event.total or 0
            )
            self._next = 0.0
        elif isinstance(event, Step) and live is not None:
            live = replace(live, done=event.done)
            if live.stage == "search":
                live = replace(
                    live, found=event.found, searched=event.searched, queries=event.queries
                )
        self._live = live
        self.tick()

    @property
    def stage(self) -> str:
        """The name of the last stage that began."""
        return "" if self._live is None else self._live.stage

    def show_upload(self, text: str) -> None:
        """Show an upload; from any thread, while no other event comes."""
        with self._lock:
            self._progress(Stage("device", text))

    def notice(self, text: str) -> None:
        """Report a notice now, and store it."""
        if self._store is not None:
            self._store.add_notice(text)
        self(Notice(text))

    def tick(self) -> None:
        """Report the devices' status, at most once a second."""
        self._report_queued()
        if self._live is None or time.monotonic() < self._next:
            return
        self._next = time.monotonic() + _EVERY_S
        devices = self._fleet()
        if devices:
            self._progress(FleetStatus(devices))
        self._write(replace(self._live, devices=devices))

    def end(self, state: RunState, message: str = "") -> None:
        """Write the last status."""
        self._report_queued()
        if self._live is not None:
            self._write(
                replace(self._live, state=state, message=message, devices=self._fleet(), pid=None)
            )

    def _write(self, live: CampaignStatus) -> None:
        self._live = replace(live, updated_at=now())
        with suppress(OSError):  # a view only: the campaign runs without it
            write_status(self._live)

    def _report_queued(self) -> None:
        while not self._queued.empty():
            text = self._queued.get()
            self._progress(Notice(text))
            if self._store is not None:
                self._store.add_notice(text)

"""Passes a campaign's events to the caller's progress function, and writes the live status."""

import queue
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace

from edgeflare.campaign.counting import counted
from edgeflare.campaign.live import CampaignStatus, RunState, beginning, leave_status, now
from edgeflare.campaign.progress import Event, Notice, Progress, Stage, Step
from edgeflare.campaign.progress import Fleet as FleetEvent
from edgeflare.devices import DeviceStatus
from edgeflare.store import Store

_EVERY_S = 1.0


class Reporter:
    """Passes events on and writes the live status into the campaign's folder.

    `tell` may be called from any thread; all else, and the caller's progress function, belong to one.
    What is told before `watch` names the folder is held back until then.
    """

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._told: queue.SimpleQueue[str] = queue.SimpleQueue()
        self._store: Store | None = None
        self._live: CampaignStatus | None = None
        self._fleet: Callable[[], tuple[DeviceStatus, ...]] = tuple
        self._next = 0.0
        self.tell = self._told.put
        self._lock = threading.Lock()

    def watch(self, store: Store, fleet: Callable[[], tuple[DeviceStatus, ...]]) -> None:
        """Write the live status of this campaign from now on, with the device status that `fleet` returns."""
        self._store = store
        so_far = counted(store)
        self._live = replace(
            beginning(store.folder),
            found=so_far.found,
            searched=so_far.searched,
            queries=so_far.queries,
        )
        self._fleet = fleet

    def __call__(self, event: Event) -> None:
        """Take an event; each second the live status is written."""
        self._pass_on_what_was_told()
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

    def uploading(self, text: str) -> None:
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
        self._pass_on_what_was_told()
        if self._live is None or time.monotonic() < self._next:
            return
        self._next = time.monotonic() + _EVERY_S
        devices = self._fleet()
        if devices:
            self._progress(FleetEvent(devices))
        self._leave(replace(self._live, devices=devices))

    def end(self, state: RunState, message: str = "") -> None:
        """Write the last status."""
        self._pass_on_what_was_told()
        if self._live is not None:
            self._leave(
                replace(self._live, state=state, message=message, devices=self._fleet(), pid=None)
            )

    def _leave(self, live: CampaignStatus) -> None:
        self._live = replace(live, updated_at=now())
        with suppress(OSError):  # a view only: the campaign runs without it
            leave_status(self._live)

    def _pass_on_what_was_told(self) -> None:
        while not self._told.empty():
            text = self._told.get()
            self._progress(Notice(text))
            if self._store is not None:
                self._store.add_notice(text)

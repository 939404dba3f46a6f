"""Stores the devices' telemetry, minute by minute."""

import threading
import time
from types import TracebackType
from typing import TYPE_CHECKING

from edgeflare.campaign.fleet import Fleet
from edgeflare.devices import DeviceMinute
from edgeflare.devices.telemetry import MINUTE_S
from edgeflare.errors import StoreError
from edgeflare.store import Store

if TYPE_CHECKING:
    from typing_extensions import Self

_AFTER_THE_MINUTE_S = 0.5


class TelemetryKeeper:
    """Writes the devices' minutes into the store as each is over, in a thread of its own.

    What the disk doesn't take is tried again with the next minute. Leaving it writes the rest, and
    raises StoreError where that fails and no other error is on its way.
    """

    def __init__(self, fleet: Fleet, store: Store) -> None:
        self._fleet = fleet
        self._store = store
        self._pending: list[DeviceMinute] = []
        self._left = threading.Event()
        self._thread = threading.Thread(target=self._keep, name="edgeflare-telemetry", daemon=True)

    def __enter__(self) -> "Self":
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._left.set()
        self._thread.join()
        try:
            self._write(all_of_it=True)
        except StoreError:
            if error is None:
                raise

    def _keep(self) -> None:
        while not self._left.wait(MINUTE_S - time.time() % MINUTE_S + _AFTER_THE_MINUTE_S):
            try:
                self._write(all_of_it=False)
            except StoreError:
                continue  # the search meets the same error, and raises it

    def _write(self, *, all_of_it: bool) -> None:
        for session in self._fleet:
            self._pending += session.minutes.take(all_of_it=all_of_it)
        self._store.add_telemetry(self._pending)
        self._pending = []

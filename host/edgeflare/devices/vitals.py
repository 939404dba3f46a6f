"""Monitors an agent by its heartbeats and replies: health and window size."""

from edgeflare.devices.health import Health, HealthHistory
from edgeflare.devices.heartbeat import PendingHeartbeats, Ping
from edgeflare.devices.window import AdaptiveWindow
from edgeflare_agent.wire import Frame


class Vitals:
    """The device's health and the window that keeps it busy; no locks, no threads.

    `pings` are the heartbeats without an answer. `fixed`: a window that never changes.
    """

    def __init__(self, fixed: int | None) -> None:
        self.pings = PendingHeartbeats()
        self.window = AdaptiveWindow(fixed)
        self._record = HealthHistory()

    @property
    def health(self) -> Health:
        """The values of the last heartbeat."""
        return self._record.health

    def ponged(self, frame: Frame, received: float) -> Ping | None:
        """Record an answer to a heartbeat, received at this time of `steady`; None for a second one.

        Raises LookupError or ValueError for an invalid answer.
        """
        ping = self.pings.find(frame.header)
        if ping is None:
            return None
        self._record.note(frame.header, ping.sent, received, empty=ping.size == 0)
        self.pings.remove(ping)
        self.window.worked(self.health.busy_s, self.health.served)
        if self.health.round_trip_s is not None:
            self.window.set_round_trip(self.health.round_trip_s)
        return ping

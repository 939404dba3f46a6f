"""How many requests must be in flight so that the device never waits for the next one."""

import math
import statistics
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

from numpy.typing import NDArray

from edgeflare.devices.inventory import CompressionMode
from edgeflare_agent.wire import pack

SMALLEST, LARGEST = 2, 512
MOST_BYTES = 64 << 20
HOST_JITTER_S = 0.010
_AT_FIRST = 16
_MARGIN = 1.25
_MEMORY_SHARE = 8
_RECENT_REPLIES = 15
_RECENT_BEATS = 4
_ENOUGH_SERVED = 8
_OFTEN_AT_FIRST = 4 * _RECENT_REPLIES


class AdaptiveWindow:
    """The size that keeps one device busy, from what is observed; no clocks, no locks, no threads.

    One request occupies the slower of device and link for an interval; from being sent to being
    answered it takes the round trip, its transfer, its service and the host's own jitter. The size
    is the second divided by the first, with a margin: at least 2, at most 512, and no more bytes
    than `most_bytes`. A `fixed` size never changes.
    """

    def __init__(self, fixed: int | None = None) -> None:
        self._fixed = fixed
        self.size = _AT_FIRST if fixed is None else fixed
        self.most_bytes = MOST_BYTES
        """Bytes of requests that may be under way: 64 MiB, or an eighth of the device's memory."""
        self._round_trip = 0.0
        self._services: deque[float] = deque(maxlen=_RECENT_REPLIES)
        self._overheads: deque[float] = deque(maxlen=_RECENT_BEATS)
        self._sizes: deque[int] = deque(maxlen=_RECENT_REPLIES)
        self._bandwidth = math.inf
        self._replies = 0
        self._since_beat = [0, 0.0]
        self._last_beat: tuple[float, int] | None = None

    @property
    def service(self) -> float | None:
        """Seconds that the device works on one request; None before the first reply."""
        if not self._services:
            return None
        return statistics.median(self._services) + min(self._overheads, default=0.0)

    def set_round_trip(self, seconds: float) -> None:
        """Observe the least of the recent round trips of an empty frame."""
        self._round_trip = seconds
        self._resize()

    def set_bandwidth(self, bytes_per_s: float) -> None:
        """Observe the link's bandwidth towards the device."""
        self._bandwidth = bytes_per_s
        self._resize()

    def set_memory(self, available_bytes: int) -> None:
        """Observe how much memory the device has left."""
        self.most_bytes = max(1, min(MOST_BYTES, available_bytes // _MEMORY_SHARE))
        self._resize()

    def record_reply(self, seconds: float, size: int) -> None:
        """Observe a reply: the device's own seconds for the request, and the bytes of its body."""
        self._services.append(seconds)
        self._sizes.append(size)
        self._since_beat[0] += 1
        self._since_beat[1] += seconds
        self._replies += 1
        if self._replies <= _OFTEN_AT_FIRST or self._replies % _RECENT_REPLIES == 0:
            self._resize()

    def record_totals(self, busy_s: float, served: int) -> None:
        """Observe the agent's sums since it began: seconds at work, requests answered.

        What is more than the device's own seconds is the agent's overhead, which occupies it, too.
        The least of the recent ones counts: the sums may hold other work, such as loading.
        """
        before, self._last_beat = self._last_beat, (busy_s, served)
        replies, own_s = self._since_beat
        self._since_beat = [0, 0.0]
        if before is None or not replies or served - before[1] < _ENOUGH_SERVED:
            return
        each = (busy_s - before[0]) / (served - before[1])
        self._overheads.append(max(0.0, each - own_s / replies))
        self._resize()

    def _resize(self) -> None:
        service = self.service
        if self._fixed is not None or service is None:
            return
        size = statistics.fmean(self._sizes)
        transfer = size / self._bandwidth
        interval = max(service, transfer)
        cycle = self._round_trip + transfer + service + HOST_JITTER_S
        wanted = cycle / interval * _MARGIN if interval > 0 else LARGEST
        fitting = self.most_bytes / size if size > 0 else LARGEST
        self.size = max(SMALLEST, min(LARGEST, math.ceil(min(wanted, LARGEST)), int(fitting)))


_FIRST, _LARGEST, _GROWTH = 16 << 10, 1 << 20, 4
_LONG_S = 0.020
_ROUND_TRIPS = 4
_AGAIN = 2


def measure_bandwidth(ping: Callable[[int], float], round_trip: float) -> float | None:
    """Return the link's bytes per second towards the device; None where it is too fast to tell.

    `ping(size)` is a round trip in seconds with `size` bytes on the way there, `round_trip` an
    empty one. The size grows until the bytes take 20 ms and four round trips, at most to 1 MiB; the
    last size goes out again, since TCP begins slowly, and the quickest counts.
    """
    size, enough = _FIRST, max(_LONG_S, _ROUND_TRIPS * round_trip)
    taken = ping(size) - round_trip
    while taken < enough and size < _LARGEST:
        size *= _GROWTH
        taken = ping(size) - round_trip
    for _ in range(_AGAIN):
        taken = min(taken, ping(size) - round_trip)
    return size / taken if taken > 0 else None


DECOMPRESSED_PER_S = 25e6
"""Bytes per second that the slowest boards unpack, on the safe side."""
_GAIN = 0.8
_TRIALS = 8
_WORTH_A_TRIAL = 512


def gains(raw: int, packed: int, seconds: float, bytes_per_s: float) -> bool:
    """Whether `raw` bytes arrive clearly sooner as `packed` bytes, compressed in `seconds`."""
    unpacking = raw / DECOMPRESSED_PER_S
    return seconds + packed / bytes_per_s + unpacking < _GAIN * raw / bytes_per_s


class Compression:
    """Decides for one link; safe in several threads.

    Its bandwidth is None where it is too fast to measure.

    "auto" packs the first requests that are worth it for trial only, and then goes by them.
    """

    def __init__(
        self,
        mode: CompressionMode,
        bytes_per_s: float | None = None,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self._bandwidth = math.inf if bytes_per_s is None else bytes_per_s
        self._clock = clock
        self._lock = threading.Lock()
        self._left = _TRIALS
        self._raw, self._packed, self._seconds = 0, 0, 0.0
        self._decided: bool | None = None
        if mode != "auto":
            self._decided = mode == "on"
        elif not gains(1, 0, 0.0, self._bandwidth):
            self._decided = False  # on so quick a link unpacking alone takes longer

    def wanted(self, arrays: Sequence[NDArray[Any]]) -> bool:
        """Whether the frame with these arrays should be packed."""
        if self._decided is None and sum(array.nbytes for array in arrays) >= _WORTH_A_TRIAL:
            self._try(arrays)
        return bool(self._decided)

    def _try(self, arrays: Sequence[NDArray[Any]]) -> None:
        body = [array.tobytes() for array in arrays]
        began = self._clock()
        packed = pack(body)
        seconds = self._clock() - began
        with self._lock:
            self._raw += sum(map(len, body))
            self._packed += len(packed)
            self._seconds += seconds
            self._left -= 1
            if self._left == 0:
                self._decided = gains(self._raw, self._packed, self._seconds, self._bandwidth)

"""Whether requests travel compressed: where that clearly gains time, which the first ones show."""

import math
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any, Literal, TypeAlias

from numpy.typing import NDArray

from edgeflare_agent.wire import pack

CompressionMode: TypeAlias = Literal["auto", "on", "off"]

DECOMPRESSED_PER_S = 25e6
"""Bytes per second that the slowest boards unpack, on the safe side."""
_GAIN = 0.8
_TRIALS = 8
_WORTH_A_TRIAL = 512


def gains(raw: int, packed: int, seconds: float, bytes_per_s: float) -> bool:
    """Whether bodies of `raw` bytes arrive clearly sooner as `packed` bytes, packed in `seconds`."""
    unpacking = raw / DECOMPRESSED_PER_S
    return seconds + packed / bytes_per_s + unpacking < _GAIN * raw / bytes_per_s


class Compression:
    """Decides for one link; safe in several threads. Its bandwidth is None where it is too fast to tell.

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

"""How many bytes a second a link takes, from heartbeats that carry some."""

from collections.abc import Callable

_FIRST, _LARGEST, _GROWTH = 16 << 10, 1 << 20, 4
_LONG_S = 0.020
_ROUND_TRIPS = 4
_AGAIN = 2


def measure_bandwidth(ping: Callable[[int], float], round_trip: float) -> float | None:
    """Return the link's bytes per second towards the device; None where it is too fast to tell.

    `ping(size)` is a round trip in seconds with so many bytes on the way there, `round_trip` an empty
    one. The size grows until the bytes take 20 ms and four round trips, at most to 1 MiB; the last
    size goes out again, since TCP begins slowly, and the quickest counts.
    """
    size, enough = _FIRST, max(_LONG_S, _ROUND_TRIPS * round_trip)
    taken = ping(size) - round_trip
    while taken < enough and size < _LARGEST:
        size *= _GROWTH
        taken = ping(size) - round_trip
    for _ in range(_AGAIN):
        taken = min(taken, ping(size) - round_trip)
    return size / taken if taken > 0 else None

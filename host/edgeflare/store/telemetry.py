"""How the devices fared, minute by minute."""

from collections.abc import Iterator, Sequence
from dataclasses import fields
from typing import Any

from sqlalchemy import Row, insert, select

from edgeflare.devices.telemetry import DeviceMinute
from edgeflare.store import tables
from edgeflare.store.access import Access
from edgeflare.store.documents import moment, record

_TELEMETRY = tables.telemetry
_LAST_BUCKET = 10_000
"""No time is in a bucket so far out: see `Latencies`."""
_MOST = 1 << 63
_FIELDS = [field.name for field in fields(DeviceMinute)]


class Telemetry(Access):
    """The part of the store that holds what is known of the devices' minutes."""

    def add_telemetry(self, minutes: Sequence[DeviceMinute]) -> None:
        """Add some minutes in one transaction; one that was interrupted may come in several parts."""
        if not minutes:
            return
        with self._writing() as connection:
            connection.execute(insert(_TELEMETRY), [_to_row(one) for one in minutes])

    def telemetry(self) -> Iterator[DeviceMinute]:
        """Every minute of every device, in the order they were added."""
        return self._pages(select(_TELEMETRY), _TELEMETRY.c.position, _from_row)


def _to_row(minute: DeviceMinute) -> dict[str, Any]:
    buckets = minute.latencies or {}
    return {name: getattr(minute, name) for name in _FIELDS} | {
        "minute": minute.minute.isoformat(),
        "latencies": [list(pair) for pair in buckets.items()],
        "throttle_reasons": list(minute.throttle_reasons),
    }


def _from_row(row: Row[Any]) -> DeviceMinute:
    latencies = dict(row.latencies)
    if not all(abs(one) < _LAST_BUCKET and 0 < n < _MOST for one, n in latencies.items()):
        raise ValueError("latencies are no counts of times")
    return record(DeviceMinute, row, minute=moment(row.minute), latencies=latencies)

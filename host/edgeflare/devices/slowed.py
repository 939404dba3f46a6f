"""Which devices were slowed down while they answered, by heat or for want of power."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime

from edgeflare.devices.telemetry import DeviceMinute


@dataclass
class Slowed:
    """In how many minutes a device answered, in how many of them it was slowed down, and why."""

    device: str
    _minutes: set[datetime] = field(default_factory=set)
    _slowed: set[datetime] = field(default_factory=set)
    _reasons: dict[str, None] = field(default_factory=dict)

    def add(self, minute: DeviceMinute) -> None:
        """Take in a minute, or a part of one."""
        if minute.queries:
            self._minutes.add(minute.minute)
        if minute.throttled:
            self._slowed.add(minute.minute)
            self._reasons.update(dict.fromkeys(minute.throttle_reasons))

    @property
    def minutes(self) -> int:
        """In how many minutes it answered."""
        return len(self._minutes)

    @property
    def slowed(self) -> int:
        """In how many of them it was slowed down."""
        return len(self._slowed)

    @property
    def reasons(self) -> tuple[str, ...]:
        """What slowed it down while it answered."""
        return tuple(self._reasons)

    @property
    def words(self) -> str:
        """What there is to say of a device that was slowed down."""
        why = f" ({', '.join(self._reasons)})" if self._reasons else ""
        unit = "minute" if self.minutes == 1 else "minutes"
        return (
            f"{self.device} was slowed down in {self.slowed} of {self.minutes} {unit}{why}: times and rates of "
            "this campaign are not what the device can do; its answers are not affected as far as is known"
        )


def slowed_devices(minutes: Iterable[DeviceMinute]) -> Iterator[Slowed]:
    """Yield each device that was slowed down while it answered."""
    found: dict[str, Slowed] = {}
    for minute in minutes:
        found.setdefault(minute.device, Slowed(minute.device)).add(minute)
    yield from (one for one in found.values() if one.slowed)

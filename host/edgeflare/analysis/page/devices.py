"""The devices of a campaign as a page shows them: what they are, what they did, how they fared."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, NamedTuple

from markupsafe import Markup

from edgeflare.analysis.page.again import runtime_words
from edgeflare.analysis.page.svg import course
from edgeflare.devices import DeviceMinute
from edgeflare.store import Store

_MOST_CHARTED = 24
_ABOUT = ("board", "soc", "cpu", "arch", "os", "kernel", "python", "numpy")


class DeviceCard(NamedTuple):
    """A device of one fingerprint: its name, and name and value of what is known of it."""

    name: str
    digest: str
    about: list[tuple[str, str]]


class Charts(NamedTuple):
    """A device's courses over the minutes, each with its title; none where nobody tells."""

    device: str
    drawings: list[tuple[str, Markup]]


def device_cards(devices: Iterable[Mapping[str, Any]]) -> list[DeviceCard]:
    """Return the devices of `Summary.devices`."""
    from edgeflare.devices.doctor.cpu import shown_name

    cards = []
    for device in devices:
        fingerprint = device["fingerprint"]
        about = [
            (name, shown_name(str(fingerprint[name])) if name == "cpu" else str(fingerprint[name]))
            for name in _ABOUT
            if fingerprint.get(name)
        ]
        if fingerprint.get("runtime"):
            about.append(("runtime", runtime_words(fingerprint["runtime"])))
        cards.append(DeviceCard(device["name"], device["digest"], about))
    return cards


def device_charts(store: Store) -> list[Charts]:
    """Return temperature and inference time of the first 24 devices that were watched, by name."""
    minutes: dict[str, dict[datetime, _Minute]] = {}
    for one in store.telemetry():
        if one.device in minutes or len(minutes) < _MOST_CHARTED:
            of_device = minutes.setdefault(one.device, {})
            of_device[one.minute] = of_device.get(one.minute, _Minute()).with_part(one)
    return [_charts(name, dict(sorted(minutes[name].items()))) for name in sorted(minutes)]


class _Minute(NamedTuple):
    temperature: float | None = None
    latency: float | None = None
    clock: float | None = None

    def with_part(self, part: DeviceMinute) -> "_Minute":
        clock = part.frequency_least_mhz
        return _Minute(
            _largest(self.temperature, part.temperature_max_c),
            _largest(self.latency, _milliseconds(part.latency_median_s)),
            clock
            if self.clock is None
            else self.clock
            if clock is None
            else min(self.clock, clock),
        )


def _charts(device: str, minutes: Mapping[datetime, _Minute]) -> Charts:
    times = list(minutes)
    every = list(minutes.values())
    drawings = [
        (title, course(times, values, f"{device}: {title}"))
        for title, values in (
            ("temperature, °C", [one.temperature for one in every]),
            ("inference, median ms", [one.latency for one in every]),
            ("slowest core, MHz", [one.clock for one in every]),
        )
    ]
    return Charts(device, [one for one in drawings if one[1]] if len(times) > 1 else [])


def _largest(one: float | None, other: float | None) -> float | None:
    return max((value for value in (one, other) if value is not None), default=None)


def _milliseconds(seconds: float | None) -> float | None:
    return None if seconds is None else 1000 * seconds

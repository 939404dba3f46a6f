"""The devices of a campaign on its page: fingerprints, health and charts."""

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import Any, NamedTuple

from markupsafe import Markup

from edgeflare._internal.text import NOTHING
from edgeflare.campaign.status import CampaignStatus
from edgeflare.devices import DeviceMinute, DeviceStatus
from edgeflare.document import Block, Column, Figures, Heading, KeyFigure, Table
from edgeflare.reports.charts import time_chart
from edgeflare.store import Store
from edgeflare.words.devices import runtime_words

_MOST_CHARTED = 24
_ABOUT = ("board", "soc", "cpu", "arch", "os", "kernel", "python", "numpy")


class Charts(NamedTuple):
    """Charts of a device over the minutes, each with its title; none without telemetry."""

    device: str
    drawings: list[tuple[str, Markup]]


def fingerprints(devices: Iterable[Mapping[str, Any]]) -> list[Block]:
    """Return what is known of each of `Summary.devices`."""
    from edgeflare.devices.cpu_names import shown_name

    blocks: list[Block] = []
    for device in devices:
        known = {name: str(value) for name, value in device["fingerprint"].items() if value}
        if "cpu" in known:
            known["cpu"] = shown_name(known["cpu"])
        rows = [KeyFigure(name, known[name]) for name in _ABOUT if name in known]
        if "runtime" in known:
            rows.append(KeyFigure("runtime", runtime_words(device["fingerprint"]["runtime"])))
        rows.append(KeyFigure("fingerprint", device["digest"][:16]))
        blocks += [Heading(device["name"]), Figures(tuple(rows))]
    return blocks


def health_table(status: CampaignStatus) -> list[Block]:
    """Return the devices as the campaign saw them last."""
    columns = (
        Column("device", 0, lambda one: one.name, text=True),
        Column(
            "state",
            0,
            lambda one: ": ".join(filter(None, [one.state.value, one.detail])),
            text=True,
        ),
        Column("reconnects", 0, lambda one: str(one.reconnects)),
        Column("slowed down by", 0, _slowed_by, text=True),
    )
    if not status.devices:
        return []
    return [
        Heading("As the campaign saw them last"),
        Table(columns, status.devices, identifier="health"),
    ]


def _slowed_by(one: DeviceStatus) -> str:
    return ", ".join(one.throttle_reasons) or (NOTHING if one.throttled is None else "nothing")


def device_charts(store: Store) -> list[Charts]:
    """Return temperature and inference time of the first 24 devices that were watched, by name."""
    minutes: dict[str, dict[datetime, _ChartMinute]] = {}
    for one in store.telemetry():
        if one.device in minutes or len(minutes) < _MOST_CHARTED:
            of_device = minutes.setdefault(one.device, {})
            of_device[one.minute] = of_device.get(one.minute, _ChartMinute()).with_part(one)
    return [_charts(name, dict(sorted(minutes[name].items()))) for name in sorted(minutes)]


class _ChartMinute(NamedTuple):
    temperature: float | None = None
    latency: float | None = None
    clock: float | None = None

    def with_part(self, part: DeviceMinute) -> "_ChartMinute":
        return _ChartMinute(
            _known(max, self.temperature, part.temperature_max_c),
            _known(max, self.latency, _milliseconds(part.latency_median_s)),
            _known(min, self.clock, part.frequency_least_mhz),
        )


def _charts(device: str, minutes: Mapping[datetime, _ChartMinute]) -> Charts:
    times = list(minutes)
    every = list(minutes.values())
    drawings = [
        (title, time_chart(times, values, f"{device}: {title}"))
        for title, values in (
            ("temperature, °C", [one.temperature for one in every]),
            ("inference, median ms", [one.latency for one in every]),
            ("slowest core, MHz", [one.clock for one in every]),
        )
    ]
    return Charts(device, [one for one in drawings if one[1]] if len(times) > 1 else [])


def _known(choose: Callable[[list[float]], float], *values: float | None) -> float | None:
    known = [value for value in values if value is not None]
    return choose(known) if known else None


def _milliseconds(seconds: float | None) -> float | None:
    return None if seconds is None else 1000 * seconds

"""How the devices of a campaign fared, as a table."""

from collections.abc import Callable, Sequence
from typing import TypeAlias

from rich.console import Console
from rich.markup import escape

from edgeflare.analysis import TelemetryFigures
from edgeflare.cli.tables import plain_table

_Figure: TypeAlias = Callable[[TelemetryFigures], str]

_WHOLE = 100.0
"""From here on three figures are no fractions."""


def print_telemetry(console: Console, devices: Sequence[TelemetryFigures]) -> None:
    """Print a row for each device; columns of which no device tells anything are left out."""
    if not devices:
        return
    shown = {name: figure for name, figure in _COLUMNS.items() if any(map(figure, devices))}
    table = plain_table("device", *shown)
    for one in devices:
        table.add_row(
            escape(one.device), *(escape(figure(one)) or "-" for figure in shown.values())
        )
    console.print(table)


def _latency(one: TelemetryFigures) -> str:
    times = (one.latency_median_s, one.latency_p99_s, one.latency_max_s)
    return "" if one.latency_median_s is None else "/".join(map(_milliseconds, times))


def _milliseconds(seconds: float | None) -> str:
    if seconds is None:
        return "-"
    milliseconds = 1000 * seconds
    return f"{milliseconds:.0f}" if milliseconds >= _WHOLE else f"{milliseconds:.3g}"


def _throttled(one: TelemetryFigures) -> str:
    if one.throttled_share is None:
        return ""
    why = f": {', '.join(one.throttle_reasons)}" if one.throttle_reasons else ""
    return f"{100 * one.throttled_share:.0f} %{why}" if one.throttled_minutes else "no"


def _battery(one: TelemetryFigures) -> str:
    if one.battery_from is None or one.battery_to is None:
        return ""
    return f"{one.battery_from:.0f} to {one.battery_to:.0f} %"


def _told(value: float | None, unit: str, factor: float = 1.0) -> str:
    return "" if value is None else f"{factor * value:.0f} {unit}"


_COLUMNS: dict[str, _Figure] = {
    "minutes": lambda one: str(one.minutes),
    "queries": lambda one: str(one.queries),
    "inference p50/p99/max ms": _latency,
    "hottest": lambda one: _told(one.temperature_max_c, "°C"),
    "lowest clock": lambda one: _told(one.frequency_least_mhz, "MHz"),
    "GPU busy": lambda one: _told(one.gpu_load, "%", 100),
    "lowest GPU clock": lambda one: _told(one.gpu_least_mhz, "MHz"),
    "memory": lambda one: _told(one.rss_bytes, "MB", 1e-6),
    "slowed down": _throttled,
    "battery": _battery,
}

"""Devices of a campaign: what they did, how they fared, and how far they agree."""

from collections.abc import Callable, Sequence

from edgeflare._internal.text import NOTHING, counted, percent_text
from edgeflare.analysis.agreement import (
    Agreement,
    EveryDevice,
)
from edgeflare.analysis.devices import TelemetryFigures
from edgeflare.analysis.summary import Summary
from edgeflare.document import Block, Column, Heading, Item, Listing, Table, Text, table_of
from edgeflare.words.devices import agreement_lines

_SEARCHED = (
    Column("searched", 1, lambda one: f"{one.searched:,}"),
    Column("found", 0, lambda one: f"{one.found:,}"),
    Column("success rate", 0, lambda one: percent_text(one.success_rate)),
    Column("search queries", 2, lambda one: f"{one.queries:,}"),
)


def devices_tables(summary: Summary) -> list[Block]:
    """Return what each device did, and how many triggers of each device trigger on the others."""
    if not summary.by_device:
        return []
    columns = (
        Column(
            "device",
            0,
            lambda one: one.name + (" (throttled)" if one.name in summary.throttled else ""),
            text=True,
        ),
        Column("seeds done", 0, lambda one: f"{one.finished:,}"),
        *(_SEARCHED if summary.has_searches else ()),
        Column("failed", 0, lambda one: f"{one.failed:,}"),
    )
    return [
        Heading("What each device did"),
        Table(columns, summary.by_device, identifier="by-device"),
        *_transfers(summary),
    ]


def _transfers(summary: Summary) -> list[Block]:
    """Return a row for each device whose triggers were tried, a column for each it was tried on."""
    if not summary.transfers:
        return []
    cells = {
        (
            transfer.replica,
            transfer.on_device,
        ): f"{transfer.deviating}/{transfer.tried} {100 * transfer.rate:.0f} %"
        for transfer in summary.transfers
    }
    columns = sorted({on_device for _, on_device in cells})
    rows = [
        [replica or "the pool", *(cells.get((replica, column), NOTHING) for column in columns)]
        for replica in sorted({replica for replica, _ in cells})
    ]
    return [
        Heading("Triggers of each device that also trigger on another one"),
        table_of(["triggers of", *(f"on {name}" for name in columns)], rows),
    ]


def telemetry_table(devices: Sequence[TelemetryFigures]) -> list[Block]:
    """Return load, temperature, clocks and throttling of each device while it answered."""
    if not devices:
        return []
    return [Heading("Telemetry"), Table(_TELEMETRY, devices, identifier="telemetry")]


def _latency(
    figure: Callable[[TelemetryFigures], float | None],
) -> Callable[[TelemetryFigures], str]:
    def text(one: TelemetryFigures) -> str:
        seconds = figure(one)
        if seconds is None:
            return ""
        return f"{1000 * seconds:.0f}" if seconds >= 0.1 else f"{1000 * seconds:.3g}"

    return text


def _with_unit(value: float | None, unit: str, factor: float = 1.0) -> str:
    return "" if value is None else f"{factor * value:,.0f} {unit}"


def _throttled(one: TelemetryFigures) -> str:
    if one.throttled_share is None:
        return ""
    why = f": {', '.join(one.throttle_reasons)}" if one.throttle_reasons else ""
    share = percent_text(one.throttled_share)
    minutes = f"{counted(one.throttled_minutes, 'minute')}, {share} of the readings"
    return f"{minutes}{why}" if one.throttled_minutes else "no"


def _battery(one: TelemetryFigures) -> str:
    if one.battery_from is None or one.battery_to is None:
        return ""
    return f"{one.battery_from:.0f} to {one.battery_to:.0f} %"


_TELEMETRY = (
    Column("device", 0, lambda one: one.device, text=True),
    Column("minutes", 3, lambda one: f"{one.minutes:,}"),
    Column("queries", 4, lambda one: f"{one.queries:,}"),
    Column("median ms", 0, _latency(lambda one: one.latency_median_s), optional=True),
    Column("99 % ms", 5, _latency(lambda one: one.latency_p99_s), optional=True),
    Column("longest ms", 5, _latency(lambda one: one.latency_max_s), optional=True),
    Column("hottest", 0, lambda one: _with_unit(one.temperature_max_c, "°C"), optional=True),
    Column(
        "lowest clock", 2, lambda one: _with_unit(one.frequency_least_mhz, "MHz"), optional=True
    ),
    Column("GPU busy", 1, lambda one: _with_unit(one.gpu_load, "%", 100), optional=True),
    Column("lowest GPU clock", 1, lambda one: _with_unit(one.gpu_least_mhz, "MHz"), optional=True),
    Column("memory", 2, lambda one: _with_unit(one.rss_bytes, "MB", 1e-6), optional=True),
    Column("slowed down", 0, _throttled, text=True, optional=True),
    Column("battery", 6, _battery, optional=True),
)


# Agreement of devices


def agreement_blocks(pairs: Sequence[Agreement], every_device: EveryDevice | None) -> list[Block]:
    """Return how far each pair of devices agrees, and how the two differ."""
    if not pairs:
        return []
    rows = [
        (f"{pair.first} / {pair.second}", name, compared)
        for pair in pairs
        for name, compared in (("seeds", pair.seeds), ("triggers", pair.triggers))
    ]
    columns = (
        Column("devices", 0, lambda row: row[0], text=True),
        Column("inputs", 0, lambda row: f"{row[2].inputs:,} {row[1]}"),
        Column("bit-equal", 0, lambda row: f"{row[2].bit_equal:,}"),
        Column("max difference", 0, lambda row: _difference_text(row[2].largest_difference)),
        Column("labels differ", 0, lambda row: f"{row[2].labels_differ:,}"),
    )
    return [
        Heading("Agreement of devices: the same model, the same inputs"),
        Table(columns, rows, identifier="agreements"),
        *_matrix(pairs),
        Listing(tuple(map(Item, agreement_lines(pairs, every_device)))),
    ]


def _matrix(pairs: Sequence[Agreement]) -> list[Block]:
    """Return on how many inputs each two of several devices decide alike; nothing for two."""
    names = list(dict.fromkeys(name for pair in pairs for name in (pair.first, pair.second)))
    if len(names) < 3:
        return []
    alike: dict[frozenset[str], str] = {}
    for pair in pairs:
        found = pair.triggers
        same = found.inputs - found.labels_differ - found.nonfinite
        alike[frozenset((pair.first, pair.second))] = f"{same:,} of {found.inputs:,}"
    rows = [[name, *(alike.get(frozenset((name, other)), "") for other in names)] for name in names]
    return [Text("Triggers on which two decide alike:"), table_of(["", *names], rows)]


def _difference_text(value: float | None) -> str:
    return NOTHING if value is None else f"{value:.1e}"

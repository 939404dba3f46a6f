"""Devices of a campaign: what they did, how they fared, and how far they agree."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from edgeflare._internal.text import NOTHING, counted, percent_text
from edgeflare.analysis.agreement import (
    Agreement,
    DeviceCluster,
    EveryDevice,
    FingerprintDifference,
    clusters,
)
from edgeflare.analysis.devices import TelemetryFigures
from edgeflare.analysis.summary import Summary
from edgeflare.document import Block, Column, Heading, Item, Listing, Table, Text, table_of

_EXAMPLES_SHOWN = 3
_FEW = 4
_FIELD_NAMES = {
    "arch": "architecture",
    "cpu": "processor",
    "soc": "SoC",
    "os": "operating system",
    "python": "Python",
    "cpu_flags": "processor flags",
}


def runtime_words(runtime: Mapping[str, Any], *, brief: bool = False) -> str:
    """Return a runtime in effect, like ``tflite (ai-edge-litert 2.3.0), XNNPACK, threads 1``.

    `brief`: without options, only what executes the operators (a delegate, or the nodes of each
    provider).
    """
    known = dict(runtime)
    name, version, package = (str(known.pop(key, "")) for key in ("name", "version", "package"))
    parts = [f"{name} ({package} {version})" if package else f"{name} {version}".strip()]
    if delegate := known.pop("delegate", None):
        parts.append(str(delegate))
    if "nodes" in known:
        nodes = known.pop("nodes")
        if isinstance(nodes, Mapping):
            parts += [f"{count} nodes on {provider}" for provider, count in nodes.items()]
        else:
            parts.append("nodes per provider not known")
    if not brief:
        for key, value in known.items():
            if value not in (None, "", [], {}):
                parts.append(f"{key.replace('_', ' ')} {value_words(value)}")
    return ", ".join(filter(None, parts))


def value_words(value: Any) -> str:
    """Return a value of a fingerprint or an environment as text, without brackets."""
    if isinstance(value, Mapping):
        return " + ".join(f"{name} {value_words(one)}" for name, one in value.items())
    return " + ".join(map(value_words, value)) if isinstance(value, list | tuple) else str(value)


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
    lines = [
        line
        for pair in pairs
        for line in (
            triggers_line(pair),
            examples_line(pair),
            difference_line(pair),
            gaps_line(pair),
        )
        if line
    ]
    if every_device is not None and every_device.devices > 2:
        lines.append(
            f"{every_device.on_all:,} of {every_device.answered:,} triggers trigger on all "
            f"{every_device.devices} devices (the deployed file itself)"
        )
    lines += map(cluster_line, clusters(pairs))
    return [
        Heading("Agreement of devices: the same model, the same inputs"),
        Table(columns, rows, identifier="agreements"),
        *_matrix(pairs),
        Listing(tuple(map(Item, lines))),
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


def cluster_line(cluster: DeviceCluster) -> str:
    """Return which devices answer alike, and what they alone have in common."""
    names = " and ".join(cluster.devices)
    if len(cluster.devices) == 1:
        words = f"{names} answers as no other"
    else:
        words = f"{names} answer alike to the last bit"
    shared = [
        f"{_field_words(name)} {'none' if value is None else value_words(value)}"
        for name, value in cluster.shared
        if not isinstance(value, list)
    ]
    return words + (f"; only there: {', '.join(shared)}" if shared else "")


def _difference_text(value: float | None) -> str:
    return NOTHING if value is None else f"{value:.1e}"


def triggers_line(pair: Agreement) -> str:
    """Return how many triggers trigger on both devices, or on one of the two."""
    only = [
        f"{count:,} on {name} only" + (f" ({pair.cause})" if count else "")
        for count, name in ((pair.only_first, pair.first), (pair.only_second, pair.second))
    ]
    text = ", ".join([f"{pair.on_both:,} on both (the deployed file itself)", *only])
    if pair.narrowly:
        text += (
            f"; {pair.narrowly:,} of those on one only tie or are below the margin floor on the "
            "other"
        )
    return f"triggers of {pair.first} / {pair.second}: {text}"


def examples_line(pair: Agreement) -> str:
    """Return the seeds of the first triggers that trigger on one of the two; empty without any."""
    if not pair.examples:
        return ""
    shown = [
        f"{example.seed_id} (on {example.on_device})" for example in pair.examples[:_EXAMPLES_SHOWN]
    ]
    more = pair.only_first + pair.only_second - len(shown)
    return f"on one only, from {', '.join(shown)}" + (f" and {more:,} more" if more else "")


def gaps_line(pair: Agreement) -> str:
    """Return the numbers of inputs without two finite answers; empty without any."""
    gaps = (
        (pair.seeds.unanswered, "seeds answered by one of them alone"),
        (pair.triggers.unanswered, "triggers answered by one of them alone"),
        (pair.seeds.nonfinite, "seeds with NaN or infinity in an answer"),
        (pair.triggers.nonfinite, "triggers with NaN or infinity in an answer"),
    )
    return ", ".join(f"{count:,} {what}" for count, what in gaps if count)


def difference_line(pair: Agreement) -> str:
    """Return the differences of two devices' fingerprints: first value / second value."""
    found = {difference.field: difference for difference in pair.differences}
    if "arch" in found:  # another architecture has other flags
        found.pop("cpu_flags", None)
    if "soc" in found and "board" in found:
        soc, board = found["soc"], found["board"]
        if (soc.first, soc.second) == (board.first, board.second):
            found.pop("soc")
    sides = [
        f"{side}: "
        + ", ".join(_difference(one, pair) for one in found.values() if one.side == side)
        for side in ("hardware", "runtime", "system")
        if any(one.side == side for one in found.values())
    ]
    return (
        f"they differ in {'; '.join(sides)}" if sides else "no difference between the two is known"
    )


def _difference(one: FingerprintDifference, pair: Agreement) -> str:
    words = _field_words(one.field)
    if isinstance(one.first, list) and isinstance(one.second, list):
        here, there = (set(map(str, values)) for values in (one.first, one.second))
        if len(here | there) > _FEW:
            return (
                f"{words} ({len(here - there)} of {pair.first} alone, "
                f"{len(there - here)} of {pair.second} alone)"
            )
    return f"{words} {_value(one.first, one)} / {_value(one.second, one)}"


def _field_words(field: str) -> str:
    name = field.removeprefix("runtime.")
    return _FIELD_NAMES.get(name, name.replace("_", " "))


def _value(value: Any, of: FingerprintDifference) -> str:
    if value is None:
        return "none" if of.side == "runtime" else "unknown"
    return value_words(value if isinstance(value, dict | list) else of.named(value))

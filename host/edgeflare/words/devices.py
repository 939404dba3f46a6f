"""Devices, their runtimes and how far two of them agree, in words."""

from collections.abc import Mapping, Sequence
from typing import Any

from edgeflare.analysis.agreement import (
    Agreement,
    DeviceCluster,
    EveryDevice,
    FingerprintDifference,
    clusters,
)

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


def agreement_lines(pairs: Sequence[Agreement], every_device: EveryDevice | None) -> list[str]:
    """Return how far each pair of devices agrees and how the two differ, then all of them together."""
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
    return lines


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

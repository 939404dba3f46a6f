"""How far devices with the same model agree, in words and as a table."""

from collections.abc import Sequence
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.padding import Padding
from rich.table import Table

from edgeflare.analysis import Agreement, Compared, EveryDevice, Unlike
from edgeflare.cli.tables import plain_table

_NAMES = {
    "arch": "architecture",
    "cpu": "processor",
    "soc": "SoC",
    "os": "operating system",
    "python": "Python",
    "cpu_flags": "processor flags",
}
_FEW = 4
_SHOWN = 3


def print_agreements(
    console: Console, pairs: Sequence[Agreement], every_device: EveryDevice | None
) -> None:
    """Print how each pair of devices agrees, and what sets them apart; nothing where there is no pair."""
    if not pairs:
        return
    console.print("The same model on two devices, the same inputs:")
    console.print(_table(pairs))
    for pair in pairs:
        console.print(escape(triggers_line(pair)))
        for line in (examples_line(pair), difference_line(pair), gaps_line(pair)):
            if line:
                console.print(Padding(escape(line), (0, 0, 0, 2)))
    if every_device is not None and every_device.devices > 2:
        console.print(
            f"{every_device.on_all} of {every_device.answered} triggers trigger on all "
            f"{every_device.devices} devices (compression)"
        )


def triggers_line(pair: Agreement) -> str:
    """Return on which of the two devices how many triggering inputs trigger."""
    only = [
        f"{count} on {name} only" + (f" ({pair.cause})" if count else "")
        for count, name in ((pair.only_first, pair.first), (pair.only_second, pair.second))
    ]
    text = ", ".join([f"{pair.on_both} on both (compression)", *only])
    if pair.narrowly:
        text += (
            f"; {pair.narrowly} of those on one only tie or are below the margin floor on the other"
        )
    return f"triggers of {pair.first} / {pair.second}: {text}"


def examples_line(pair: Agreement) -> str | None:
    """Return the seeds of the first triggering inputs that trigger on one of the two; None: there are none."""
    if not pair.examples:
        return None
    shown = [f"{one.seed_id} (on {one.on_device})" for one in pair.examples[:_SHOWN]]
    more = pair.only_first + pair.only_second - len(shown)
    return f"on one only, from {', '.join(shown)}" + (f" and {more} more" if more else "")


def gaps_line(pair: Agreement) -> str | None:
    """Return how many inputs one of the two devices has not answered, and NaN or infinity; None: none."""
    gaps = [
        (pair.seeds.unanswered, "seeds answered by one of them alone"),
        (pair.triggers.unanswered, "triggers answered by one of them alone"),
        (pair.seeds.nonfinite, "seeds with NaN or infinity in an answer"),
        (pair.triggers.nonfinite, "triggers with NaN or infinity in an answer"),
    ]
    told = [f"{count} {what}" for count, what in gaps if count]
    return ", ".join(told) or None


def difference_line(pair: Agreement) -> str:
    """Return in what the two devices differ: a value of the first / of the second."""
    if not pair.differences:
        return "nothing that is known of the two devices differs"
    told = _telling(pair.differences)
    sides = [
        f"{side}: " + ", ".join(_difference(one, pair) for one in told if one.side == side)
        for side in ("hardware", "runtime", "system")
        if any(one.side == side for one in told)
    ]
    return f"they differ in {'; '.join(sides)}"


def _table(pairs: Sequence[Agreement]) -> Table:
    table = plain_table("devices", "inputs", "bit-equal", "max difference", "labels differ")
    for pair in pairs:
        name = escape(f"{pair.first} / {pair.second}")
        for what, compared in (("seeds", pair.seeds), ("triggers", pair.triggers)):
            table.add_row(name, *_cells(what, compared))
            name = ""
    return table


def _cells(what: str, compared: Compared) -> tuple[str, ...]:
    largest = compared.largest_difference
    return (
        f"{compared.inputs} {what}",
        str(compared.bit_equal),
        "-" if largest is None else f"{largest:.1e}",
        str(compared.labels_differ),
    )


def _telling(found: Sequence[Unlike]) -> list[Unlike]:
    """Leave out what another field tells already: another architecture has other flags."""
    fields = {one.field: (one.first, one.second) for one in found}
    if "arch" in fields:
        fields.pop("cpu_flags", None)
    if fields.get("soc") == fields.get("board"):
        fields.pop("soc", None)
    return [one for one in found if one.field in fields]


def _difference(one: Unlike, pair: Agreement) -> str:
    name = one.field.removeprefix("runtime.")
    words = _NAMES.get(name, name.replace("_", " "))
    if isinstance(one.first, list) and isinstance(one.second, list):
        here, there = ({str(value) for value in values} for values in (one.first, one.second))
        if len(here | there) > _FEW:
            return (
                f"{words} ({len(here - there)} of {pair.first} alone, "
                f"{len(there - here)} of {pair.second} alone)"
            )
    return f"{words} {_value(one.first, one)} / {_value(one.second, one)}"


def _value(value: Any, of: Unlike) -> str:
    if value is None:
        return "none" if of.side == "runtime" else "unknown"
    if isinstance(value, dict):
        return " + ".join(f"{name} {one}" for name, one in value.items())
    return " + ".join(map(str, value)) if isinstance(value, list) else str(of.named(value))

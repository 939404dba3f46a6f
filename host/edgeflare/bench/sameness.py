"""Whether the cells of one pair were run with the same models, on the same devices."""

from collections.abc import Callable, Hashable, Iterator, Mapping
from typing import Any

from edgeflare.bench.cells import Cell
from edgeflare.bench.rows import CellRecords
from edgeflare.devices.likeness import differences
from edgeflare.store import Device

_SHOWN = 5
_SIDES = ("original", "deployed")

_Cells = dict[Cell, CellRecords]


def distinct_models(read: Mapping[Cell, CellRecords]) -> dict[str, tuple[dict[str, Any], ...]]:
    """Return for each pair what its cells had as models, each once; wherever the files lay."""
    found: dict[str, list[dict[str, Any]]] = {}
    for cell, records in read.items():
        if not records.models:
            continue
        known = found.setdefault(cell.pair, [])
        if all(_content(records.models) != _content(one) for one in known):
            known.append(records.models)
    return {pair: tuple(models) for pair, models in found.items()}


def sameness_notices(read: Mapping[Cell, CellRecords]) -> Iterator[str]:
    """Yield a sentence for each pair whose cells differ in models or devices, naming the cells.

    Last come the cells that went on with ``--force`` although something had changed.
    """
    for pair in dict.fromkeys(cell.pair for cell in read):
        own = {cell: one for cell, one in read.items() if cell.pair == pair}
        yield from _differing(pair, "with the same models", own, _models_key, _models_told)
        yield from _differing(pair, "on the same devices", own, _devices_key, _devices_told)
    for cell, records in read.items():
        yield from (f"{cell.name}: {text}" for text in records.forced)


def _differing(
    pair: str,
    how: str,
    read: _Cells,
    key: Callable[[CellRecords], Hashable],
    told: Callable[[CellRecords, CellRecords], str],
) -> Iterator[str]:
    """Yield a sentence where `key` is not the same for all; the largest group of cells comes last."""
    groups: dict[Hashable, _Cells] = {}
    for cell, records in read.items():
        one = key(records)
        if one:
            groups.setdefault(one, {})[cell] = records
    if len(groups) < 2:
        return
    most, *others = sorted(groups.values(), key=len, reverse=True)
    usual = next(iter(most.values()))
    parts = [
        f"{', '.join(cell.name for cell in group)} {told(next(iter(group.values())), usual)}"
        for group in others
    ]
    rest = f"{len(most)} others" if len(most) > 1 else next(iter(most)).name
    parts.append(f"{rest} {told(usual, next(iter(others[0].values())))}")
    yield (
        f"the cells of {pair} were not all run {how}, so that their figures don't belong together: "
        + "; ".join(parts)
    )


def _models_key(records: CellRecords) -> Hashable:
    sums = tuple(_model(records, side).get("sha256") for side in _SIDES)
    return sums if any(sums) else None


def _models_told(records: CellRecords, other: CellRecords) -> str:
    """Name the models that differ from the other cell's."""
    named = []
    for side in _SIDES:
        model = _model(records, side)
        if model.get("sha256") != _model(other, side).get("sha256"):
            name, start = model.get("name", "unknown"), str(model.get("sha256", ""))[:16]
            named.append(f"{side} {name}, SHA-256 {start}")
    return f"({'; '.join(named)})"


def _model(records: CellRecords, side: str) -> dict[str, Any]:
    return records.models.get(side) or {}


def _devices_key(records: CellRecords) -> Hashable:
    return frozenset(device.digest for device in records.devices)


def _devices_told(records: CellRecords, other: CellRecords) -> str:
    """Name the devices and what is different from the other cell's device of that name, or its first."""
    named = {device.name: device for device in other.devices}
    like = {device.digest for device in other.devices}
    parts = []
    for device in records.devices:
        fields = []
        if device.digest not in like:
            before = named.get(device.name, other.devices[0])
            fields = _fields(before, device)
        parts.append(f"{device.name}{' with ' if fields else ''}{', '.join(fields)}")
    return f"(on {'; '.join(parts)})"


def _fields(before: Device, device: Device) -> list[str]:
    found = differences(before.fingerprint, device.fingerprint)
    return [f"{name} {value}" for name, _, value in found[:_SHOWN]]


def _content(models: Mapping[str, Any]) -> dict[str, Any]:
    return {
        side: {key: value for key, value in (model or {}).items() if key != "path"}
        for side, model in models.items()
    }

"""Changes between the cells of one pair, which must not differ since they are compared."""

from collections.abc import Mapping
from typing import Any

from edgeflare.bench.cells import Cell
from edgeflare.bench.opening import Bench, State
from edgeflare.campaign.changes import check_unchanged, refuse_or_tell
from edgeflare.campaign.config import config_from
from edgeflare.devices.likeness import differences
from edgeflare.store import Store

_SHOWN = 5


def check_same_files(bench: Bench, states: Mapping[Cell, State], *, force: bool) -> str | None:
    """Compare models, seeds and libraries with those of the cells that were run, pair by pair.

    Only pairs with something left to run are looked at. Returns a notice where `force` lets changes
    pass, else raises UsageError naming them.
    """
    found: dict[str, None] = {}
    for pair in bench.suite.pairs:
        own = {cell: state for cell, state in states.items() if cell.pair == pair.name}
        if set(own.values()) == {"finished"}:
            continue
        for cell in (cell for cell, state in own.items() if state != "missing"):
            folder = bench.campaign(cell)
            with Store.open(folder) as store:
                config = config_from(store.campaign, str(folder))
                found |= dict.fromkeys(check_unchanged(config, store))
            break
    return refuse_or_tell(list(found), force=force)


def check_same_devices(bench: Bench, cell: Cell, *, force: bool) -> str | None:
    """Compare the devices that a cell has begun with to those of its pair's other cells.

    A device must be what it was in any of them; one that none of them had, like any device of theirs.
    Returns a notice where `force` lets changes pass, and keeps it in the cell's campaign; else raises
    UsageError naming them.
    """
    before: dict[str, list[dict[str, Any]]] = {}
    for other in bench.cells:
        if other.pair == cell.pair and other != cell and bench.state(other) != "missing":
            for name, described in devices_of(bench, other).items():
                if described not in before.setdefault(name, []):
                    before[name].append(described)
    everyone = [described for of_one in before.values() for described in of_one]
    found = []
    for name, described in devices_of(bench, cell).items():
        candidates = before.get(name, everyone)
        if not candidates or described in candidates:
            continue
        changed = ", ".join(
            f"{field} was {one}, is {other}"
            for field, one, other in differences(candidates[-1], described)[:_SHOWN]
        )
        whose = "it was" if name in before else f"{next(iter(before))} was"
        found.append(f"{name} is not what {whose} in other cells of {cell.pair}: {changed}")
    notice = refuse_or_tell(found, force=force)
    if notice is not None:
        with Store.open(bench.campaign(cell)) as store:
            store.add_notice(notice)
    return notice


def devices_of(bench: Bench, cell: Cell) -> dict[str, dict[str, Any]]:
    """Return the fingerprint of each device of a cell's campaign, by name."""
    with Store.open(bench.campaign(cell)) as store:
        return store.fingerprints()

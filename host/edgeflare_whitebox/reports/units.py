"""Which units of the original go with hypotheses on its inputs, as tables."""

from collections.abc import Iterator

from edgeflare._internal.text import NOTHING, capitalized, counted, number_text
from edgeflare.document import Block, Column, Item, Listing, Table, Text
from edgeflare_whitebox import MEASURES, HypothesisScores, LayerScore, UnitScore, UnitsFound
from edgeflare_whitebox.stored import Inspection
from edgeflare_whitebox.units.campaign import UnitsSettings, find_units

_SETS = {
    "seeds": "seeds",
    "survey": "inputs of the survey",
    "triggers": "triggering inputs",
}
_SIGNED = "pearson"
_NAMES = {"pearson": "correlation", "mutual-information": "information, bits", "f1": "F1"}


def units_document(found: UnitsFound) -> list[Block]:
    """Return of each hypothesis the units and layers that go with it most, and how it was measured."""
    blocks: list[Block] = [Text(_title(found))]
    for one in found.hypotheses:
        blocks += _of_hypothesis(one)
    return [*blocks, Listing(tuple(Item(one) for one in (*_how(found), *found.notices)))]


def _title(found: UnitsFound) -> str:
    sets = " and ".join(f"{number:,} {_SETS[name]}" for name, number in found.inputs.items())
    text = (
        f"{found.model}, {counted(found.units, 'unit')} of {counted(len(found.layers), 'layer')}: "
        f"which go with what, on {sets}; the device deviates on {found.deviating:,} of "
        f"{found.total:,}"
    )
    return text if found.finished else f"{text}; the campaign wasn't finished then: what it had"


def _of_hypothesis(one: HypothesisScores) -> Iterator[Block]:
    words = f"{one.name} ({one.about})" if one.about else one.name
    if one.problem:
        yield Text(f"{words}: {one.problem}", "warn")
        return
    holds = "" if one.ones is None else f", holds on {one.ones:,}"
    title = f"{words}: {counted(one.records, 'input')}{holds}"
    if one.best:
        apart = any(map(_is_apart, one.best))
        if not apart:
            title += "; no unit goes with it beyond chance"
        columns = (
            Column("layer", 0, _layer, text=True),
            Column("unit", 0, lambda row: str(row.unit)),
            Column("measure", 0, lambda row: _NAMES[row.measure], text=True),
            Column("score", 0, lambda row: number_text(row.score)),
            Column("interval", 2, _interval, text=True),
            Column("beyond chance", 1, lambda row: "yes" if _is_apart(row) else "no", text=True),
        )
        yield Table(columns, one.best, title)
    else:
        yield Text(title)
    if one.guess is not None:
        layers = (
            Column("layer", 0, _layer, text=True),
            Column("F1 of all its units", 0, lambda row: _score(row.f1)),
            Column("interval", 1, lambda row: _interval(row.f1), text=True),
            Column("largest correlation of a unit", 2, _largest, optional=True),
        )
        guess = number_text(one.guess)
        yield Table(layers, one.layers, f"{one.name} by layers; F1 of a guess is {guess}")


def _layer(one: UnitScore | LayerScore) -> str:
    """Return the layer's name; of a fused TFLite operator, whose name joins several, the first."""
    return one.layer.partition(";")[0]


def _score(one: UnitScore | None) -> str:
    return number_text(None if one is None else one.score)


def _largest(one: LayerScore) -> str:
    return NOTHING if one.unit is None else f"{number_text(one.unit.score)} (unit {one.unit.unit})"


def _interval(one: UnitScore | None) -> str:
    return NOTHING if one is None else f"{number_text(one.low)} to {number_text(one.high)}"


def _is_apart(one: UnitScore) -> bool:
    """Whether the interval doesn't have 0, which is no affinity of a unit."""
    return one.low > 0 or (one.measure == _SIGNED and one.high < 0)


def _how(found: UnitsFound) -> Iterator[str]:
    """Yield how it was measured."""
    if found.records < found.total:
        yield (
            f"Read {found.records:,} of {counted(found.total, 'input')}, in random order (seed "
            f"{found.random_seed}): then every score was within {found.error:g} of that over all"
        )
    else:
        yield f"Read all {counted(found.total, 'input')}"
    yield (
        "All intervals hold at once with a probability of about 95 %; they allow for inputs that were made "
        "from one seed and are alike"
    )
    if found.inputs.get("triggers"):
        yield (
            "Triggering inputs were found because the device deviates on them: units may go with "
            "deviates because of what the search changes alone"
        )
    if found.dead_units:
        yield (
            f"{found.dead_units:,} of {counted(found.units, 'unit')} are constant over these inputs "
            "(dead units) and have no score"
        )
    yield from (f"{capitalized(_NAMES[name])}: {MEASURES[name]}" for name in found.measures)


class Units(Inspection[UnitsSettings, UnitsFound]):
    """``inspect units``."""

    name = "units"
    about = "Find the units of the original that go with deviation on the device, or with what you name."
    settings, result = UnitsSettings, UnitsFound
    title, order = "Units of the original that go with deviation", 130
    compute = staticmethod(find_units)
    blocks = staticmethod(lambda result, *_: units_document(result))


UNITS = Units()

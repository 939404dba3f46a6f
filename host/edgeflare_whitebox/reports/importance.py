"""What matters in the original, as a table by layers."""

import math

from edgeflare._internal.text import NOTHING, counted, names_text, number_text, percent_text
from edgeflare.document import Block, Column, Item, Listing, Table, Text
from edgeflare_whitebox import ImportanceFound, LayerImportance
from edgeflare_whitebox.reports.coverage import NO_MEASURE, SET_NAMES

_UNITS_NAMED = 6
_DIGITS = 9
"""From so many on a number is told as a power of ten."""


def importance_document(found: ImportanceFound) -> list[Block]:
    """Return the important units of each layer, what inputs reach of their combinations, and how."""
    columns = (
        Column("layer", 0, lambda one: one.layer, text=True),
        Column("important units", 4, _units, text=True),
        Column("of the relevance", 1, lambda one: percent_text(one.share)),
        Column("combinations", 2, _combinations),
        *(_covered(found, which) for which in SET_NAMES if getattr(found.inputs, which)),
        Column("moved", 3, _moved),
    )
    return [
        Text(
            f"Importance-driven coverage of {found.model}: of each layer the "
            f"{counted(found.number, 'unit')} that its decisions rest on most, and which combinations "
            "of these units' clusters the inputs reach"
            + ("" if found.finished else "; the campaign wasn't finished then: those that it had")
        ),
        Table(columns, found.layers, identifier="importance-table"),
        Text(NO_MEASURE, "strong"),
        Listing(tuple(Item(one) for one in (*_how(found), *found.notices))),
    ]


def _units(one: LayerImportance) -> str:
    named = names_text([str(unit) for unit in one.important], _UNITS_NAMED)
    return f"{named} of {one.units:,}"


def _combinations(one: LayerImportance) -> str:
    digits = sum(map(math.log10, one.clusters))
    return f"{one.combinations:,}" if digits < _DIGITS else f"10^{digits:.1f}"


def _covered(found: ImportanceFound, which: str) -> Column:
    title = f"{SET_NAMES[which]} ({getattr(found.inputs, which):,})"
    return Column(title, 0, lambda one: percent_text(one.covered.get(which)))


def _moved(one: LayerImportance) -> str:
    if one.movement is None or not one.movement.random:
        return NOTHING
    return number_text(one.movement.important / one.movement.random, 2)


def _how(found: ImportanceFound) -> list[str]:
    """Return how it was measured."""
    source = "the seeds themselves" if found.profile is None else found.profile
    profiled = counted(found.profiled, "profiling input")
    lines = [f"Clusters are of {profiled}: {source}"]
    if found.counted < found.profiled:
        lines[0] += (
            f"; relevance of the {found.counted:,} that the original decides as they are labelled"
        )
    movements = [one.movement for one in found.layers if one.movement is not None]
    if movements:
        lines.append(
            f"Moved: how far the important units' activations move where the most relevant tenth of the "
            f"pixels of {counted(movements[0].images, 'image')} is changed, in terms of as many "
            "units drawn at random"
        )
    return lines

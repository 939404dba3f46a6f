"""What matters in the original, as a table by layers."""

import math
from collections.abc import Iterator, Sequence

import numpy as np

from edgeflare._internal.text import NOTHING, counted, names_text, number_text, percent_text
from edgeflare.document import (
    Block,
    Column,
    Example,
    Examples,
    Item,
    Listing,
    Name,
    Table,
    Text,
)
from edgeflare.errors import StoreError
from edgeflare.store import Store
from edgeflare.types import Sample
from edgeflare_whitebox import ImportanceFound, LayerImportance, RelevantPixels
from edgeflare_whitebox.importance_campaign import ImportanceSettings, find_importance
from edgeflare_whitebox.reports.coverage import NO_MEASURE, SET_NAMES
from edgeflare_whitebox.stored import Inspection

_RED = (229, 57, 53)
_DIMMED = 0.5
_UNITS_NAMED = 6
_ABOUT_EXAMPLES = (
    "Seed inputs and triggering inputs found from them, each with the twentieth of its pixels that the "
    "original's decision rests on most, in red; below, what the original decides on either."
)
_SEEN = "seed and triggering input, each with its most relevant pixels"
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


def _examples(store: Store, found: ImportanceFound, name: Name) -> Iterator[Block]:
    """Yield pairs of a seed and a triggering input with their most relevant pixels."""

    def make() -> Sequence[Example]:
        from edgeflare.reports.media import panel, png

        examples = []
        for pair in found.drawn:
            try:
                first, second = (_picture(store, one) for one in pair)
            except StoreError:  # its file is gone
                continue
            if first.shape != second.shape:  # no seed and what was found from it
                continue
            words, picture = (
                " and ".join(name(one.label) for one in pair),
                png(panel(first, second)),
            )
            examples.append(Example(words, "", picture=picture, alternative=_SEEN, deviates=False))
        return examples

    if found.drawn:
        yield Text(_ABOUT_EXAMPLES, "note")
        yield Examples(make)


def _picture(store: Store, one: RelevantPixels) -> Sample:
    """Return an image, and beside it the same in grey with the pixels in red. Raises StoreError."""
    from edgeflare.reports.media import panel

    image = store.get_sample(one.sample)
    if image.ndim != 3:
        raise StoreError(f"the sample {one.sample} is no image")
    grey = image.mean(axis=2, keepdims=True) * _DIMMED
    marked = grey.repeat(3, axis=2).round().astype(np.uint8)
    rows = marked.reshape(-1, 3)
    places = np.array(one.pixels, np.int64)
    rows[places[places < len(rows)]] = _RED
    return panel(image if image.shape[2] == 3 else image.repeat(3, axis=2), marked)


def _blocks(result: ImportanceFound, names: Name, store: Store | None) -> Iterator[Block]:
    yield from importance_document(result)
    if store is not None:
        yield from _examples(store, result, names)


class Importance(Inspection[ImportanceSettings, ImportanceFound]):
    """``inspect importance``."""

    name = "importance"
    about = (
        "Find the units that the original's decisions rest on, and what the inputs reach of these."
    )
    settings, result = ImportanceSettings, ImportanceFound
    title, order = "What matters in the original", 110
    compute = staticmethod(find_importance)
    blocks = staticmethod(_blocks)


IMPORTANCE = Importance()

"""The page's part on classes: the tables, the table of decisions, and seeds of the worst pairs."""

import base64
from pathlib import Path
from typing import NamedTuple

from markupsafe import Markup

from edgeflare.document import Name
from edgeflare.errors import StoreError
from edgeflare.reports.document import to_html
from edgeflare.reports.html.templates import render_part
from edgeflare.reports.media import small_panel
from edgeflare.store import Store
from edgeflare_whitebox import ClassesFound, ExampleSeed
from edgeflare_whitebox.reports.classes import classes_document

_CARDS = 8
_SHADES = 5


class DecisionCell(NamedTuple):
    """How many seeds of a class the deployed model takes for another, and how many more than the original.

    `shade` is 1 to 5 by the size of the change, 0 without one.
    """

    text: str
    shade: int


class SeedCard(NamedTuple):
    """A seed whose answer moved; `picture` is a ``data:`` URL."""

    words: str
    seed: str
    picture: str


_TEMPLATE = Path(__file__).parents[1] / "assets" / "classes.html.j2"


def classes_html(store: Store, found: ClassesFound, name: Name) -> Markup:
    """Return the content of the page's section."""
    table = found.decisions
    changes = [
        [after - before for before, after in zip(*rows, strict=True)]
        for rows in zip(table.original, table.deployed, strict=True)
    ]
    most = max((abs(one) for row in changes for one in row), default=0)
    rows = [
        (
            name(label),
            [
                DecisionCell(_cell(count, change), _shade(change, most))
                for count, change in zip(counts, row, strict=True)
            ],
        )
        for label, counts, row in zip(table.classes, table.deployed, changes, strict=True)
    ]
    return render_part(
        _TEMPLATE,
        tables=to_html(classes_document(found, name)),
        columns=[name(one) for one in table.classes],
        rows=rows,
        labelled=found.labelled,
        left_out=len(found.changes) - len(table.classes),
        cards=_cards(store, found, name),
    )


def _cell(count: int, change: int) -> str:
    return f"{count:,} ({change:+,})" if change else f"{count:,}" if count else ""


def _shade(change: int, most: int) -> int:
    return -(-_SHADES * abs(change) // most) if change else 0


def _cards(store: Store, found: ClassesFound, name: Name) -> list[SeedCard]:
    examples = {one.place: one for one in found.examples}
    cards: list[SeedCard] = []
    seen: set[int] = set()
    for pair in found.pairs:
        for place in pair.examples[:1]:
            if place in examples and place not in seen and len(cards) < _CARDS:
                seen.add(place)
                cards += _card(store, examples[place], name)
    return cards


def _card(store: Store, one: ExampleSeed, name: Name) -> list[SeedCard]:
    try:
        sample = store.get_sample(one.sample)
        made = small_panel(sample, sample, store.sample_rate)
    except StoreError:  # its file is gone
        return []
    picture = f"data:image/png;base64,{base64.b64encode(made).decode()}"
    words = f"{name(one.original)} → {name(one.deployed)}"
    if one.label is not None:
        words += f", labelled {name(one.label)}"
    return [SeedCard(words, one.id, picture)]

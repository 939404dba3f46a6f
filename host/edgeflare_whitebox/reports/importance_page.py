"""The page's part on importance: the table, and the most relevant pixels of some triggering inputs."""

import base64
from pathlib import Path
from typing import NamedTuple

import numpy as np
from markupsafe import Markup

from edgeflare.document import Name
from edgeflare.errors import StoreError
from edgeflare.reports.document import to_html
from edgeflare.reports.html.templates import render_part
from edgeflare.reports.media import panel, png
from edgeflare.store import Store
from edgeflare.types import Sample
from edgeflare_whitebox import ImportanceFound, RelevantPixels
from edgeflare_whitebox.reports.importance import importance_document

_RED = (229, 57, 53)
_DIMMED = 0.5


class PixelCard(NamedTuple):
    """A seed and a triggering input with their most relevant pixels; `picture` is a ``data:`` URL."""

    words: str
    picture: str


_TEMPLATE = Path(__file__).parents[1] / "assets" / "importance.html.j2"


def importance_html(store: Store, found: ImportanceFound, name: Name) -> Markup:
    """Return the content of the page's section."""
    cards = []
    for pair in found.drawn:
        try:
            first, second = (_picture(store, one) for one in pair)
        except StoreError:  # its file is gone
            continue
        if first.shape != second.shape:  # no seed and what was found from it
            continue
        data = base64.b64encode(png(panel(first, second))).decode()
        words = " and ".join(name(one.label) for one in pair)
        cards.append(PixelCard(words, f"data:image/png;base64,{data}"))
    return render_part(_TEMPLATE, tables=to_html(importance_document(found)), cards=cards)


def _picture(store: Store, one: RelevantPixels) -> Sample:
    """Return an image, and beside it the same in grey with the pixels in red. Raises StoreError."""
    image = store.get_sample(one.sample)
    if image.ndim != 3:
        raise StoreError(f"the sample {one.sample} is no image")
    grey = image.mean(axis=2, keepdims=True) * _DIMMED
    marked = grey.repeat(3, axis=2).round().astype(np.uint8)
    rows = marked.reshape(-1, 3)
    places = np.array(one.pixels, np.int64)
    rows[places[places < len(rows)]] = _RED
    return panel(image if image.shape[2] == 3 else image.repeat(3, axis=2), marked)

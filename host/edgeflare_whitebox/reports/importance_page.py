"""The page's part on importance: the table, and the most relevant pixels of some triggering inputs."""

import base64
from typing import Any, NamedTuple

import numpy as np

from edgeflare.errors import StoreError
from edgeflare.reports.document import Name, to_html
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


def importance_context(
    store: Store, found: ImportanceFound | None, name: Name
) -> dict[str, Any] | None:
    """Return the values of ``report_importance.html.j2``; None where importance was not measured."""
    if found is None:
        return None
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
    return {"tables": to_html(importance_document(found)), "cards": cards}


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

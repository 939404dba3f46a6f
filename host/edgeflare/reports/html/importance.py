"""The page's part on importance: the table, and the most relevant pixels of some triggering inputs."""

import base64
from typing import Any, NamedTuple

from edgeflare.errors import StoreError
from edgeflare.inspection import ImportanceFound, RelevantPixels
from edgeflare.reports.document import Name, to_html
from edgeflare.reports.inspection.importance import importance_document
from edgeflare.reports.inspection.pixels import marked
from edgeflare.reports.media import panel, png
from edgeflare.store import Store


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
            pictures = [_picture(store, one) for one in pair]
        except StoreError:  # its file is gone
            continue
        data = base64.b64encode(png(panel(*pictures))).decode()
        words = " and ".join(name(one.label) for one in pair)
        cards.append(PixelCard(words, f"data:image/png;base64,{data}"))
    return {"tables": to_html(importance_document(found)), "cards": cards}


def _picture(store: Store, one: RelevantPixels) -> Any:
    image = store.get_sample(one.sample)
    shown = image if image.shape[2] == 3 else image.repeat(3, axis=2)
    return panel(shown, marked(image, one.pixels))

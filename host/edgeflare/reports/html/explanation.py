"""The page's part on causes: the tables, and the finding nearest to its seed of each group."""

import base64
from typing import Any, NamedTuple

from edgeflare._internal.text import capitalized, counted
from edgeflare.document import Name
from edgeflare.errors import StoreError
from edgeflare.explanation import SHRUNK_FOLDER, Explanation, FindingGroup
from edgeflare.reports.document import to_html
from edgeflare.reports.explanation import GROUPS_SHOWN, explanation_blocks
from edgeflare.reports.media import small_panel
from edgeflare.store import Store
from edgeflare.words.causes import doubt_text, labels_words, layer_words, nearest_words


class GroupCard(NamedTuple):
    """A group's finding in the page; `picture` is a ``data:`` URL, "" where there is none."""

    title: str
    words: str
    doubt: str
    picture: str


def explanation_context(
    store: Store, found: Explanation | None, name: Name
) -> dict[str, Any] | None:
    """Return the values of ``report_explanation.html.j2``; None where nothing was explained."""
    if found is None:
        return None
    seeds = {seed.id: seed.sample for seed in store.seeds()}
    cards = [
        GroupCard(
            ", ".join(
                one
                for one in (
                    capitalized(group.cause),
                    layer_words(group.layer),
                    group.fault,
                    labels_words(group, name),
                )
                if one
            ),
            f"{counted(group.count, 'finding')}; nearest: {nearest_words(group, name)}",
            doubt_text(group.nearest.doubt),
            _picture(store, seeds.get(group.nearest.seed_id, ""), group),
        )
        for group in found.groups[:GROUPS_SHOWN]
    ]
    return {"tables": to_html(explanation_blocks(found, name)[1:]), "cards": cards}


def _picture(store: Store, seed: str, group: FindingGroup) -> str:
    """Return the seed, the nearest finding (shrunk where it was), and the difference."""
    try:
        before, found = store.get_sample(seed), store.get_sample(group.nearest.sample)
        if group.shrunk is not None:
            with Store.open(store.folder / SHRUNK_FOLDER) as nearer:
                found = nearer.get_sample(group.shrunk.sample)
    except StoreError:  # its file is gone
        return ""
    made = small_panel(before, found, store.sample_rate)
    return f"data:image/png;base64,{base64.b64encode(made).decode()}"

"""A campaign is named by its folder, or is an open store already."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from edgeflare.store import Store


@contextmanager
def opened(campaign: Store | Path) -> Iterator[Store]:
    """Give the open store of a campaign; close it afterwards only if it was opened here."""
    if isinstance(campaign, Store):
        yield campaign
        return
    with Store.open(campaign) as store:
        yield store

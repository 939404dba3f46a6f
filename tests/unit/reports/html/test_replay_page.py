"""The page of a replay: what became of each input, beside the seed it came from."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from stores import ended, replay_store, store_of

from edgeflare import report_text, write_html_report
from edgeflare.store import SeedInput, Store
from edgeflare.store.state import ReplayOrigin

Read = Callable[[Path], Any]


def page_of(store: Store, path: Path, read: Read) -> Any:
    write_html_report(store, path)
    return read(path)


@pytest.mark.parametrize("same", [True, False], ids=["its source", "another campaign"])
def test_the_seed_is_shown_where_the_source_has_it(tmp_path: Path, read: Read, same: bool) -> None:
    seed = np.full((4, 4, 1), 77, np.uint8)
    with store_of(tmp_path / "source", seeds=["b"], sample=lambda number: seed) as source:
        campaign = source.id
    with replay_store(tmp_path / "replay") as store:
        folder, source_id = str(tmp_path / "source"), campaign if same else "f" * 32
        source = ReplayOrigin("campaign", folder, campaign=source_id)
        store.state.replay = replace(store.state.replay, source=source)
        page = page_of(store, tmp_path / "report.html", read)
    shown = {row["seed"]: row["seed_picture"] is not None for row in page.rows}
    assert shown["trigger:b"] is same
    assert not shown["trigger:a"]


def test_of_a_long_search_the_last_steps_are_reported(
    campaign: Any, tmp_path: Path, read: Read
) -> None:
    steps = tuple({"operator": "average", "params": {"size": n}} for n in range(378))
    campaign.store.add_seeds([SeedInput("s.png", np.zeros((2, 2, 1), np.uint8))])
    ended(campaign.store, "s.png", trigger=1, mutations=steps)
    page = page_of(campaign.finish(), tmp_path / "report.html", read)
    for told in (
        page.rows[0]["words"],
        *(report_text(campaign.store, f) for f in ("junit", "markdown")),
    ):
        assert "373 earlier" in told
        assert "size=5" not in told

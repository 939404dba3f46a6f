"""The page of a replay: what became of each input, beside the seed it came from."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from campaign_stores import replay_store

from edgeflare import report_text, write_html_report
from edgeflare.store import OutcomeRecord, SeedInput, Store
from edgeflare.store.state import ReplayOrigin
from edgeflare.types import Status

Read = Callable[[Path], Any]


def page_of(store: Store, path: Path, read: Read) -> Any:
    write_html_report(store, path)
    return read(path)


def test_each_card_says_its_state_and_what_agrees_is_only_counted(
    tmp_path: Path, read: Read
) -> None:
    with replay_store(tmp_path / "replay") as store:
        page = page_of(store, tmp_path / "report.html", read)
    became = {row["seed"]: row["replayed"] for row in page.rows}
    assert became["trigger:a"] == {
        "state": "fixed",
        "kind": "trigger",
        "seed": "a",
        "words": "fixed: 0 -> 0, was 0 -> 1",
    }
    assert became["trigger:b"]["state"] == "still"
    assert (became["seed:g"]["state"], became["seed:g"]["kind"]) == ("new", "seed")
    assert {one["state"] for one in became.values()} >= {"unstable", "failed", "nonfinite"}
    assert "seed:h" not in became
    assert "1 more agrees" in page.text
    by_seed = {row["seed"]: row for row in page.rows}
    assert by_seed["trigger:b"]["l2"] == 1.5
    assert by_seed["seed:g"]["l2"] is by_seed["seed:g"]["linf"] is None
    assert by_seed["trigger:a"]["scores"][0] == [0, 0.8, 0.7]
    assert all(row["seed_picture"] is None for row in page.rows)  # its source is not there


def test_a_replay_is_filtered_by_state_and_has_no_section_of_a_search(
    tmp_path: Path, read: Read
) -> None:
    with replay_store(tmp_path / "replay") as store:
        page = page_of(store, tmp_path / "report.html", read)
    names = {one["name"] for one in page.having("select")}
    assert "state" in names
    assert "status" not in names
    values = [one["value"] for one in page.having("option")]
    states = ["new", "still", "nonfinite", "unstable", "failed", "fixed"]
    assert [one for one in values if one in states] == states
    assert not page.having("section", id="ends")
    assert not page.having("section", id="figures")


@pytest.mark.parametrize("same", [True, False], ids=["its source", "another campaign"])
def test_the_seed_is_shown_where_the_source_has_it(tmp_path: Path, read: Read, same: bool) -> None:
    seed = np.full((4, 4, 1), 77, np.uint8)
    with Store.create(tmp_path / "source", {}) as source:
        source.add_seeds([SeedInput("b", seed)])
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
    trigger = campaign.store.put_sample(np.ones((2, 2, 1), np.uint8))
    campaign.store.add_outcome(
        OutcomeRecord("s.png", Status.FOUND, 0, trigger=trigger, mutations=steps)
    )
    page = page_of(campaign.finish(), tmp_path / "report.html", read)
    for told in (
        page.rows[0]["words"],
        *(report_text(campaign.store, f) for f in ("junit", "markdown")),
    ):
        assert "373 earlier" in told
        assert "size=5" not in told

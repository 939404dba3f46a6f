"""Campaigns with the boundary search: what they leave open is chosen once, and kept."""

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from campaigns import found_in
from command import DEMO, edgeflare

import edgeflare.campaign.resolution as resolution
from edgeflare import CampaignConfig, Event, Notice, config_from, resume_campaign, run_campaign
from edgeflare.campaign import Stage
from edgeflare.campaign.pair.health import SEEDS_REPEATED
from edgeflare.campaign.seeds import partners
from edgeflare.store import Store
from edgeflare.survey import PARTNERS
from edgeflare.types import Status

pytestmark = [pytest.mark.extended, pytest.mark.usefixtures("own_home")]

SEEDS = 4
CHOSEN = ("crossing", "effort", "candidates")


def config(out: Path, search: dict[str, Any] | None = None, **more: Any) -> CampaignConfig:
    values = {
        "original": {"path": DEMO / "original.onnx"},
        "deployed": {"path": DEMO / "deployed.tflite"},
        "seeds": {"path": DEMO / "seeds.npz", "limit": SEEDS},
        "search": {"strategy": "boundary", "max_queries": 30, "timeout_s": 0, **(search or {})},
        "survey": {"enabled": False},
        "out": out,
        **more,
    }
    return config_from(values, "test")


class EventRecorder:
    """Keeps the notices; calls `act` where the search begins."""

    def __init__(self, act: Callable[[], None] = lambda: None) -> None:
        self.notices: list[str] = []
        self._act = act

    def __call__(self, event: Event) -> None:
        if isinstance(event, Notice):
            self.notices.append(event.text)
        elif isinstance(event, Stage) and event.name == "search":
            self._act()


def interrupt(*_: object, **__: object) -> None:
    raise KeyboardInterrupt


def refuse(*_: object, **__: object) -> float:
    raise AssertionError("measured again")


def options_of(folder: Path) -> dict[str, Any]:
    with Store.open(folder) as store:
        found: dict[str, Any] = store.campaign["search"]["options"]
        return found


def costs(monkeypatch: pytest.MonkeyPatch, ratio: float) -> None:
    monkeypatch.setattr(resolution, "cost_ratio", lambda *_, **__: ratio)


def test_what_is_left_open_follows_from_the_images_and_is_kept(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(resolution, "cost_ratio", refuse)
    recorder = EventRecorder()
    folder = run_campaign(config(tmp_path / "auto"), progress=recorder)
    options = options_of(folder)
    assert options == {"crossing": "least-l2", "effort": 96, "tied_classes": 3, "candidates": 1}
    assert recorder.notices == []
    again = run_campaign(config(tmp_path / "stated", {"options": options}), progress=recorder)
    assert options_of(again) == options
    assert found_in(again) == found_in(folder)


def test_what_is_tuned_is_reported_kept_and_repeated_by_hand(tmp_path: Path) -> None:
    recorder = EventRecorder()
    folder = run_campaign(config(tmp_path / "tuned", {"tune": True}), progress=recorder)
    options = options_of(folder)
    assert options["crossing"] in ("least-l2", "mutants")
    assert options["effort"] in (8, 16, 32, 64, 96, 128)
    [notice] = recorder.notices
    assert f"{options['crossing']}, effort {options['effort']}" in notice
    with Store.open(folder) as store:
        assert store.notices() == [notice]
        seed_queries = sum(one.seed_queries for one in store.outcomes())
    assert seed_queries == SEEDS, "to measure counts as no query"
    stated: dict[str, Any] = {
        name: int(value)
        for name, _, value in (part.partition("=") for part in notice.replace("`", " ").split())
        if value.isdecimal()
    }
    stated["crossing"] = options["crossing"]
    again = run_campaign(config(tmp_path / "stated", {"options": stated}))
    assert options_of(again) == options
    assert found_in(again) == found_in(folder)


@pytest.mark.parametrize(
    ("ratio", "one_trip", "expected", "words"),
    [
        (0.4, False, ("mutants", 8, 1), "about 0.4 host queries"),
        (2500.4, True, ("least-l2", 64, 4), "2500 host queries"),
    ],
)
def test_the_choice_follows_the_cost(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    ratio: float,
    one_trip: bool,
    expected: tuple[str, int, int],
    words: str,
) -> None:
    costs(monkeypatch, ratio)
    recorder = EventRecorder()
    folder = run_campaign(
        config(tmp_path / "c", {"tune": True}, one_trip=one_trip), progress=recorder
    )
    assert tuple(options_of(folder)[name] for name in CHOSEN) == expected
    crossing, effort, candidates = expected
    [notice] = recorder.notices
    assert words in notice
    assert f"`--crossing {crossing} --option effort={effort} " in notice
    assert notice.endswith(f" --option candidates={candidates}` repeats it")
    shown = edgeflare("show", folder, home=tmp_path)
    assert f"crossing={crossing}" in shown.out


def test_no_more_candidates_are_sent_than_a_search_may_ask(tmp_path: Path) -> None:
    folder = run_campaign(config(tmp_path / "c", {"max_queries": 3}, one_trip=True))
    assert options_of(folder)["candidates"] == 3
    assert any(value[0] is Status.FOUND for value in found_in(folder).values())


def test_a_resumed_campaign_keeps_what_it_began_with(tmp_path, monkeypatch) -> None:
    costs(monkeypatch, 3.0)
    whole = run_campaign(config(tmp_path / "whole", {"tune": True}))
    with pytest.raises(KeyboardInterrupt):
        run_campaign(config(tmp_path / "torn", {"tune": True}), progress=EventRecorder(interrupt))
    monkeypatch.setattr(resolution, "cost_ratio", refuse)
    resume_campaign(tmp_path / "torn")
    assert options_of(tmp_path / "torn") == options_of(whole)
    assert found_in(tmp_path / "torn") == found_in(whole)


def test_a_campaign_that_ended_before_it_was_kept_measures(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(resolution, "cost_ratio", interrupt)
    with pytest.raises(KeyboardInterrupt):
        run_campaign(config(tmp_path / "torn", {"tune": True}))
    assert options_of(tmp_path / "torn") == {}
    costs(monkeypatch, 3.0)
    recorder = EventRecorder()
    resume_campaign(tmp_path / "torn", progress=recorder)
    assert options_of(tmp_path / "torn")["effort"] == 32
    assert len(recorder.notices) == 1


def test_the_control_searches_as_the_campaign_was_resolved(tmp_path, monkeypatch) -> None:
    ratios = iter([3.0])
    monkeypatch.setattr(resolution, "cost_ratio", lambda *_, **__: next(ratios))
    folder = run_campaign(config(tmp_path / "c", {"max_queries": 5, "tune": True}, control=True))
    assert options_of(folder / "control") == options_of(folder)
    assert options_of(folder)["effort"] == 32
    with Store.open(folder / "control") as control:
        assert control.tally().found == 0


def test_nothing_is_measured_for_another_strategy(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(resolution, "cost_ratio", refuse)
    folder = run_campaign(config(tmp_path / "c", {"strategy": "dflare", "tune": True}))
    assert options_of(folder) == {}


def test_the_limit_does_not_change_what_both_campaigns_search(tmp_path) -> None:
    few, more = (
        run_campaign(
            config(
                tmp_path / str(limit),
                {"options": {"crossing": "least-l2", "effort": 16}},
                seeds={"path": DEMO / "seeds.npz", "limit": limit},
            )
        )
        for limit in (3, 40)
    )
    expected = found_in(more)
    found = found_in(few)
    assert len(found) == 3
    assert found == {seed: expected[seed] for seed in found}
    with Store.open(few) as store, Store.open(more) as larger:
        assert store.seed_count() == 3
        ours, theirs = partners(store), partners(larger)
        assert len(ours) == len(theirs) == PARTNERS
        assert all(np.array_equal(*both) for both in zip(ours, theirs, strict=True))
        assert sum(one.seed_queries for one in store.outcomes()) == 3
        assert sum((store.state.measuring_queries).values()) == PARTNERS - 3 + SEEDS_REPEATED
        assert sum(larger.state.measuring_queries.values()) == SEEDS_REPEATED, (
            "all partners are seeds"
        )


@pytest.mark.slow
def test_two_runs_under_different_load_find_the_same_bytes(tmp_path: Path) -> None:
    quiet = run_campaign(config(tmp_path / "quiet"))
    stop = threading.Event()

    def work() -> None:
        while not stop.is_set():
            sum(range(10_000))

    busy = [threading.Thread(target=work) for _ in range(3)]
    for one in busy:
        one.start()
    try:
        loaded = run_campaign(config(tmp_path / "loaded", concurrency=4))
    finally:
        stop.set()
        for one in busy:
            one.join()
    assert options_of(loaded) == options_of(quiet)
    assert found_in(loaded) == found_in(quiet)
    assert samples_in(loaded) == samples_in(quiet)


def samples_in(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted((folder / "samples").rglob("*"))
        if path.is_file()
    }

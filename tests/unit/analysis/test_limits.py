"""A campaign held against its limits, reckoned by hand."""

import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from shown_numbers import numbers
from stores import AGREE, ended, store_of

from edgeflare.analysis import LimitCheck, check_limits, summarize
from edgeflare.campaign import LimitsConfig
from edgeflare.errors import UsageError
from edgeflare.store import Store
from edgeflare.store.state import ReplayOrigin, StoredReplay
from edgeflare.types import FrontPoint, Status


def create(folder: Path, *, limits: dict[str, Any] | None = None, **more: Any) -> Store:
    """A campaign whose twelve seeds are answered; it has no outcome yet."""
    config = {} if limits is None else {"limits": LimitsConfig(**limits).model_dump(mode="json")}
    return store_of(folder, **{"seeds": 12, "answers": AGREE, "config": config, **more})


def found(store: Store, number: int, *, first: int = 1, **more: Any) -> None:
    """Add a triggering input: L2 number / 10 from seed `number`, after `first` of 50 queries."""
    about = {"l2": number / 10, "original_label": 1, "deployed_label": 0}
    about |= {"original_margin": number / 20, "deployed_margin": 0.9, "search_queries": 50}
    front = (FrontPoint(first, 0.01, 0.9, 9), FrontPoint(50, 0.2, 1.0, 9))
    ended(store, number, trigger=100 + number, **{"front": front, **about, **more})


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    """Finished: 4 of 10 searched seeds have a trigger (after 1, 2, 30, 40 queries), one deviates, one failed."""
    with create(tmp_path / "campaign", finished=True) as made:
        for number, first in ((10, 1), (2, 30), (9, 2), (3, 40)):
            found(made, number, first=first)
        for number in (0, 4, 5, 6, 7, 8):
            ended(made, number, Status.EXHAUSTED, search_queries=50)
        itself = {"original_label": 0, "deployed_label": 1, "original_margin": 0.7, "l2": 0.0}
        ended(made, 1, Status.SEED_DEVIATES, trigger=1, deployed_margin=0.6, **itself)
        ended(made, 11, Status.FAILED, detail="it died")
        yield made


def check(campaign: Store | Path, **limits: Any) -> LimitCheck:
    (one,) = check_limits(campaign, LimitsConfig(**limits))
    return one


def worst(crossed: LimitCheck) -> dict[str, float | None]:
    """The worst few that cross a limit, and what with."""
    return {one.name.removesuffix(".png"): one.value for one in crossed.figures.offenders}


@pytest.mark.parametrize(
    ("name", "crossed", "kept", "value", "total", "offenders"),
    [
        ("max_deviation_rate", 0.39, 0.4, 0.4, 10, ["s/2", "s/3", "s/9"]),
        ("max_seed_deviation_rate", 0.08, 0.084, 1 / 12, 12, ["s/1"]),
        ("min_l2", 0.9, 0.2, 0.2, 4, {"s/2": 0.2, "s/3": 0.3}),  # the seed itself is not counted
        ("max_severity", 0.49, 0.6, 0.6, 5, {"s/1": 0.6, "s/10": 0.5}),  # the smaller margin
    ],
)
def test_a_limit_is_kept_up_to_its_bound_and_what_crosses_it_is_named(
    store: Store, name: str, crossed: float, kept: float, value: float, total: int, offenders: Any
) -> None:
    one = check(store, **{name: crossed})
    assert (one.name, one.limit, one.value, one.crossed) == (name, crossed, value, True)
    assert one.figures.total == total
    named = worst(one)
    assert (named if isinstance(offenders, dict) else [*named]) == offenders
    assert not check(store, **{name: kept}).crossed


def test_the_words_have_the_figures(store: Store) -> None:
    crossed = check(store, max_deviation_rate=0.39)
    about = crossed.figures
    assert (about.count, about.deviating, about.failed, about.crossing) == (4, 1, 1, 4)
    assert numbers(crossed.words) == "4 10 40 39 2 3 9 1 1 1"
    assert "s/2" not in check(store, max_deviation_rate=0.4).words


def test_a_seed_without_a_trigger_counts_as_more_queries_than_any(
    store: Store, tmp_path: Path
) -> None:
    never = check(store, min_median_queries=1000)
    assert (never.value, never.crossed, never.figures.count) == (math.inf, False, 4)
    assert never.to_json()["value"] == "inf"
    with create(tmp_path / "easy", finished=True) as easy:
        for number, first in ((1, 1), (2, 4), (3, 20)):
            found(easy, number, first=first)
        ended(easy, 4, Status.GAVE_UP, search_queries=50)
        crossed = check(easy, min_median_queries=13)  # of 1, 4, 20 and none: between 4 and 20
        assert (crossed.value, crossed.crossed) == (12.0, True)
        assert worst(crossed) == {"s/1": 1, "s/2": 4}
        assert not check(easy, min_median_queries=12).crossed


def test_the_disagreement_is_the_share_of_probability_on_different_classes(
    tmp_path: Path,
) -> None:
    with create(tmp_path / "c") as store:
        for number, scores in ((1, [0.6, 0.4]), (2, [0.7, 0.3]), (3, [0.9, 0.1])):
            found(store, number, original=np.array(scores), deployed=np.array([0.4, 0.6]))
        crossed = check(store, max_disagreement=0.25)
        assert (crossed.value, crossed.crossed) == (pytest.approx(0.5), True)
        assert "put 50" in crossed.words
        assert [*worst(crossed)] == ["s/3", "s/2"]
        assert not check(store, max_disagreement=0.6).crossed


def test_a_device_that_returns_labels_only_has_no_disagreement_but_the_originals_margin(
    tmp_path: Path,
) -> None:
    with create(tmp_path / "c") as store:
        both = {"original": np.array([0.6, 0.4]), "deployed": np.array([0.0, 1.0])}
        found(store, 6, deployed_margin=None, **both)
        store.set_models({}, {"output": {"kind": "label"}})
        crossed = check(store, max_disagreement=0.9)
        assert (crossed.value, crossed.crossed, crossed.reason) == (None, True, "labels-only")
        assert check(store, max_severity=0.2).value == 0.3


def test_a_pair_of_classes_that_the_baseline_lacks_is_named(store: Store, tmp_path: Path) -> None:
    folder = tmp_path / "baseline"
    with create(folder, finished=True) as baseline:
        found(baseline, 1)
    stated = {"new_pairs": False, "baseline": folder}
    crossed = check(store, **stated)
    assert (crossed.limit, crossed.value, crossed.crossed) == (False, 1, True)
    about = crossed.figures
    assert (about.count, about.total, about.known, about.baseline) == (1, 2, 1, folder)
    assert worst(crossed) == {"0 -> 1": 1}
    with Store.open(folder) as baseline:
        found(baseline, 2, original_label=0, deployed_label=1)
    assert not check(store, **stated).crossed
    with Store.open(folder) as baseline:
        baseline.state.finished = False
    with pytest.raises(UsageError, match=r"limits\.baseline"):
        check(store, **stated)


def test_a_campaign_knows_its_baseline_when_that_is_missing(tmp_path: Path) -> None:
    stated = {"new_pairs": False, "baseline": tmp_path / "gone"}
    with create(tmp_path / "c", limits=stated, finished=True) as store:
        found(store, 1)
        (lost,) = check_limits(store)
        assert (lost.crossed, lost.reason) == (True, "no-baseline")
        store.state.baseline_pairs = [[1, 0]]
        (known,) = check_limits(store)
        assert (known.value, known.crossed) == (0, False)


def test_a_campaigns_own_limits_are_those_it_was_run_with(store: Store, tmp_path: Path) -> None:
    stated = {"max_new_triggers": 0, "min_l2": 0.2, "max_deviation_rate": 0.5}
    with create(tmp_path / "c", limits=stated, finished=True) as limited:
        found(limited, 1)
        names = [one.name for one in check_limits(limited)]
        assert names == ["max_deviation_rate", "min_l2", "max_new_triggers"]
        summary = summarize(limited)
        assert summary.limits == check_limits(limited)
        assert summary.limits_crossed == ("max_deviation_rate", "min_l2")
        assert summary.to_json()["limits_crossed"] == ["max_deviation_rate", "min_l2"]
    assert check_limits(tmp_path / "c", LimitsConfig()) == ()
    assert check_limits(store) == ()  # of a campaign from before there were limits
    assert summarize(store).to_json()["limits"] == []


def test_what_is_known_of_an_unfinished_campaign_is_reported_so_far(tmp_path: Path) -> None:
    with create(tmp_path / "c") as store:
        early = check(store, max_deviation_rate=0)
        assert (early.value, early.crossed) == (None, False)
        found(store, 1)
        crossed = check(store, max_deviation_rate=0.5)
        assert (crossed.crossed, crossed.figures.finished) == (True, False)
        assert (crossed.figures.count, crossed.figures.total) == (1, 1)


@pytest.mark.parametrize(
    ("name", "limit"), [("max_deviation_rate", 0.9), ("min_median_queries", 1)]
)
def test_a_finished_campaign_that_searched_nothing_passes_no_limit_on_searches(
    tmp_path: Path, name: str, limit: float
) -> None:
    with create(tmp_path / "c", seeds=1, finished=True) as store:
        ended(store, 0, Status.NONFINITE)
        none = check(store, **{name: limit})
    assert (none.value, none.crossed) == (None, True)
    assert (none.reason, none.figures.nonfinite) == ("no-seeds", 1)


def test_each_device_that_searches_for_itself_is_counted_and_named(tmp_path: Path) -> None:
    with create(tmp_path / "c", replicas=["pi", "jetson"], finished=True) as store:
        found(store, 1, replica="pi")
        found(store, 1, replica="jetson")
        ended(store, 2, Status.EXHAUSTED, search_queries=9, replica="pi")
        one = check(store, max_deviation_rate=0.5)
        assert (one.figures.count, one.figures.total) == (2, 3)
        assert [*worst(one)] == ["s/1.png on jetson", "s/1.png on pi"]


def test_a_limit_of_replays_says_nothing_of_another_campaign(store: Store) -> None:
    one = check(store, max_new_triggers=0)
    assert (one.value, one.crossed, one.checked, one.reason) == (None, False, False, "not-checked")


@pytest.fixture
def replay(tmp_path: Path) -> Iterator[Callable[..., Store]]:
    """Writes a replay of triggers that deviated or didn't before, and how they ended now."""
    made = []

    def write(*ends: tuple[bool, Status]) -> Store:
        about = {"kind": "trigger", "replica": "", "label": None, "l2": 0.5}
        about |= {"original_label": 1, "deployed_label": 0}
        names = [f"s/{number}.png" for number in range(len(ends))]
        inputs = [
            {"id": name, "seed_id": name, "deviated": deviated, **about}
            for name, (deviated, _) in zip(names, ends, strict=True)
        ]
        origin = StoredReplay(ReplayOrigin("campaign", "there"), inputs)
        store = create(tmp_path / "c", seeds=len(ends), replay=origin, finished=True)
        made.append(store)
        scores = {"original": np.array([0.2, 0.8]), "deployed": np.array([0.8, 0.2])}
        for number, (_, status) in enumerate(ends):
            more = scores if status is Status.SEED_DEVIATES else {}
            ended(store, number, status, device_name="pi", **more)
        return store

    yield write
    for store in made:
        store.close()


def test_of_a_replay_the_new_triggers_count_and_nothing_else(
    replay: Callable[..., Store],
) -> None:
    ends = (Status.SEED_DEVIATES, Status.SEED_DEVIATES, Status.GAVE_UP, Status.UNSTABLE)
    store = replay(*zip((True, False, False, False), ends, strict=True))
    crossed = check(store, max_new_triggers=0)
    assert (crossed.value, crossed.crossed) == (1, True)
    about = crossed.figures
    assert (about.count, about.total, about.unsteady) == (1, 4, 1)
    assert not check(store, max_new_triggers=1).crossed
    rate = check(store, max_deviation_rate=0)
    assert (rate.checked, rate.crossed) == (False, False)


def test_a_replay_without_a_steady_answer_does_not_pass(replay: Callable[..., Store]) -> None:
    one = check(replay((True, Status.FAILED)), max_new_triggers=5)
    assert (one.value, one.crossed, one.reason) == (None, True, "unsteady")

"""A campaign held against its limits, reckoned by hand."""

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from shown_numbers import numbers

from edgeflare.analysis import LimitCheck, check_limits, summarize
from edgeflare.campaign import LimitsConfig
from edgeflare.errors import UsageError
from edgeflare.store import OutcomeRecord, SeedAnswer, SeedInput, Store
from edgeflare.store.state import ReplayOrigin, StoredReplay
from edgeflare.types import Decision, FrontPoint, Status

SEEDS = 12


def create(folder: Path, *, limits: dict[str, Any] | None = None, seeds: int = SEEDS) -> Store:
    """A campaign whose seeds are answered; it has no outcome yet."""
    config = {} if limits is None else {"limits": LimitsConfig(**limits).model_dump(mode="json")}
    store = Store.create(folder, config, environment={})
    store.add_seeds(
        SeedInput(f"s:{n}", np.full((2, 2, 1), n, np.uint8), None) for n in range(seeds)
    )
    scores = (np.array([0.75, 0.25]), np.array([0.5, 0.5]))
    store.add_seed_answers([SeedAnswer(f"s:{n}", *scores, Decision.AGREE) for n in range(seeds)])
    return store


def found(store: Store, number: int, *, first: int = 1, **more: Any) -> None:
    """Add a triggering input: L2 number / 10 from seed `number`, after `first` of 50 queries."""
    about = {"l2": number / 10, "original_label": 1, "deployed_label": 0}
    about |= {"original_margin": number / 20, "deployed_margin": 0.9, "search_queries": 50}
    front = (FrontPoint(first, 0.01, 0.9, 9), FrontPoint(50, 0.2, 1.0, 9))
    trigger = store.put_sample(np.full((2, 2, 1), 100 + number, np.uint8))
    given = {"trigger": trigger, "front": front, **about, **more}
    store.add_outcome(OutcomeRecord(f"s:{number}", Status.FOUND, 0, **given))


def ended(store: Store, number: int, status: Status, **more: Any) -> None:
    store.add_outcome(OutcomeRecord(f"s:{number}", status, 0, **more))


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    """Finished: 4 of 10 searched seeds have a trigger (after 1, 2, 30, 40 queries), one deviates, one failed."""
    with create(tmp_path / "campaign") as made:
        for number, first in ((10, 1), (2, 30), (9, 2), (3, 40)):
            found(made, number, first=first)
        for number in (0, 4, 5, 6, 7, 8):
            ended(made, number, Status.EXHAUSTED, search_queries=50)
        itself = {"original_label": 0, "deployed_label": 1, "original_margin": 0.7, "l2": 0.0}
        itself |= {"deployed_margin": 0.6, "trigger": made.put_sample(np.ones((2, 2, 1), np.uint8))}
        ended(made, 1, Status.SEED_DEVIATES, **itself)
        ended(made, 11, Status.FAILED, detail="it died")
        made.state.finished = True
        yield made


def check(campaign: Store | Path, **limits: Any) -> LimitCheck:
    (one,) = check_limits(campaign, LimitsConfig(**limits))
    return one


def names(crossed: LimitCheck) -> list[str]:
    """The worst few that cross a limit."""
    return [one.name for one in crossed.figures.offenders]


def values(crossed: LimitCheck) -> dict[str, float | None]:
    """What the worst few cross a limit with."""
    return {one.name: one.value for one in crossed.figures.offenders}


def test_the_share_of_the_searched_seeds_with_a_trigger(store: Store) -> None:
    crossed = check(store, max_deviation_rate=0.39)
    assert (crossed.name, crossed.limit, crossed.value) == ("max_deviation_rate", 0.39, 0.4)
    assert crossed.crossed
    about = crossed.figures
    assert (about.count, about.total, about.deviating, about.failed) == (4, 10, 1, 1)
    assert (about.crossing, names(crossed)) == (4, ["s:2", "s:3", "s:9"])
    assert numbers(crossed.words) == "4 10 40 39 2 3 9 1 1 1"
    holds = check(store, max_deviation_rate=0.4)
    assert not holds.crossed, "as many as are allowed"
    assert "s:2" not in holds.words


def test_the_share_of_the_answered_seeds_that_deviate_as_they_are(store: Store) -> None:
    crossed = check(store, max_seed_deviation_rate=0.08)
    assert crossed.crossed
    assert crossed.value == 1 / 12
    assert (crossed.figures.count, crossed.figures.total) == (1, 12)
    assert names(crossed) == ["s:1"]
    assert not check(store, max_seed_deviation_rate=0.084).crossed


def test_a_seed_without_a_trigger_counts_as_more_queries_than_any(
    store: Store, tmp_path: Path
) -> None:
    never = check(store, min_median_queries=1000)
    assert (never.value, never.crossed) == (math.inf, False)
    assert never.figures.count == 4
    assert never.to_json()["value"] == "inf"
    with create(tmp_path / "easy") as easy:
        for number, first in ((1, 1), (2, 4), (3, 20)):
            found(easy, number, first=first)
        ended(easy, 4, Status.GAVE_UP, search_queries=50)
        easy.state.finished = True
        crossed = check(easy, min_median_queries=13)
        assert (crossed.value, crossed.crossed) == (12.0, True), (
            "of 1, 4, 20 and none: between 4 and 20"
        )
        assert values(crossed) == {"s:1": 1, "s:2": 4}
        assert not check(easy, min_median_queries=12).crossed


def test_the_nearest_trigger(store: Store) -> None:
    crossed = check(store, min_l2=0.9)
    assert (crossed.value, crossed.crossed) == (0.2, True)
    assert (crossed.figures.total, values(crossed)) == (4, {"s:2": 0.2, "s:3": 0.3})
    assert not check(store, min_l2=0.2).crossed, "the seed that deviates itself is not counted"


def test_the_severity_is_the_smaller_margin_also_of_a_seed_that_deviates(store: Store) -> None:
    crossed = check(store, max_severity=0.49)
    assert (crossed.value, crossed.crossed) == (0.6, True)
    assert (crossed.figures.total, values(crossed)) == (5, {"s:1": 0.6, "s:10": 0.5})
    assert not check(store, max_severity=0.6).crossed


def test_the_disagreement_is_the_share_of_probability_on_different_classes(tmp_path: Path) -> None:
    with create(tmp_path / "c") as store:
        for number, scores in ((1, [0.6, 0.4]), (2, [0.7, 0.3]), (3, [0.9, 0.1])):
            found(store, number, original=np.array(scores), deployed=np.array([0.4, 0.6]))
        crossed = check(store, max_disagreement=0.25)
        assert crossed.value == pytest.approx(0.5)
        assert crossed.crossed
        assert "put 50" in crossed.words
        assert list(values(crossed)) == ["s:3", "s:2"]
        assert not check(store, max_disagreement=0.6).crossed


def test_a_device_that_returns_labels_only_has_no_disagreement(tmp_path: Path) -> None:
    with create(tmp_path / "c") as store:
        found(store, 6, original=np.array([0.6, 0.4]), deployed=np.array([0.0, 1.0]))
        store.set_models({}, {"output": {"kind": "label"}})
        crossed = check(store, max_disagreement=0.9)
        assert (crossed.value, crossed.crossed) == (None, True)
        assert crossed.reason == "labels-only"


def test_a_device_that_returns_labels_only_has_the_originals_margin(tmp_path: Path) -> None:
    with create(tmp_path / "c") as store:
        found(store, 6, deployed_margin=None)
        assert check(store, max_severity=0.2).value == 0.3


def test_a_pair_of_classes_that_the_baseline_lacks_is_named(store: Store, tmp_path: Path) -> None:
    folder = tmp_path / "baseline"
    with create(folder) as baseline:
        found(baseline, 1, original_label=1, deployed_label=0)
        baseline.state.finished = True
    stated = {"new_pairs": False, "baseline": folder}
    crossed = check(store, **stated)
    assert (crossed.limit, crossed.value, crossed.crossed) == (False, 1, True)
    about = crossed.figures
    assert (about.count, about.total, about.known, about.baseline) == (1, 2, 1, folder)
    assert values(crossed) == {"0 -> 1": 1}
    with Store.open(folder) as baseline:
        found(baseline, 2, original_label=0, deployed_label=1)
    assert not check(store, **stated).crossed
    with Store.open(folder) as baseline:
        baseline.state.finished = False
    with pytest.raises(UsageError, match=r"limits\.baseline"):
        check(store, **stated)


def test_a_campaign_knows_its_baseline_when_that_is_missing(tmp_path: Path) -> None:
    stated = {"new_pairs": False, "baseline": tmp_path / "gone"}
    with create(tmp_path / "c", limits=stated) as store:
        found(store, 1)
        store.state.finished = True
        (lost,) = check_limits(store)
        assert lost.crossed, "nobody knows whether it holds"
        assert lost.reason == "no-baseline"
        store.state.baseline_pairs = [[1, 0]]
        (known,) = check_limits(store)
        assert (known.value, known.crossed) == (0, False)


def test_a_campaigns_own_limits_are_those_it_was_run_with(tmp_path: Path) -> None:
    stated = {"max_new_triggers": 0, "min_l2": 0.2, "max_deviation_rate": 0.5}
    with create(tmp_path / "c", limits=stated) as store:
        found(store, 1)
        store.state.finished = True
        names = [one.name for one in check_limits(store)]
        assert names == ["max_deviation_rate", "min_l2", "max_new_triggers"]
        summary = summarize(store)
        assert summary.limits == check_limits(store)
        assert summary.limits_crossed == ("max_deviation_rate", "min_l2")
        assert summary.to_json()["limits_crossed"] == ["max_deviation_rate", "min_l2"]
    assert check_limits(tmp_path / "c", LimitsConfig()) == ()


def test_campaigns_from_before_there_were_limits_have_none(store: Store) -> None:
    assert check_limits(store) == ()
    assert summarize(store).to_json()["limits"] == []


def test_what_is_known_of_an_unfinished_campaign_is_reported_so_far(tmp_path: Path) -> None:
    with create(tmp_path / "c") as store:
        early = check(store, max_deviation_rate=0)
        assert (early.value, early.crossed) == (None, False)
        found(store, 1)
        crossed = check(store, max_deviation_rate=0.5)
        assert crossed.crossed
        assert (crossed.figures.count, crossed.figures.total) == (1, 1)
        assert not crossed.figures.finished


def test_a_finished_campaign_that_searched_nothing_passes_no_limit_on_searches(
    tmp_path: Path,
) -> None:
    with create(tmp_path / "c", seeds=1) as store:
        ended(store, 0, Status.NONFINITE)
        store.state.finished = True
        for name, limit in (("max_deviation_rate", 0.9), ("min_median_queries", 1)):
            none = check(store, **{name: limit})
            assert (none.value, none.crossed) == (None, True)
            assert (none.reason, none.figures.nonfinite) == ("no-seeds", 1)


def test_each_device_that_searches_for_itself_is_counted_and_named(tmp_path: Path) -> None:
    with create(tmp_path / "c") as store:
        store.state.replicas = ["pi", "jetson"]
        store.state.finished = True
        found(store, 1, replica="pi")
        found(store, 1, replica="jetson")
        ended(store, 2, Status.EXHAUSTED, search_queries=9, replica="pi")
        one = check(store, max_deviation_rate=0.5)
        assert (one.figures.count, one.figures.total) == (2, 3)
        assert names(one) == ["s:1 on jetson", "s:1 on pi"]


def test_a_limit_of_replays_says_nothing_of_another_campaign(store: Store) -> None:
    one = check(store, max_new_triggers=0)
    assert (one.value, one.crossed, one.checked) == (None, False, False)
    assert one.reason == "not-checked"


def test_of_a_replay_the_new_triggers_count_and_nothing_else(tmp_path: Path) -> None:
    inputs = [
        {
            "id": f"s:{n}",
            "kind": "trigger",
            "deviated": deviated,
            "seed_id": f"s:{n}",
            "replica": "",
        }
        | {"label": None, "original_label": 1, "deployed_label": 0, "l2": 0.5}
        for n, deviated in enumerate([True, False, False, False])
    ]
    with create(tmp_path / "c", seeds=4) as store:
        store.state.replay = StoredReplay(ReplayOrigin("campaign", "there"), inputs)
        scores = {"original": np.array([0.2, 0.8]), "deployed": np.array([0.8, 0.2])}
        for number in (0, 1):
            ended(store, number, Status.SEED_DEVIATES, device_name="pi", **scores)
        ended(store, 2, Status.GAVE_UP, device_name="pi")
        ended(store, 3, Status.UNSTABLE, device_name="pi")
        store.state.finished = True
        crossed = check(store, max_new_triggers=0)
        assert (crossed.value, crossed.crossed) == (1, True)
        about = crossed.figures
        assert (about.count, about.total, about.unsteady) == (1, 4, 1)
        assert not check(store, max_new_triggers=1).crossed
        rate = check(store, max_deviation_rate=0)
        assert (rate.checked, rate.crossed) == (False, False)


def test_a_replay_without_a_steady_answer_does_not_pass(tmp_path: Path) -> None:
    about = {"id": "s:0", "kind": "trigger", "deviated": True, "seed_id": "s:0", "replica": ""}
    about |= {"label": None, "original_label": 1, "deployed_label": 0, "l2": 0.5}
    with create(tmp_path / "c", seeds=1) as store:
        store.state.replay = StoredReplay(ReplayOrigin("campaign", "there"), [about])
        ended(store, 0, Status.FAILED, device_name="pi")
        store.state.finished = True
        one = check(store, max_new_triggers=5)
        assert (one.value, one.crossed, one.reason) == (None, True, "unsteady")

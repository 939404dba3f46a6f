"""Limits by kind of difference: for all classes together and by class, decided by bounds."""

from pathlib import Path
from typing import Any

import pytest
from example_answers import NAMES, values
from pydantic import ValidationError
from shown_numbers import numbers
from stores import detection_campaign, value_campaign

from edgeflare.analysis import LimitCheck, check_limits
from edgeflare.analysis.outcome_stats import kind_rate
from edgeflare.answers import kind_of_task
from edgeflare.campaign import LimitsConfig
from edgeflare.campaign.settings.limits import check_kind_limits
from edgeflare.errors import UsageError
from edgeflare.reports import report_text
from edgeflare.statistics import clustered_interval
from edgeflare.store import Store
from edgeflare.types import Task


def checked(folder: Path, **limits: Any) -> LimitCheck:
    """Return the check of the one limit."""
    (one,) = check_limits(folder, LimitsConfig(**limits))
    return one


def test_a_share_above_its_limit_is_crossed_and_named_with_its_seeds(tmp_path: Path) -> None:
    folder = detection_campaign(tmp_path / "c", [], natural={1: "lost", 4: "lost"}, seeds=10)
    one = checked(folder, max_lost=0.05)
    assert one.crossed
    assert not one.undecided
    assert (one.figures.count, one.figures.total) == (2, 30)
    assert [each.name for each in one.figures.offenders] == ["photos/01.png", "photos/04.png"]


def test_between_the_share_and_its_bound_nobody_can_tell(tmp_path: Path) -> None:
    folder = detection_campaign(tmp_path / "c", [], natural={1: "lost"}, seeds=10)
    one = checked(folder, max_lost=0.1)
    assert (one.crossed, one.undecided) == (False, True)
    assert "narrow the bounds" in one.words
    assert one.value is not None
    assert one.value > 0.1, "the upper bound decides"
    kept = checked(folder, max_lost=0.5)
    assert (kept.crossed, kept.undecided) == (False, False)


@pytest.mark.parametrize(("natural", "crossed"), [({}, False), ({0: "lost"}, True)])
def test_a_limit_of_0_allows_none_on_the_seeds(
    tmp_path: Path, natural: dict[int, str], crossed: bool
) -> None:
    folder = detection_campaign(tmp_path / "c", [], natural=natural, seeds=4)
    one = checked(folder, max_lost=0.0)
    assert (one.crossed, one.undecided) == (crossed, False)


@pytest.mark.parametrize(
    ("limits", "crossed"),
    [
        ({"max_ghost": 0.0}, True),
        ({"max_ghost": {"1": 0.0}}, True),
        ({"max_ghost": {"0": 0.0}}, False),
        ({"max_class": {"2": 0.0}}, True),
        ({"max_class": {"1": 0.0}}, False),
        ({"max_shift": {"0": 0.0}}, True),
        ({"max_lost": 0.0}, False),
    ],
)
def test_each_kind_has_its_limit_and_each_class_its_own(
    tmp_path: Path, limits: dict[str, Any], crossed: bool
) -> None:
    natural = {0: "ghost", 1: "class", 2: "shift"}
    folder = detection_campaign(tmp_path / "c", [], natural=natural, seeds=6)
    assert checked(folder, **limits).crossed is crossed


def test_ghosts_are_a_share_of_what_the_deployed_model_detects(tmp_path: Path) -> None:
    folder = detection_campaign(tmp_path / "c", [], natural={0: "ghost"}, seeds=2)
    one = checked(folder, max_ghost={"1": 0.1})
    assert (one.figures.count, one.figures.total) == (1, 2)


def test_a_class_is_named_as_the_campaign_names_it(tmp_path: Path) -> None:
    limits = {"max_lost": {"person": 0.01, "dog": 0.5}}
    folder = detection_campaign(tmp_path / "c", [], natural={0: "lost"}, seeds=8, limits=limits)
    with Store.open(folder) as store:
        store.state.class_names = list(NAMES)
    person, dog = check_limits(folder)
    assert (person.name, person.crossed) == ("max_lost.person", True)
    assert (dog.name, dog.crossed) == ("max_lost.dog", False)
    assert "crossed: max_lost.person" in report_text(folder, "markdown").replace("\\", "")
    assert 'name="max_lost.person"' in report_text(folder, "junit")
    assert "person | 1" in report_text(folder, "markdown"), "reports know the names, too"


def test_a_difference_below_the_margin_floor_crosses_nothing(tmp_path: Path) -> None:
    natural = {0: "lost"}  # by 0.03
    folder = detection_campaign(tmp_path / "c", [], natural=natural, margin_floor=0.05)
    assert not checked(folder, max_lost=0.0).crossed


def test_other_models_have_no_such_limit(tmp_path: Path) -> None:
    pair = values(1.0), values(2.0)
    one = checked(value_campaign(tmp_path / "c", pair, pair), max_lost=0.5)
    assert one.crossed
    assert one.reason == "no-detections"
    with pytest.raises(UsageError, match=r"limits\.max_lost"):
        check_kind_limits(LimitsConfig(max_lost=0.1), kind_of_task("dense"), None)
    with pytest.raises(UsageError, match=r"limits\.max_shift"):
        check_kind_limits(LimitsConfig(max_shift=0.1), kind_of_task("multi-label"), None)


@pytest.mark.parametrize(
    ("names", "words"),
    [
        (NAMES, "3 classes"),
        (None, "--class-names FILE"),
    ],
)
def test_an_unknown_class_is_refused_before_anything_is_run(
    names: tuple[str, ...] | None, words: str
) -> None:
    with pytest.raises(UsageError, match=words):
        check_kind_limits(LimitsConfig(max_lost={"horse": 0.1}), kind_of_task("detection"), names)
    check_kind_limits(LimitsConfig(max_lost={"2": 0.1}), kind_of_task("detection"), names)


def test_a_number_beyond_the_named_classes_is_refused() -> None:
    with pytest.raises(UsageError, match="class '3'"):
        check_kind_limits(LimitsConfig(max_lost={"3": 0.1}), kind_of_task("detection"), NAMES)
    check_kind_limits(LimitsConfig(max_lost={"3": 0.1}), kind_of_task("detection"), None)


@pytest.mark.parametrize("task", ["vector", "embedding", "dense"])
def test_only_values_may_disagree_by_more_than_1(task: Task) -> None:
    check_kind_limits(LimitsConfig(max_disagreement=6.0), kind_of_task(task), None)
    with pytest.raises(UsageError, match="max_disagreement"):
        check_kind_limits(LimitsConfig(max_disagreement=6.0), kind_of_task("detection"), NAMES)


def test_where_the_device_answers_with_nan_all_objects_are_lost(tmp_path: Path) -> None:
    natural = dict.fromkeys(range(3), "broken")
    folder = detection_campaign(tmp_path / "c", [], natural=natural, seeds=4)
    one = checked(folder, max_lost=0.5)
    assert one.crossed
    assert (one.figures.count, one.figures.total) == (9, 12)
    assert not checked(folder, max_class=0.9).crossed, "a lost object is no other class"


def test_objects_of_one_seed_on_several_replicas_are_one_group(tmp_path: Path) -> None:
    natural = dict.fromkeys(range(3), "lost")
    several = ("pi #1", "pi #2", "pi #3")
    folder = detection_campaign(tmp_path / "c", [], natural=natural, seeds=20, replicas=several)
    with Store.open(folder) as store:
        (rule,) = (rule for rule in store.kind.checks() if rule.key == "max_lost")
        rate = kind_rate(store, rule)
    assert rate is not None
    assert (rate.differing, rate.objects) == (9, 180)
    assert (rate.low, rate.high) == clustered_interval([3] * 3 + [0] * 17, [9] * 20)
    assert numbers(rate.seeds[0]) == "00 1"


@pytest.mark.parametrize("value", [1.5, {"person": -0.1}, "0.1", {"person": "0.1"}, True])
def test_a_limit_that_is_no_share_is_refused(value: Any) -> None:
    with pytest.raises(ValidationError, match="max_lost"):
        LimitsConfig(max_lost=value)

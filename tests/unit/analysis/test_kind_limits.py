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


def checked(folder: Path, natural: dict[int, str], seeds: int, **limits: Any) -> LimitCheck:
    """Return the check of the one limit of a campaign whose seeds differ so."""
    folder = detection_campaign(folder, [], natural=natural, seeds=seeds)
    (one,) = check_limits(folder, LimitsConfig(**limits))
    return one


KINDS = {0: "ghost", 1: "class", 2: "shift"}


@pytest.mark.parametrize(
    ("natural", "seeds", "limits", "state", "counts"),
    [
        ({1: "lost", 4: "lost"}, 10, {"max_lost": 0.05}, "crossed", (2, 30)),
        ({1: "lost"}, 10, {"max_lost": 0.1}, "undecided", (1, 30)),  # by the upper bound
        ({1: "lost"}, 10, {"max_lost": 0.5}, "kept", (1, 30)),
        ({}, 4, {"max_lost": 0.0}, "kept", (0, 12)),
        ({0: "lost"}, 4, {"max_lost": 0.0}, "crossed", (1, 12)),
        (KINDS, 6, {"max_ghost": 0.0}, "crossed", None),
        (KINDS, 6, {"max_ghost": {"1": 0.0}}, "crossed", None),
        (KINDS, 6, {"max_ghost": {"0": 0.0}}, "kept", None),
        (KINDS, 6, {"max_class": {"2": 0.0}}, "crossed", None),
        (KINDS, 6, {"max_class": {"1": 0.0}}, "kept", None),
        (KINDS, 6, {"max_shift": {"0": 0.0}}, "crossed", None),
        (KINDS, 6, {"max_lost": 0.0}, "kept", None),
        # ghosts are a share of what the deployed model detects
        ({0: "ghost"}, 2, {"max_ghost": {"1": 0.1}}, None, (1, 2)),
        # where the device answers with NaN all objects are lost, and none has another class
        (dict.fromkeys(range(3), "broken"), 4, {"max_lost": 0.5}, "crossed", (9, 12)),
        (dict.fromkeys(range(3), "broken"), 4, {"max_class": 0.9}, "kept", None),
    ],
)
def test_a_share_is_held_against_its_limit(
    tmp_path: Path,
    natural: dict[int, str],
    seeds: int,
    limits: dict[str, Any],
    state: str | None,
    counts: tuple[int, int] | None,
) -> None:
    one = checked(tmp_path / "c", natural, seeds, **limits)
    assert not (one.crossed and one.undecided)
    if state is not None:
        assert {"crossed": one.crossed, "undecided": one.undecided}.get(state, True)
        assert (state == "kept") == (not one.crossed and not one.undecided)
    assert counts in (None, (one.figures.count, one.figures.total))
    assert ("narrow the bounds" in one.words) == one.undecided
    if state == "crossed" and seeds == 10:
        offenders = [each.name for each in one.figures.offenders]
        assert offenders == ["photos/01.png", "photos/04.png"]


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
    folder = detection_campaign(tmp_path / "c", [], natural={0: "lost"}, margin_floor=0.05)
    (one,) = check_limits(folder, LimitsConfig(max_lost=0.0))  # it differs by 0.03
    assert not one.crossed


def test_other_models_have_no_such_limit(tmp_path: Path) -> None:
    pair = values(1.0), values(2.0)
    folder = value_campaign(tmp_path / "c", pair, pair)
    (one,) = check_limits(folder, LimitsConfig(max_lost=0.5))
    assert (one.crossed, one.reason) == (True, "no-detections")


@pytest.mark.parametrize(
    ("limits", "task", "names", "words"),
    [
        ({"max_lost": 0.1}, "dense", None, r"limits\.max_lost"),
        ({"max_shift": 0.1}, "multi-label", None, r"limits\.max_shift"),
        ({"max_lost": {"horse": 0.1}}, "detection", NAMES, "3 classes"),
        ({"max_lost": {"horse": 0.1}}, "detection", None, "--class-names FILE"),
        ({"max_lost": {"3": 0.1}}, "detection", NAMES, "class '3'"),
        ({"max_disagreement": 6.0}, "detection", NAMES, "max_disagreement"),
        ({"max_lost": {"2": 0.1}}, "detection", NAMES, None),
        ({"max_lost": {"3": 0.1}}, "detection", None, None),
        *(
            ({"max_disagreement": 6.0}, task, None, None)
            for task in ("vector", "embedding", "dense")
        ),
    ],
)
def test_what_no_campaign_can_keep_is_refused_before_anything_is_run(
    limits: dict[str, Any], task: Task, names: tuple[str, ...] | None, words: str | None
) -> None:
    if words is None:
        check_kind_limits(LimitsConfig(**limits), kind_of_task(task), names)
        return
    with pytest.raises(UsageError, match=words):
        check_kind_limits(LimitsConfig(**limits), kind_of_task(task), names)


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

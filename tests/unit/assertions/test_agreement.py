"""`assert_agrees` around the search, which stands aside here."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from edgeflare import assert_agrees
from edgeflare.assertions import agreement
from edgeflare.assertions.running_test import RunningTest
from edgeflare.errors import DeviceBusyError, PreflightError, SeedError, StrategyError, UsageError

PAIR = ("original.onnx", {"path": "models/int8.tflite"}, "photos")


class Searches:
    """Stands for `search` and for what it found; notes how it was called."""

    def __init__(self, *errors: Exception, failure: str | None = None) -> None:
        self.errors = list(errors)
        self.failure = failure
        self.calls: list[dict[str, Any]] = []
        self.folder = Path()

    def search(self, *models: Any, folder: Path, **settings: Any) -> "Searches":
        assert folder.is_dir()
        self.folder = folder
        self.calls.append({"device": models[3], **settings})
        if self.errors:
            raise self.errors.pop(0)
        (folder / "campaign.sqlite").touch()
        return self


@pytest.fixture
def searching(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Searches]:
    """Have the next searches end so; the test is no pytest's, but one in a folder of its own."""

    def make(*errors: Exception, failure: str | None = None) -> Searches:
        found = Searches(*errors, failure=failure)
        monkeypatch.setattr(agreement, "search", found.search)
        monkeypatch.setattr(agreement, "failure_text", lambda folder: found.failure)
        return found

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(agreement, "RUNNING_TEST", RunningTest())
    monkeypatch.setattr(agreement, "_POLL_S", 0.0)
    return make


@pytest.mark.parametrize(
    ("stated", "searched"),
    [
        ({}, {"limits": {"max_seed_deviation_rate": 0.0}, "strategy": "none"}),
        (
            {"strategy": "dflare"},
            {"limits": {"max_seed_deviation_rate": 0.0}, "strategy": "dflare"},
        ),
        ({"limits": {"min_l2": 1.0}}, {"limits": {"min_l2": 1.0}}),
        (
            {"limits": {"max_seed_deviation_rate": 0.5, "min_l2": None, "new_pairs": True}},
            {"limits": {"max_seed_deviation_rate": 0.5}, "strategy": "none"},
        ),
        (
            {"limits": {"max_seed_deviation_rate": 0.5}, "concurrency": 2},
            {"limits": {"max_seed_deviation_rate": 0.5}, "concurrency": 2, "strategy": "none"},
        ),
    ],
)
def test_it_searches_only_where_a_limit_is_about_that(searching, stated, searched) -> None:
    found = searching()
    assert_agrees(*PAIR, **stated)
    assert found.calls == [{"device": "local", **searched}]


def test_limits_are_read_from_a_campaign_file(searching, tmp_path) -> None:
    text = '[limits]\nnew_pairs = false\nbaseline = "last"\n'
    (tmp_path / "campaign.toml").write_text(text)
    found = searching()
    assert_agrees(*PAIR, limits=tmp_path / "campaign.toml")
    baseline = str(tmp_path / "last")
    assert found.calls[0]["limits"] == {"new_pairs": False, "baseline": baseline}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "search can"),
        ("[limits]\nmax_new_triggers = 0", "search can"),
        ("limits = 3", "limits must"),
    ],
)
def test_a_file_without_limits_is_refused(searching, tmp_path, text, words) -> None:
    (tmp_path / "campaign.toml").write_text(text)
    with pytest.raises(UsageError, match=words):
        assert_agrees(*PAIR, limits="campaign.toml")


@pytest.mark.parametrize(
    "limits",
    [
        {}, {"max_new_triggers": 0}, {"new_pairs": True}, {"max_severity": None},
        {"max_severty": 0.5}, "nowhere.toml",
    ],
)  # fmt: skip
def test_limits_that_no_search_can_cross_are_refused(searching, limits) -> None:
    found = searching()
    with pytest.raises(UsageError):
        assert_agrees(*PAIR, limits=limits)
    assert found.calls == []


def test_each_campaign_has_a_new_folder(searching: Callable[..., Searches], tmp_path: Path) -> None:
    found = searching()
    folders = []
    for folder in (None, None, "kept"):
        assert_agrees(*PAIR, folder=folder)
        folders.append(found.folder)
    assert [one.parent for one in folders] == [
        tmp_path / n for n in ("campaigns", "campaigns", "kept")
    ]
    assert len(set(folders)) == 3
    assert all(one.name.startswith("int8-") for one in folders)


def test_in_a_test_it_has_that_tests_folder_and_device(searching, tmp_path) -> None:
    found = searching()
    test = agreement.RUNNING_TEST
    test.make_folder, test.device = lambda: tmp_path, lambda: "pi4"
    assert_agrees(*PAIR)
    assert (found.folder, found.calls[0]["device"]) == (tmp_path / "int8", "pi4")
    assert_agrees(*PAIR, device=["pi5", "local"], folder="kept")
    assert (found.folder.parent, found.calls[1]["device"]) == (tmp_path / "kept", ["pi5", "local"])


def test_a_busy_device_is_waited_for(searching: Callable[..., Searches]) -> None:
    found = searching(DeviceBusyError("pi4: in use"), DeviceBusyError("pi4: in use"))
    assert_agrees(*PAIR)
    assert len(found.calls) == 3


def test_one_that_stays_busy_is_an_error_that_leaves_nothing(searching, tmp_path) -> None:
    found = searching(*[DeviceBusyError("pi4: in use by ana")] * 3)
    with pytest.raises(DeviceBusyError, match="was waited"):
        assert_agrees(*PAIR, wait_s=0, folder="kept")
    assert len(found.calls) == 1
    assert list((tmp_path / "kept").iterdir()) == []


def test_a_failure_is_an_assertion_error_of_one_short_traceback(searching) -> None:
    searching(failure="it differs")
    with pytest.raises(AssertionError, match=r"^it differs$"):
        assert_agrees(*PAIR)
    error = SeedError("no seeds")
    searching(error)
    with pytest.raises(SeedError) as caught:
        assert_agrees(*PAIR)
    assert caught.value is agreement.RUNNING_TEST.error is error
    assert len(caught.traceback) == 2


def test_the_long_text_of_a_pair_that_looks_wrong_is_wrapped(searching) -> None:
    words = " ".join(["the preprocessing looks wrong on 62 % of the seeds;"] * 9)
    searching(PreflightError(words))
    with pytest.raises(PreflightError) as caught:
        assert_agrees(*PAIR)
    lines = str(caught.value).splitlines()
    assert max(map(len, lines)) <= 96
    assert " ".join(lines) == words
    assert len(caught.traceback) == 2


def test_the_users_own_code_stays_in_the_traceback(searching: Callable[..., Searches]) -> None:
    searching(StrategyError("mine failed"))
    with pytest.raises(StrategyError) as caught:
        assert_agrees(*PAIR)
    assert len(caught.traceback) > 2


def test_a_folder_that_can_not_be_made_is_named(searching, tmp_path) -> None:
    searching()
    (tmp_path / "file").touch()
    with pytest.raises(agreement.StoreError, match="file/below"):
        assert_agrees(*PAIR, folder="file/below")

"""What a history keeps of nights, and which of them is the last green one."""

from pathlib import Path

import pytest
from nights import BEGIN, add_night, red, run_of

from edgeflare.errors import StoreError
from edgeflare.nightly.config import KeepConfig
from edgeflare.nightly.history import History, prune_history, run_folder
from edgeflare.nightly.nights import NIGHT_NAME


def green_stamp(history: History, model: str = "int8", device: str = "pi4") -> str | None:
    last = history.last_green(model, device)
    return None if last is None else last.night.stamp


def test_a_night_comes_back_as_it_was_saved(tmp_path: Path) -> None:
    history = History(tmp_path)
    night = add_night(history, 0, run_of("int8", "pi4", "regression", **red()))
    assert history.nights() == [night]
    assert history.nights()[0].folder == night.folder


def test_the_last_green_night_is_before_all_red_ones(tmp_path: Path) -> None:
    history = History(tmp_path)
    assert green_stamp(history) is None
    first = add_night(history, 0, run_of("int8", "pi4", "first"), campaigns=True)
    for number in (1, 2):
        bad = run_of("int8", "pi4", "regression", **red())
        add_night(history, number, bad, run_of("int8", "local"), campaigns=True)
    add_night(history, 3, run_of("int8", "pi4", "away"))
    assert green_stamp(history) == first.stamp
    assert green_stamp(history, device="local") != first.stamp


def test_an_accepted_red_night_is_a_baseline(tmp_path: Path) -> None:
    history = History(tmp_path)
    add_night(history, 0, run_of("int8", "pi4"), campaigns=True)
    accepted = run_of("int8", "pi4", "regression", accepted=True, **red())
    night = add_night(history, 1, accepted, campaigns=True)
    assert green_stamp(history) == night.stamp
    assert night.exit_code == 0


def test_a_green_night_whose_search_is_missing_is_passed_over(tmp_path: Path) -> None:
    history = History(tmp_path)
    kept = add_night(history, 0, run_of("int8", "pi4"), campaigns=True)
    add_night(history, 1, run_of("int8", "pi4"))
    assert green_stamp(history) == kept.stamp


def test_a_night_that_was_killed_is_interrupted_the_next_time(tmp_path: Path) -> None:
    history = History(tmp_path)
    add_night(history, 0, run_of("int8", "pi4"), state="running")
    history.begin(BEGIN.replace(day=2), 1)
    assert [night.state for night in history.nights()] == ["interrupted", "running"]
    assert [night.number for night in history.nights()] == [1, 2]


def test_two_nights_of_one_second_have_folders_of_their_own(tmp_path: Path) -> None:
    history = History(tmp_path)
    history.make()
    nights = [history.begin(BEGIN, 1) for _ in range(12)]
    assert len({night.folder for night in nights}) == 12
    assert [night.number for night in history.nights()] == list(range(1, 13))


@pytest.mark.parametrize("text", ["{", "[" * 100_000], ids=["cut short", "nested deep"])
def test_a_damaged_night_is_left_out_and_named(tmp_path: Path, text: str) -> None:
    history = History(tmp_path)
    good = add_night(history, 0, run_of("int8", "pi4"))
    bad = add_night(history, 1, run_of("int8", "pi4"))
    (bad.folder / NIGHT_NAME).write_text(text)
    assert history.nights() == [good]
    assert history.damaged() == [bad.folder]


def test_a_night_of_a_later_format_is_reported(tmp_path: Path) -> None:
    history = History(tmp_path)
    night = add_night(history, 0, run_of("int8", "pi4"))
    path = night.folder / NIGHT_NAME
    path.write_text(path.read_text().replace('"format": 1', '"format": 2'))
    with pytest.raises(StoreError, match="format 2"):
        history.nights()


@pytest.mark.parametrize(
    ("states", "code"),
    [
        (("green", "first"), 0),
        (("green", "away"), 3),
        (("failed", "green"), 3),
        (("away", "regression"), 1),
    ],
)
def test_the_exit_code_reports_the_worst_first(tmp_path, states, code) -> None:
    runs = [run_of(f"m{n}", "local", state) for n, state in enumerate(states)]
    assert add_night(History(tmp_path), 0, *runs).exit_code == code


def test_folders_of_devices_are_plain_and_unlike() -> None:
    devices = ["pi4", "ssh://me@host:22", "ssh:--me@host:22", "adb://0123", "local#2"]
    folders = [run_folder("int8", device) for device in devices]
    assert folders[0] == "int8/pi4"
    assert len({folder.lower() for folder in folders}) == len(devices)
    assert all(folder.count("/") == 1 and ":" not in folder for folder in folders)


def kept(history: History) -> list[int]:
    """Return the numbers of the nights whose search is still there."""
    return [
        night.number
        for night in history.nights()
        if any(night.campaign(run).is_dir() for run in night.runs)
    ]


def test_old_nights_lose_their_campaigns_and_keep_their_figures(tmp_path: Path) -> None:
    history = History(tmp_path)
    for number in range(5):
        add_night(history, number, run_of("int8", "pi4"), campaigns=True)
    assert prune_history(history, KeepConfig(nights=2)) == 3
    assert kept(history) == [4, 5]
    oldest = history.nights()[0]
    assert oldest.runs[0].search is not None
    assert (oldest.folder / "log.txt").is_file()


def test_every_campaign_of_an_old_night_goes_and_counts(tmp_path: Path) -> None:
    history = History(tmp_path)
    for number in range(2):
        night = add_night(history, number, run_of("int8", "pi4"), campaigns=True, size=400_000)
        seeds = night.folder / night.runs[0].folder / "seeds"
        seeds.mkdir()
        (seeds / "campaign.sqlite").write_bytes(b"x" * 400_000)
    assert prune_history(history, KeepConfig(nights=5, mb=2)) == 1  # a night has 1.2 MB
    assert not list(history.nights()[0].folder.glob("*/*/*"))
    assert len(list(history.nights()[1].folder.glob("*/*/*"))) == 3


def test_the_last_green_search_stays_whatever_its_age(tmp_path: Path) -> None:
    history = History(tmp_path)
    add_night(history, 0, run_of("int8", "pi4"), campaigns=True)
    for number in range(1, 5):
        add_night(history, number, run_of("int8", "pi4", "regression", **red()), campaigns=True)
    prune_history(history, KeepConfig(nights=1))
    assert kept(history) == [1, 5]
    first = history.nights()[0]
    assert not first.replayed(first.runs[0]).exists()


def test_no_more_megabytes_are_kept_than_wanted_and_the_newest_night_always(tmp_path: Path) -> None:
    history = History(tmp_path)
    for number in range(4):
        add_night(history, number, run_of("int8", "pi4"), campaigns=True, size=400_000)
    prune_history(history, KeepConfig(nights=10, mb=2))  # a night has two campaigns: 0.8 MB
    assert kept(history) == [3, 4]
    prune_history(history, KeepConfig(nights=10, mb=1))
    assert kept(history) == [4]
    assert prune_history(history, KeepConfig(nights=10, mb=1)) == 0

"""What a user with no device at all does first."""

import json
import sqlite3
from pathlib import Path

import cv2
import numpy as np
import pytest
from campaigns import found_in
from command import edgeflare, edgeflare_process, must_run


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("home")


@pytest.fixture(scope="module")
def campaign(home: Path) -> Path:
    ran = edgeflare_process("demo", "--out", "first", home=home)
    assert ran.code == 0, ran.err
    assert "success rate" in ran.out.lower()
    assert "crossing=least-l2 effort=64 tied_classes=3" in ran.out
    assert "search:" in ran.err
    assert str(Path("first")) in ran.err
    return home / "first"


def test_the_devices_python_may_be_named(home: Path) -> None:
    ran = edgeflare("demo", "--python", "python9.99", "--out", "unreached", home=home)
    assert ran.code == 3
    assert "Python command 'python9.99'" in ran.sentence


def test_nearly_all_of_twenty_seeds_have_a_trigger(home: Path, campaign: Path) -> None:
    summary = edgeflare("show", campaign, "--json", home=home).json
    assert summary["seeds"] == 20
    assert summary["by_status"]["found"] + summary["by_status"].get("seed-deviates", 0) >= 18
    assert summary["unfinished"] == 0
    assert summary["labelled"] == summary["original_right"] == summary["deployed_right"] == 20


def test_the_folder_has_what_is_needed_to_see_a_trigger_again(campaign: Path) -> None:
    assert (campaign / "campaign.sqlite").is_file()
    with sqlite3.connect(campaign / "campaign.sqlite") as database:
        (check,) = database.execute("pragma integrity_check").fetchone()
        rows = database.execute("select count(*) from outcomes").fetchone()
    database.close()
    assert check == "ok"
    assert rows == (20,)


def test_a_run_leaves_nothing_else_in_the_home_folder(home: Path, campaign: Path) -> None:
    assert {path.name for path in home.iterdir() if path.name.startswith(".")} == {".cache"}
    assert {path.name for path in (home / ".cache").iterdir()} == {"edgeflare"}


def test_export_writes_exact_pictures_and_a_line_for_each(home: Path, campaign: Path) -> None:
    must_run("export", campaign, "pictures", home=home)
    lines = (home / "pictures" / "triggers.jsonl").read_text().splitlines()
    rows = [json.loads(line) for line in lines]
    assert len(rows) >= 18
    for row in rows:
        trigger = cv2.imread(str(home / "pictures" / row["files"]["trigger"]), cv2.IMREAD_UNCHANGED)
        seed = cv2.imread(str(home / "pictures" / row["files"]["seed"]), cv2.IMREAD_UNCHANGED)
        assert trigger.dtype == np.uint8
        assert trigger.shape[:2] == seed.shape[:2] == (28, 28)
        assert row["original_label"] != row["deployed_label"]
        assert int(np.argmax(row["original_scores"])) == row["original_label"]
        assert int(np.argmax(row["deployed_scores"])) == row["deployed_label"]


@pytest.mark.extended
def test_the_same_seed_gives_the_same_triggers(home: Path, campaign: Path) -> None:
    for name, seed in (("again", 0), ("other", 1)):
        must_run("demo", "--out", name, "--seed", seed, "--seeds", 5, home=home)
    assert set(triggers(home / "again")) <= set(triggers(campaign))
    assert not set(triggers(home / "other")) <= set(triggers(campaign))


def triggers(folder: Path) -> list[str]:
    return sorted(f"{seed} {found[:2]}" for seed, found in found_in(folder).items())

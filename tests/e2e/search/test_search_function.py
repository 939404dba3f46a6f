"""`edgeflare.strategies`: a campaign as one call of the library."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import edgeflare
from edgeflare.campaign import demo_config
from edgeflare.store import Store

PROJECT = Path(__file__).resolve().parents[3]
PROGRAM = PROJECT / "tests" / "data" / "five_lines.py"
DEMO = demo_config()
ORIGINAL, DEPLOYED = DEMO.original.path, DEMO.deployed.path


@pytest.fixture(scope="module")
def digits() -> dict[str, np.ndarray]:
    with np.load(DEMO.seeds.path) as data:
        return {"images": data["images"][:3], "labels": data["labels"][:3]}


def run(*arguments: str | Path) -> str:
    done = subprocess.run([sys.executable, *arguments], capture_output=True, text=True, cwd=PROJECT)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_five_lines_search_and_keep_the_campaign(tmp_path: Path, digits) -> None:
    seeds, saved = tmp_path / "digits.npz", tmp_path / "saved"
    np.savez(seeds, **digits)
    lines = run(PROGRAM, ORIGINAL, DEPLOYED, seeds, saved).splitlines()
    summary = edgeflare.summarize(saved)
    assert summary.seeds == 3
    assert len(lines) == summary.found > 0
    assert "(28, 28, 1)" in lines[0]


def test_images_in_memory_are_seeds_and_a_trigger_has_all_that_is_known_of_it(
    tmp_path: Path, digits
) -> None:
    folder = tmp_path / "kept"
    result = edgeflare.search(
        ORIGINAL, DEPLOYED, {**digits, "limit": 2}, folder=folder, strategy="dflare",
        max_queries=800,
    )  # fmt: skip
    triggers = list(result.triggers)
    assert triggers
    for trigger in triggers:
        index = int(trigger.seed_id.rpartition(":")[2])
        np.testing.assert_array_equal(trigger.seed[..., 0], digits["images"][index])
        assert trigger.label == digits["labels"][index]
        assert trigger.device == "local"
        assert trigger.original.argmax() == trigger.original_label != trigger.deployed_label
        assert trigger.margin is not None
        assert trigger.margin >= edgeflare.summarize(folder).search["margin_floor"]
        assert not np.array_equal(trigger.sample, trigger.seed)
    assert edgeflare.resume_campaign(folder) == folder
    kept = (folder / "kept-seeds.npz").read_bytes()
    with pytest.raises(edgeflare.UsageError):
        edgeflare.search(ORIGINAL, DEPLOYED, digits["images"][2:], folder=folder, max_querys=3)
    with pytest.raises(edgeflare.StoreError, match="empty folder"):
        edgeflare.search(ORIGINAL, DEPLOYED, digits["images"][2:], folder=folder)
    assert (folder / "kept-seeds.npz").read_bytes() == kept
    assert list(tmp_path.iterdir()) == [folder]


def test_images_in_memory_leave_nothing_where_no_search_began(tmp_path: Path, digits) -> None:
    folder = tmp_path / "none"
    given = {"strategy": "none", "folder": folder}
    with pytest.raises(edgeflare.UsageError):
        edgeflare.search(ORIGINAL, DEPLOYED, digits, max_querys=3, **given)
    with pytest.raises(edgeflare.SeedError, match="be integers"):
        edgeflare.search(ORIGINAL, DEPLOYED, {**digits, "labels": np.arange(100)}, **given)
    with pytest.raises(edgeflare.EdgeFlareError):  # once its folder is made
        edgeflare.search(ORIGINAL, DEPLOYED, {**digits, "labels": np.arange(100, 103)}, **given)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.extended
def test_a_saved_campaign_names_its_own_seeds_and_is_replayed(tmp_path: Path, digits) -> None:
    result = edgeflare.search(ORIGINAL, DEPLOYED, digits["images"], strategy="none", control=True)
    saved = result.save(tmp_path / "saved")
    temporary = result.folder.parent
    del result
    assert not temporary.exists()
    for folder in (saved, saved / "control"):
        with Store.open(folder) as store:
            seeds = Path(store.setting("seeds", "path"))
            assert (seeds.parent, store.setting("out")) == (saved, str(folder))
            assert str(temporary) not in json.dumps(store.campaign)
    with np.load(seeds) as data:
        np.testing.assert_array_equal(data["images"], digits["images"])
    assert edgeflare.resume_campaign(saved) == saved
    base = edgeflare.replay_base(saved)
    config = edgeflare.replay_config(base, {"out": tmp_path / "again"})
    assert edgeflare.summarize(edgeflare.run_replay(saved, config)).seeds == len(digits["images"])


def test_a_temporary_campaign_goes_with_its_result(digits) -> None:
    result = edgeflare.search(ORIGINAL, DEPLOYED, digits["images"][:1], strategy="none")
    folder = result.folder
    assert list(result.triggers) == []
    assert folder.is_dir()
    del result
    assert not folder.parent.exists()


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"max_querys": 3}, "setting search.max_querys"),
        ({"fleet": {"mode": "mixed"}}, "search: fleet.mode"),
        ({"strategy": "hope"}, "strategy 'hope'"),
        ({"device": "roof"}, "called 'roof'"),
    ],
)
def test_a_wrong_setting_is_the_sentence_of_the_command_line(digits, settings, words) -> None:
    with pytest.raises(edgeflare.UsageError, match=words):
        edgeflare.search(ORIGINAL, DEPLOYED, digits["images"], **settings)


@pytest.mark.extended
def test_a_type_checker_sees_the_exact_types(tmp_path: Path) -> None:
    file = tmp_path / "typed.py"
    asked = ("trigger.sample", "trigger.margin", "result.folder", "edgeflare.load_config")
    text = PROGRAM.read_text() + "".join(f"reveal_type({one})\n" for one in asked)
    file.write_text(text)
    found = run("-m", "mypy", "--strict", file)
    assert "no issues found" in found
    for words in ("numpy.ndarray[", "float | None", "pathlib.Path", "config.CampaignConfig"):
        assert words in found

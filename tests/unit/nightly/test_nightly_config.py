"""What a nightly.toml may say, and what is said of a wrong one."""

from pathlib import Path

import pytest

from edgeflare.errors import UsageError
from edgeflare.nightly import load_nightly

INLINE = """
history = "nightly"
devices = ["local", "pi4"]
[[models]]
name = "int8"
original.path = "models/original.onnx"
deployed.path = "models/int8.tflite"
seeds = {path = "seeds", limit = 5}
"""


def written(folder: Path, text: str) -> Path:
    path = folder / "nightly.toml"
    path.write_text(text)
    return path


def test_relative_paths_start_at_the_folder_of_the_file(tmp_path: Path) -> None:
    config = load_nightly(written(tmp_path, INLINE + "\n[limits]\nnew_pairs = true\n"))
    campaign = config.campaign(config.models[0], "pi4")
    assert config.history == tmp_path / "nightly"
    assert campaign.deployed.path == tmp_path / "models" / "int8.tflite"
    assert campaign.seeds.path == tmp_path / "seeds"
    assert campaign.seeds.limit == 5
    assert campaign.devices == ("pi4",)


def test_a_campaign_file_gives_all_but_device_folder_and_what_the_night_states(tmp_path) -> None:
    (tmp_path / "pair").mkdir()
    (tmp_path / "pair" / "campaign.toml").write_text(
        'devices = ["far"]\nout = "here"\ncontrol = true\n'
        'original.path = "o.onnx"\ndeployed.path = "d.tflite"\nseeds.path = "s"\n'
        '[search]\nseed = 7\nmax_queries = 900\n[fleet]\nmode = "replicate"\n'
        "[limits]\nmax_deviation_rate = 0.5\n"
    )
    config = load_nightly(
        written(
            tmp_path,
            'history = "h"\ndevices = "local"\ninventory = "devices.toml"\n'
            '[[models]]\nname = "one"\ncampaign = "pair/campaign.toml"\n'
            "[search]\nmax_queries = 50\n[fleet]\ntotal_queries = 2000\n"
            "[limits]\nmax_seed_deviation_rate = 0.1\n",
        )
    )
    campaign = config.campaign(config.models[0], "local")
    assert campaign.original.path == tmp_path / "pair" / "o.onnx"
    assert (campaign.search.max_queries, campaign.search.seed) == (50, 7)
    assert (campaign.devices, campaign.out, campaign.control) == (("local",), None, False)
    assert (campaign.fleet.mode, campaign.fleet.total_queries) == ("split", 2000)
    assert campaign.inventory == tmp_path / "devices.toml"
    assert campaign.limits.max_deviation_rate == 0.5
    assert campaign.limits.max_seed_deviation_rate == 0.1
    assert campaign.limits.max_new_triggers == 0


def test_every_night_has_the_same_seed_unless_it_is_to_vary(tmp_path: Path) -> None:
    same = load_nightly(written(tmp_path, INLINE))
    assert {same.campaign(same.models[0], "pi4", night=n).search.seed for n in (1, 2)} == {0}
    other = load_nightly(written(tmp_path, "vary_seed = true\n" + INLINE))
    assert [other.campaign(other.models[0], "pi4", night=n).search.seed for n in (1, 2)] == [1, 2]


def test_no_new_pairs_is_held_against_the_last_green_night(tmp_path: Path) -> None:
    config = load_nightly(written(tmp_path, INLINE + "\n[limits]\nnew_pairs = false\n"))
    first = config.campaign(config.models[0], "pi4")
    later = config.campaign(config.models[0], "pi4", baseline=tmp_path / "green")
    assert first.limits.new_pairs
    assert (later.limits.new_pairs, later.limits.baseline) == (False, tmp_path / "green")


def test_the_first_night_keeps_to_the_baseline_of_the_campaign_file(tmp_path: Path) -> None:
    (tmp_path / "campaign.toml").write_text(
        'original.path = "o.onnx"\ndeployed.path = "d.tflite"\nseeds.path = "s"\n'
        '[limits]\nnew_pairs = false\nbaseline = "release"\n'
    )
    config = load_nightly(
        written(
            tmp_path,
            'history = "h"\ndevices = "local"\n[[models]]\nname = "one"\ncampaign = "campaign.toml"\n'
            "[limits]\nnew_pairs = false\n",
        )
    )
    first = config.campaign(config.models[0], "local")
    later = config.campaign(config.models[0], "local", baseline=tmp_path / "green")
    assert first.limits.baseline == tmp_path / "release"
    assert later.limits.baseline == tmp_path / "green"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("histroy = 'x'\n" + INLINE, "setting histroy"),
        (INLINE.replace('history = "nightly"', ""), "history is missing"),
        (INLINE.replace('["local", "pi4"]', "[]"), "0 entries"),
        (INLINE.replace('"pi4"', '""'), "devices.1"),
        (INLINE.replace('"pi4"', '"local"'), "device 'local' stands"),
        (INLINE + INLINE[INLINE.index("[[") :], "model 'int8' stands"),
        (INLINE.replace('"int8"', '"../int8"'), "no plain name"),
        (INLINE + 'campaign = "campaign.toml"\n', "not both"),
        (INLINE.replace('deployed.path = "models/int8.tflite"', ""), "deployed missing"),
        (INLINE + "[keep]\nnights = 0\n", "keep.nights"),
        (INLINE + "[search]\nmax_querys = 3\n", "setting search.max_querys"),
        (INLINE + "[limits]\nmax_new_triggers = -1\n", "limits.max_new_triggers"),
        ("history = \n", "is not TOML"),
    ],
)
def test_a_wrong_file_is_reported_in_one_sentence(tmp_path: Path, text: str, words: str) -> None:
    path = written(tmp_path, text)
    with pytest.raises(UsageError) as caught:
        load_nightly(path)
    assert words in str(caught.value)
    assert str(caught.value).startswith(str(path))
    assert "\n" not in str(caught.value).removeprefix(str(path))


def test_a_missing_file_is_reported(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"nightly\.toml"):
        load_nightly(tmp_path / "nightly.toml")

"""Suite files, as a user writes them, and the cells of a suite with the campaign of each."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

import pytest

import edgeflare_bench
from edgeflare.errors import UsageError
from edgeflare_bench.cells import Bench, cells
from edgeflare_bench.suite import Suite, check_files, load_suite, suite_about, suite_names

Write: TypeAlias = Callable[[str], str]

PAIR = """
[[pairs]]
name = "LeNet 5"
original = { path = "{demo}/original.onnx" }
deployed = { path = "{demo}/deployed.tflite" }
seeds = { path = "{demo}/seeds.npz" }
"""
OTHER_PAIR = """
[[pairs]]
name = "changed"
study = "weights"
x = 10
original = { path = "models/one.onnx", input = { scale = "1/255" } }
perturb = { percent = 10 }
seeds = { path = "seeds", labels = "labels.csv", limit = 6 }
allow_disagreement = true
"""
STRATEGY = """
[[strategies]]
name = "text"
"""
FULL = f"""
name = "trial"
title = "A trial"
seeds = 7
seed = 40
repeats = 2
max_queries = 50
baseline = "text"
{PAIR}{OTHER_PAIR}{STRATEGY}
[[strategies]]
name = "long"
operators = ["average-blur"]
max_queries = 500
repeats = 1
pairs = ["LeNet 5"]

[[published]]
pair = "LeNet 5"
strategy = "long"
source = "a paper"
queries = 12.5
"""


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def write(text: str) -> str:
        path = tmp_path / "suite.toml"
        path.write_text(text)
        return str(path)

    return write


@pytest.fixture
def full(write: Write) -> Suite:
    return load_suite(write(FULL))


def test_paths_are_whole(full: Suite, tmp_path: Path) -> None:
    shipped, own = full.pairs
    assert shipped.original.path.is_file()
    assert shipped.seeds.path.is_file()
    assert own.original.path == tmp_path / "models" / "one.onnx"
    assert own.seeds.labels == tmp_path / "labels.csv"


def test_data_is_the_folder_that_is_given(write: Write, tmp_path: Path) -> None:
    source = write('name = "trial"\n' + PAIR.replace("{demo}", "{data}/deep") + STRATEGY)
    with pytest.raises(UsageError, match="--data FOLDER"):
        load_suite(source)
    with pytest.raises(UsageError, match=r"folder .*nowhere"):
        load_suite(source, tmp_path / "nowhere")
    suite = load_suite(source, tmp_path)
    assert suite.pairs[0].original.path == tmp_path / "deep" / "original.onnx"
    assert suite_about(source).needs_data


def test_each_file_is_in_the_first_of_several_folders_that_has_it(write, tmp_path) -> None:
    source = write('name = "trial"\n' + PAIR.replace("{demo}", "{data}") + STRATEGY)
    models, own = tmp_path / "models", tmp_path / "own"
    for folder in (models, own):
        folder.mkdir()
    for file in (models / "original.onnx", own / "original.onnx", own / "seeds.npz"):
        file.touch()
    (pair,) = load_suite(source, [models, own]).pairs
    assert pair.deployed is not None
    assert (pair.original.path, pair.seeds.path) == (models / "original.onnx", own / "seeds.npz")
    assert pair.deployed.path == models / "deployed.tflite", "it is nowhere"
    (pair,) = load_suite(source, [own, models]).pairs
    assert pair.original.path == own / "original.onnx"
    with pytest.raises(UsageError, match=r"folder .*nowhere"):
        load_suite(source, [models, tmp_path / "nowhere"])
    with pytest.raises(UsageError, match="the folder"):
        load_suite(source, [])


def test_a_folder_s_word_is_the_whole_first_part_of_a_path(write: Write, tmp_path: Path) -> None:
    (tmp_path / "dataX").mkdir()
    source = write('name = "trial"\n' + PAIR.replace("{demo}/seeds.npz", "{data}X/s") + STRATEGY)
    with pytest.raises(UsageError, match=r"seeds.path: \{data\}X/s"):
        load_suite(source, tmp_path / "data")
    source = write('name = "trial"\n' + PAIR.replace("{demo}/seeds.npz", "{data}") + STRATEGY)
    assert load_suite(source, tmp_path).pairs[0].seeds.path == tmp_path


def test_a_strategy_has_the_suite_s_budget_or_its_own(full: Suite) -> None:
    text, long = full.strategies_of("LeNet 5")
    assert (text.max_queries, text.seeds, text.repeats, text.timeout_s) == (50, 7, 2, 180)
    assert (long.max_queries, long.seeds, long.repeats) == (500, 7, 1)
    assert [one.name for one in full.strategies_of("changed")] == ["text"]
    assert full.search("long", 1).model_dump(include={"max_queries", "operators", "seed"}) == {
        "max_queries": 500,
        "operators": ("average-blur",),
        "seed": 41,
    }


def test_there_is_no_margin_floor_unless_one_is_set(write: Write) -> None:
    source = FULL.replace("seeds = 7", "seeds = 7\nmargin_floor = 0.01")
    own = source.replace("max_queries = 500", "margin_floor = 0")
    for text, floors in ((FULL, [0.0, 0.0]), (source, [0.01, 0.01]), (own, [0.01, 0.0])):
        suite = load_suite(write(text))
        told = [suite.search(one.name).margin_floor for one in suite.strategies_of("LeNet 5")]
        assert told == floors


def test_it_goes_through_json_unchanged(full: Suite) -> None:
    assert Suite.model_validate_json(full.model_dump_json()) == full


def test_narrowing_keeps_what_belongs_to_the_rest(full: Suite) -> None:
    one = full.narrowed(pairs=["LeNet 5"], strategies=["long"], repeats=3, max_queries=9)
    assert [pair.name for pair in one.pairs] == ["LeNet 5"]
    (long,) = one.strategies_of("LeNet 5")
    assert (long.repeats, long.max_queries, long.seeds) == (3, 9, 7)
    assert one.baseline is None
    assert len(one.published) == 1
    other = full.narrowed(pairs=["changed"], seeds=2)
    assert [strategy.name for strategy in other.strategies] == ["text"]
    assert (other.baseline, other.published, other.seeds) == ("text", (), 2)
    assert full.narrowed() == full


@pytest.mark.parametrize(
    ("narrow", "words"),
    [
        ({"pairs": ["LeNet"]}, "LeNet 5"),
        ({"strategies": ["x"]}, "strategy: 'x'"),
        ({"pairs": ["changed"], "strategies": ["long"]}, "chosen strategies"),
        ({"seeds": 0}, "least 1"),
    ],
)
def test_a_wrong_narrowing_is_reported(full: Suite, narrow: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        full.narrowed(**narrow)


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        ("seeds = 7", "seed_inputs = 7", "setting seed_inputs"),
        ("x = 10\n", "", "pair changed"),
        ("perturb = { percent = 10 }\n", "", "either deployed"),
        ("percent = 10", "percent = 101", "perturb.percent must"),
        ('name = "changed"', 'name = "LeNet-5"', "called lenet-5"),
        ('name = "changed"', 'name = "../up"', "'../up' is"),
        ('name = "changed"', 'name = "up."', "'up.' is"),
        ('name = "long"', 'name = "text"', "several called"),
        ('name = "long"', 'name = "a b"', "name"),
        ('pairs = ["LeNet 5"]', 'pairs = ["LeNet"]', "strategies.long.pairs: 'LeNet'"),
        ('baseline = "text"', 'baseline = "txt"', "baseline: 'txt'"),
        ('strategy = "long"', 'strategy = "lnog"', "published.strategy: 'lnog'"),
        ("max_queries = 500", "max_queries = 0\ntimeout_s = 0", "strategies.long"),
        (
            "max_queries = 500",
            "options = { speed = nan }",
            "strategies.long: .*speed",
        ),
        ("max_queries = 500", "options = { speed = 1 }", "option 'speed'"),
        ('["average-blur"]', '["average-blurr"]', "strategies.long: .*average-blurr"),
        ("{demo}/seeds", "{home}/seeds", r"pairs.0.seeds.path: \{home\}"),
        ("{demo}/seeds", "{demo}seeds", r"pairs.0.seeds.path: \{demo\}seeds.npz"),
        ("{demo}/seeds", "a/{demo}/seeds", r"pairs.0.seeds.path: a/\{demo\}/seeds.npz"),
        ("{demo}/seeds", "{demo}/{demo}/s", r"seeds.path: \{demo\}/\{demo\}/s.npz"),
        ('name = "changed"', f'name = "{101 * "x"}"', "101 characters"),
        ('name = "long"', f'name = "{101 * "x"}"', "101 characters"),
        ("seeds = 7", "seeds = 7\nmargin_floor = 1", "margin_floor must"),
        ("repeats = 2", "repeats = two", "line 6"),
        ('name = "trial"', "", "missing"),
    ],
)
def test_what_is_wrong_is_reported_in_a_sentence(write, before, after, words) -> None:
    assert before in FULL
    source = write(FULL.replace(before, after, 1))
    with pytest.raises(UsageError, match=words) as error:
        load_suite(source)
    assert source in str(error.value)
    assert "\n" not in str(error.value)


def test_an_unknown_suite_is_reported_with_the_packaged_ones() -> None:
    with pytest.raises(UsageError, match="suite 'nosuch'") as e:
        load_suite("nosuch")
    assert all(name in str(e.value) for name in suite_names())


def test_every_packaged_suite_can_be_read(tmp_path: Path) -> None:
    for name in suite_names():
        about = suite_about(name)
        assert about.name == name
        suite = load_suite(name, tmp_path if about.needs_data else None)
        assert suite.name == name
        assert suite.title == about.title != ""


def test_a_file_in_none_of_several_folders_names_them_all(write: Write, tmp_path: Path) -> None:
    source = write('name = "trial"\n' + PAIR.replace("{demo}", "{data}/deep") + STRATEGY)
    folders = [tmp_path / "one", tmp_path / "two"]
    for folder in folders:
        folder.mkdir()
    suite = load_suite(source, folders).narrowed(seeds=1)
    with pytest.raises(UsageError, match=r"original\.onnx"):
        check_files(suite)


def test_host_queries_are_limited_by_suite_and_strategy(write: Write) -> None:
    own = STRATEGY.replace("text", "own") + "max_host_queries = 7\n"
    suite = load_suite(write('name = "t"\nmax_host_queries = 9\n' + PAIR + STRATEGY + own))
    assert suite.search("text").max_host_queries == 9
    assert suite.search("own").max_host_queries == 7


def test_the_first_look_begins_with_our_own_search(tmp_path: Path) -> None:
    first, *others = load_suite("demo", tmp_path).strategies
    assert first.strategy == "boundary"
    assert {one.strategy for one in others} == {"dflare", "diffchaser"}


def test_cells_come_by_pair_repeat_and_strategy(full: Suite) -> None:
    of_shipped = [("text", 0), ("long", 0), ("text", 1)]
    assert [tuple(cell) for cell in cells(full)] == [
        *(("LeNet 5", *one) for one in of_shipped),
        *(("changed", "text", repeat) for repeat in (0, 1)),
    ]


def test_each_cell_has_a_campaign_of_its_own_as_the_suite_says(full: Suite) -> None:
    bench = Bench(Path("/benches/one"), full, ("pi", "nano"), python="py")
    configs = {cell.name: bench.config(cell) for cell in cells(full)}
    assert len({config.out for config in configs.values()}) == 5
    text, long, changed = (
        configs[n] for n in ("LeNet-5/text/1", "LeNet-5/long/0", "changed/text/0")
    )
    assert text.out == bench.folder / "cells" / "LeNet-5" / "text" / "1"
    assert (text.original, text.deployed) == (full.pairs[0].original, full.pairs[0].deployed)
    assert (text.search.seed, text.search.max_queries) == (41, 50)
    assert (text.devices, text.python, text.allow_disagreement) == (("pi", "nano"), "py", False)
    assert (long.search.seed, long.search.max_queries) == (40, 500)
    assert [config.seeds.limit for config in (text, long, changed)] == [7, 7, 6]  # the pair has 6
    assert changed.allow_disagreement
    assert changed.deployed.path == bench.folder / "models" / "changed.onnx"
    assert changed.deployed.input == full.pairs[1].original.input


def test_every_public_name_of_the_package_is_there() -> None:
    for name in edgeflare_bench.__all__:
        assert getattr(edgeflare_bench, name).__module__.startswith("edgeflare_bench.")

"""The cells of a suite, and the campaign of each."""

from pathlib import Path
from typing import Any

import edgeflare_bench as bench
from edgeflare_bench.cells import Bench, Cell, cells
from edgeflare_bench.suite import Suite, suite_from

FOLDER = Path("/benches/one")


def suite(**over: Any) -> Suite:
    def pair(name: str, **values: Any) -> dict[str, Any]:
        return {
            "name": name,
            "original": {"path": "/m/o.onnx", "input": {"scale": "1/255"}},
            "deployed": {"path": "/m/d.tflite"},
            "seeds": {"path": "/m/seeds.npz"},
            **values,
        }

    values: dict[str, Any] = {
        "name": "trial",
        "seeds": 10,
        "repeats": 2,
        "seed": 40,
        "pairs": [
            pair("Le Net", seeds={"path": "/m/seeds.npz", "limit": 6}),
            pair("made", deployed=None, perturb={"percent": 10}, allow_disagreement=True),
        ],
        "strategies": [
            {"name": "a"},
            {"name": "b", "repeats": 3, "seeds": 4, "max_queries": 9, "pairs": ["made"]},
        ],
    }
    return suite_from({**values, **over}, "the test")


def test_they_come_by_pair_repeat_and_strategy() -> None:
    assert [tuple(cell) for cell in cells(suite())] == [
        ("Le Net", "a", 0),
        ("Le Net", "a", 1),
        ("made", "a", 0),
        ("made", "b", 0),
        ("made", "a", 1),
        ("made", "b", 1),
        ("made", "b", 2),
    ]


def test_each_has_a_folder_of_its_own() -> None:
    one = suite()
    assert Cell("Le Net", "a", 1).name == "Le-Net/a/1"
    folders = {Bench(FOLDER, one, ("local",)).config(cell).out for cell in cells(one)}
    assert FOLDER / "cells" / "Le-Net" / "a" / "1" in folders
    assert len(folders) == 7


def test_its_campaign_is_what_the_suite_says() -> None:
    one = suite()
    bench = Bench(FOLDER, one, ("pi", "nano"), python="py")
    first = bench.config(Cell("Le Net", "a", 1))
    assert first.original == one.pairs[0].original
    assert first.deployed == one.pairs[0].deployed
    assert first.seeds.limit == 6  # of its 10, the pair has 6
    assert (first.search.seed, first.search.max_queries) == (41, 2000)
    assert (first.devices, first.python) == (("pi", "nano"), "py")
    assert not first.allow_disagreement
    other = Bench(FOLDER, one, ("local",)).config(Cell("made", "b", 0))
    assert (other.seeds.limit, other.search.max_queries, other.search.seed) == (4, 9, 40)
    assert other.allow_disagreement


def test_a_made_model_is_described_as_its_original() -> None:
    one = suite()
    made = Bench(FOLDER, one, ("local",)).config(Cell("made", "a", 0)).deployed
    assert made.path == FOLDER / "models" / "made.onnx"
    assert made.input == one.pairs[1].original.input


def test_every_public_name_of_the_package_is_there() -> None:
    for name in bench.__all__:
        assert getattr(bench, name).__module__.startswith("edgeflare_bench.")

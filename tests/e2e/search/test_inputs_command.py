"""`edgeflare inputs`: mistakes in the preprocessing of either model, stated or built in, are named."""

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from command import DEMO, Ran, edgeflare, must_run
from onnx import TensorProto, compose, helper, numpy_helper

from edgeflare_agent.preprocess import oriented

SIDE = 28
RIGHT = {"scale": "1/255"}
MISTAKES = {
    "scale=1": "scale=1/255 instead of scale=1",
    "mean=127.5 std=127.5": "scale=1/255 instead of mean=127.5, std=127.5",
    "scale=1/255 orientation=rotate-90": "orientation=upright instead of orientation=rotate-90",
    "scale=1/255 orientation=mirror": "orientation=upright instead of orientation=mirror",
    "mean=255 std=-255": "scale=1/255 instead of mean=255, std=-255",
}


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("home")
    with np.load(DEMO / "seeds.npz") as stored:
        np.savez(folder / "unlabelled.npz", images=stored["images"])
    plain = onnx.load(DEMO / "original.onnx")
    del plain.metadata_props[:]
    onnx.save(plain, folder / "original.onnx")
    return folder


def found(
    home: Path, *flags: object, deployed: object = "original.onnx", seeds: object = ""
) -> Ran:
    seeds = seeds or DEMO / "seeds.npz"
    return edgeflare("inputs", "original.onnx", deployed, seeds, *flags, home=home)


def likeliest(ran: Ran) -> tuple[Any, Any]:
    assert ran.code == 0, ran.err
    best = ran.json["pairs"][0]
    return best["original"], best["deployed"]


@pytest.mark.parametrize(
    ("side", "mistake"),
    [
        *(("deployed", one) for one in MISTAKES),
        pytest.param("original", "scale=1", marks=pytest.mark.extended),
    ],
)
def test_a_stated_mistake_is_named(home: Path, side: str, mistake: str) -> None:
    other = "deployed" if side == "original" else "original"
    wrong = [part for text in mistake.split() for part in (f"--{side}-input", text)]
    flags = (*wrong, f"--{other}-input", "scale=1/255", "--limit", "30", "--json")
    ran = found(home, *flags, deployed=DEMO / "deployed.tflite")
    assert likeliest(ran) == (RIGHT, RIGHT)
    assert ran.json["changes"] == [f"the {side} model with {MISTAKES[mistake]}"]
    assert ran.json["pairs"][0]["flags"] == ["--input", "scale=1/255"]
    assert ran.json["seeds"] == ran.json["labelled"] == 30


def test_without_labels_and_anything_stated_it_is_found_too(home: Path) -> None:
    ran = found(home, "--json", deployed=DEMO / "original.tflite", seeds="unlabelled.npz")
    assert likeliest(ran) == (RIGHT, RIGHT)
    assert ran.json["stated"] is None
    assert ran.json["pairs"][0]["accuracy"] is None


def behind(home: Path, nodes: list[Any], shape: list[int], name: str) -> str:
    """Write the demo's original behind other operators on its input; return its file's name."""
    model = onnx.load(home / "original.onnx")
    given = helper.make_tensor_value_info("given", TensorProto.FLOAT, shape)
    made = helper.make_tensor_value_info("made", TensorProto.FLOAT, [1, 1, SIDE, SIDE])
    constants = [numpy_helper.from_array(np.array([2], np.int64), "axis"),
                 numpy_helper.from_array(np.array([-1], np.int64), "start"),
                 numpy_helper.from_array(np.array([-(2**62)], np.int64), "end")]  # fmt: skip
    graph = helper.make_graph(nodes, "front", [given], [made], constants)
    front = helper.make_model(graph, opset_imports=list(model.opset_import))
    front.ir_version = model.ir_version
    onnx.save(
        compose.merge_models(front, model, [("made", model.graph.input[0].name)]), home / name
    )
    return name


def test_a_model_made_for_images_upside_down_is_told(home: Path) -> None:
    nodes = [helper.make_node("Slice", ["given", "start", "end", "axis", "start"], ["made"])]
    deployed = behind(home, nodes, [1, 1, SIDE, SIDE], "flipped.onnx")
    ran = found(home, "--input", "scale=1/255", "--json", deployed=deployed)
    assert likeliest(ran) == (RIGHT, {**RIGHT, "orientation": "flip"})
    assert ran.json["pairs"][0]["distance"] < 1e-6
    changes = ["the deployed model with orientation=flip instead of orientation=upright"]
    assert ran.json["changes"] == changes
    flags = ran.json["pairs"][0]["flags"]
    seeds = ("--seeds", DEMO / "seeds.npz", "--limit", "4", "--strategy", "none", "--no-survey")
    pair = ("--original", "original.onnx", "--deployed", deployed, *seeds, "--json")
    campaign = must_run("run", *pair, *flags, "--out", "flipped", home=home)
    assert campaign.json["deployed_right"] == campaign.json["original_right"] > 0


def test_the_resize_rule_of_a_model_of_another_size_is_told(home: Path) -> None:
    nodes = [
        helper.make_node("AveragePool", ["given"], ["made"], kernel_shape=[2, 2], strides=[2, 2])
    ]
    deployed = behind(home, nodes, [1, 1, 2 * SIDE, 2 * SIDE], "larger.onnx")
    ran = found(home, "--input", "scale=1/255", "--json", deployed=deployed)
    original, best = likeliest(ran)
    assert original == RIGHT
    assert best["resize"] in {"nearest", "area"}  # which are the same here
    assert ran.json["pairs"][0]["distance"] < 1e-6


def test_a_run_where_nothing_tells_the_scaling_asks_without_a_winner_and_makes_nothing(
    home: Path,
) -> None:
    pair = ("--original", "original.onnx", "--deployed", DEMO / "original.tflite")
    ran = edgeflare("run", *pair, "--seeds", DEMO / "seeds.npz", "--out", "nothing", home=home)
    assert ran.code == 2
    assert "pixels are scaled" in ran.sentence
    assert "likeliest" not in ran.sentence
    assert not (home / "nothing").exists()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("gone.onnx", "original.onnx", "unlabelled.npz"), "gone.onnx"),
        (("original.onnx", "original.onnx", "gone"), "seeds"),
        (("original.onnx", "original.onnx", "unlabelled.npz", "--limit", "0"), "--limit"),
    ],
)
def test_what_can_t_be_used_is_said(home: Path, arguments: tuple[str, ...], words: str) -> None:
    ran = edgeflare("inputs", *arguments, home=home)
    assert ran.code == 2
    assert words in ran.err


@pytest.mark.parametrize("orientation", ["rotate-90", "rotate-270"])
def test_both_models_turned_alike_are_told_by_labels(home: Path, orientation: str) -> None:
    with np.load(DEMO / "seeds.npz") as stored:
        turned = [oriented(one, orientation) for one in stored["images"]]
        np.savez(home / "turned.npz", images=np.array(turned), labels=stored["labels"])
    ran = found(home, "--input", "scale=1/255", "--json", seeds="turned.npz")
    back = {"rotate-90": "rotate-270", "rotate-270": "rotate-90"}[orientation]
    assert likeliest(ran) == ({**RIGHT, "orientation": back},) * 2

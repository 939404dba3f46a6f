"""`edgeflare inputs`: how samples enter both models, what tells it, and mistakes in it, stated or built in."""

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from command import DEMO, Ran, edgeflare, must_run
from onnx import TensorProto, compose, helper, numpy_helper
from small_models import save_onnx

from edgeflare.store import Store
from edgeflare_agent.preprocess import oriented

SIDE = 28
UNIT = {"scale": "1/255"}
MISTAKES = {
    "scale=1": UNIT,
    "mean=127.5 std=127.5": {"scale": "1/255", "mean": "0", "std": "1"},
    "scale=1/255 orientation=rotate-90": {"orientation": "upright"},
    "scale=1/255 orientation=mirror": {"orientation": "upright"},
    "mean=255 std=-255": {"scale": "1/255", "mean": "0", "std": "1"},
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


def told(
    home: Path, *flags: object, deployed: object = "original.onnx", seeds: object = ""
) -> dict[str, Any]:
    seeds = seeds or DEMO / "seeds.npz"
    ran: Ran = edgeflare("inputs", "original.onnx", deployed, seeds, *flags, "--json", home=home)
    assert ran.code == 0, ran.err
    return ran.json


def first_change(found: dict[str, Any]) -> tuple[str, str, str, dict[str, str]]:
    cause = found["causes"][0]
    return cause["kind"], cause["side"], cause["proof"], cause["change"]


@pytest.mark.parametrize(
    ("side", "mistake"),
    [
        *(("deployed", one) for one in MISTAKES),
        pytest.param("original", "scale=1", marks=pytest.mark.extended),
    ],
)
def test_a_stated_mistake_is_corrected(home: Path, side: str, mistake: str) -> None:
    other = "deployed" if side == "original" else "original"
    wrong = [part for text in mistake.split() for part in (f"--{side}-input", text)]
    flags = (*wrong, f"--{other}-input", "scale=1/255", "--limit", "30")
    found = told(home, *flags, deployed=DEMO / "deployed.tflite")
    assert first_change(found) == ("preprocessing", side, "corrected", MISTAKES[mistake])
    assert found["inputs"][side]["source"] == "stated"


def by_brightness(folder: Path) -> None:
    """Write a model whose classes are five levels of brightness from 0 to 1, and labelled images for it."""
    levels = np.linspace(0.1, 0.9, 5, dtype=np.float32)
    nodes = [
        helper.make_node("GlobalAveragePool", ["x"], ["mean"]),
        helper.make_node("Conv", ["mean", "w", "b"], ["scores"]),
        helper.make_node("Flatten", ["scores"], ["flat"]),
        helper.make_node("Softmax", ["flat"], ["y"]),
    ]
    weights = {"w": 400 * levels.reshape(5, 1, 1, 1), "b": -200 * levels**2}
    save_onnx(
        folder / "levels.onnx",
        nodes,
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 1, 8, 8])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 5])],
        weights,
    )
    labels = np.arange(40) % 5
    noise = np.random.default_rng(0).normal(0, 8, (40, 8, 8))
    images = np.clip(255 * levels[labels, None, None] + noise, 0, 255).astype(np.uint8)
    np.savez(folder / "levels.npz", images=images, labels=labels)


def test_labels_tell_a_scaling_that_nothing_else_tells(tmp_path: Path) -> None:
    by_brightness(tmp_path)
    files = ("levels.onnx", "levels.onnx", "levels.npz")
    ran = must_run("inputs", *files, "--json", home=tmp_path)
    fed = ran.json["inputs"]
    assert (fed["original"]["source"], fed["original"]["options"]) == ("labels", UNIT)
    assert (fed["deployed"]["source"], fed["deployed"]["options"]) == ("other-model", UNIT)
    assert (ran.json["is_healthy"], ran.json["causes"]) == (True, [])


def test_labels_that_do_not_tell_a_scaling_are_not_asked_for_again(home: Path) -> None:
    pair = ("original.onnx", DEMO / "original.tflite")
    without = edgeflare("inputs", *pair, "unlabelled.npz", home=home)
    given = edgeflare("inputs", *pair, DEMO / "seeds.npz", home=home)
    assert (without.code, given.code) == (2, 2)
    assert "30 labelled seeds" in without.err
    assert "30 labelled seeds" not in given.err
    assert "100 labelled seeds" in given.err
    assert "pixels / 255 (100 % right)" in given.err
    with np.load(DEMO / "seeds.npz") as stored:
        images, labels = stored["images"], stored["labels"]
    for given, words in (
        (labels + 500, "go up to 509"),
        (0 * labels, "100 labelled seeds of 1 class"),
    ):
        np.savez(home / "labelled.npz", images=images, labels=given)
        assert words in edgeflare("inputs", *pair, "labelled.npz", home=home).sentence


def test_a_healthy_pair_has_no_other_way_and_what_tells_it_is_shown(home: Path) -> None:
    original, deployed = DEMO / "original.onnx", DEMO / "deployed.tflite"
    ran = edgeflare("inputs", original, deployed, "unlabelled.npz", home=home)
    assert ran.code == 0
    assert "original.onnx takes pixels / 255 (metadata edgeflare.input)" in ran.out
    assert "deployed.tflite takes pixels / 255 (range of its integers)" in ran.out
    assert "agrees as well as healthy int8 pairs do" in ran.out
    assert not list(home.glob("**/campaign*"))


def test_settings_beside_a_file_tell_it_and_damaged_ones_are_named(
    home: Path, tmp_path: Path
) -> None:
    shutil.copy(home / "original.onnx", tmp_path)
    files = ("original.onnx", DEMO / "original.tflite", home / "unlabelled.npz")
    settings = tmp_path / "preprocessor_config.json"
    settings.write_text('{"do_rescale": true, "do_normalize": false}')
    ran = edgeflare("inputs", *files, "--json", home=tmp_path)
    fed = ran.json["inputs"]
    assert fed["original"]["source"] == "preprocessor-config"
    assert fed["original"]["options"] == fed["deployed"]["options"] == UNIT
    assert "note: input of original.onnx: pixels / 255 (preprocessor_config.json" in ran.err
    settings.write_text('{"do_rescale": true,')
    damaged = edgeflare("inputs", *files, home=tmp_path)
    assert damaged.code == 2
    assert "preprocessor_config.json beside it can't be parsed" in damaged.sentence
    stated = edgeflare("inputs", *files, "--input", "scale=1/255", home=tmp_path)
    assert (stated.code, "preprocessor_config" in stated.err) == (0, False)
    beside_both = ("--original-input", "scale=1/255", "--json")
    ran = edgeflare(
        "inputs", "original.onnx", "original.onnx", files[2], *beside_both, home=tmp_path
    )
    assert "note: original.onnx: preprocessor_config.json beside it can't be parsed" in ran.err


def test_a_campaign_states_what_settings_beside_its_files_told(tmp_path: Path) -> None:
    weights = np.random.default_rng(0).normal(size=(4, 3, 3, 3)).astype(np.float32)
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["conv"]),
        helper.make_node("GlobalAveragePool", ["conv"], ["mean"]),
        helper.make_node("Flatten", ["mean"], ["flat"]),
        helper.make_node("Softmax", ["flat"], ["y"]),
    ]
    save_onnx(
        tmp_path / "open.onnx",
        nodes,
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 3, None, None])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 4])],
        {"w": weights},
    )
    images = np.random.default_rng(1).integers(0, 256, (4, 12, 16, 3), dtype=np.uint8)
    np.savez(tmp_path / "seeds.npz", images=images)
    settings = tmp_path / "preprocessor_config.json"
    halves = {"image_mean": [0.5] * 3, "image_std": [0.5] * 3}
    settings.write_text(json.dumps({**halves, "size": {"height": 12, "width": 16}}))
    pair = ("--original", "open.onnx", "--deployed", "open.onnx", "--seeds", "seeds.npz")
    must_run("run", *pair, "--strategy", "none", "--no-survey", "--out", "out", home=tmp_path)
    settings.unlink()
    must_run("resume", "out", home=tmp_path)
    with Store.open(tmp_path / "out") as store:
        stated = store.campaign["original"]["input"]
        assert store.models["original"]["feed"]["source"] == "preprocessor-config"
    assert (stated["scale"], stated["mean"], stated["size"]) == ("1/255", [0.5] * 3, [12, 16])


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
    found = told(home, "--input", "scale=1/255", deployed=deployed)
    change = {"orientation": "flip"}
    assert first_change(found) == ("preprocessing", "deployed", "corrected", change)
    flags = ("--input", "scale=1/255", "--deployed-input", "orientation=flip")
    seeds = ("--seeds", DEMO / "seeds.npz", "--limit", "4", "--strategy", "none", "--no-survey")
    pair = ("--original", "original.onnx", "--deployed", deployed, *seeds, "--json")
    campaign = must_run("run", *pair, *flags, "--out", "flipped", home=home)
    assert campaign.json["deployed_right"] == campaign.json["original_right"] > 0


def test_where_no_way_of_feeding_fits_none_is_named(home: Path) -> None:
    nodes = [helper.make_node("Softmax", ["given"], ["made"], axis=3)]
    deployed = behind(home, nodes, [1, 1, SIDE, SIDE], "other.onnx")
    found = told(home, "--input", "scale=1/255", deployed=deployed, seeds="unlabelled.npz")
    assert found["causes"]
    assert "preprocessing" not in {cause["kind"] for cause in found["causes"]}


def test_the_resize_rule_of_a_model_of_another_size_is_told(home: Path) -> None:
    nodes = [
        helper.make_node("AveragePool", ["given"], ["made"], kernel_shape=[2, 2], strides=[2, 2])
    ]
    deployed = behind(home, nodes, [1, 1, 2 * SIDE, 2 * SIDE], "larger.onnx")
    flags = ("--input", "scale=1/255", "--deployed-input", "resize=bilinear")
    found = told(home, *flags, deployed=deployed)
    kind, side, proof, change = first_change(found)
    assert (kind, side, proof) == ("preprocessing", "deployed", "corrected")
    assert change["resize"] in {"nearest", "area"}  # which are the same here


def test_a_run_where_nothing_tells_the_scaling_asks_without_a_winner_and_makes_nothing(
    home: Path,
) -> None:
    pair = ("--original", "original.onnx", "--deployed", DEMO / "original.tflite")
    ran = edgeflare("run", *pair, "--seeds", "unlabelled.npz", "--out", "nothing", home=home)
    assert ran.code == 2
    assert "pixels are scaled" in ran.sentence
    assert "likeliest" not in ran.sentence
    assert not (home / "nothing").exists()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("gone.onnx", "original.onnx", "unlabelled.npz"), "gone.onnx"),
        (("original.onnx", "original.onnx", "gone"), "seeds"),
        (("original.onnx", "original.onnx", "unlabelled.npz", "--limit", "0"), "limit"),
        (("original.onnx", "original.onnx", "unlabelled.npz"), "scale"),
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
    found = told(home, "--input", "scale=1/255", seeds="turned.npz")
    back = {"rotate-90": "rotate-270", "rotate-270": "rotate-90"}[orientation]
    change = {"orientation": back}
    assert first_change(found) == ("preprocessing", "both", "corrected", change)

"""Nights of a detector: its head quantised with one scale for boxes and scores is caught, and named by kind."""

import shutil
from pathlib import Path

import numpy as np
import onnx
import pytest
from command import edgeflare
from onnx import helper, numpy_helper

import edgeflare as package

PAIR = Path(package.__file__).parent / "assets" / "demo_detection"

pytestmark = pytest.mark.extended


def one_scale(source: Path, target: Path, scale: float) -> None:
    """Write a detector whose output is rounded to multiples of one scale, boxes and scores alike."""
    model = onnx.load(source)
    output = model.graph.output[0].name
    for node in model.graph.node:
        for place, name in enumerate(node.output):
            if name == output:
                node.output[place] = "head"
    model.graph.initializer.append(numpy_helper.from_array(np.float32(scale), "one_scale"))
    model.graph.node.extend(
        [
            helper.make_node("Div", ["head", "one_scale"], ["scaled"]),
            helper.make_node("Round", ["scaled"], ["rounded"]),
            helper.make_node("Mul", ["rounded", "one_scale"], [output]),
        ]
    )
    onnx.save(model, target)


def test_a_head_of_one_scale_makes_the_night_red_and_its_kind_is_named(tmp_path: Path) -> None:
    for name in ("original.onnx", "seeds.npz"):
        shutil.copy(PAIR / name, tmp_path / name)
    shutil.copy(PAIR / "deployed.onnx", tmp_path / "digits.onnx")
    (tmp_path / "campaign.toml").write_text(
        'task = "detection"\n[original]\npath = "original.onnx"\ninput = { scale = "1/255" }\n'
        '[deployed]\npath = "digits.onnx"\n[seeds]\npath = "seeds.npz"\nlimit = 8\n'
        "[survey]\nenabled = false\n"
    )
    (tmp_path / "nightly.toml").write_text(
        'history = "history"\ndevices = ["local"]\n'
        '[[models]]\nname = "digits"\ncampaign = "campaign.toml"\n'
    )
    first = edgeflare("nightly", "nightly.toml", home=tmp_path)
    assert first.code == 0, first.err
    one_scale(tmp_path / "original.onnx", tmp_path / "digits.onnx", 0.63)
    second = edgeflare("nightly", "nightly.toml", home=tmp_path)
    assert second.code == 1, second.err
    assert "red  digits on local" in second.out
    assert "deviate and did not in the last green night" in second.out
    assert "(ghost class " in second.out

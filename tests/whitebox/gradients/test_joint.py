"""The gradient of DeepXplore's objective over several models."""

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import helper
from onnx_nets import convolutional, saved
from small_models import two_inputs_onnx

from edgeflare.errors import UsageError
from edgeflare.models import InputSpec
from edgeflare.types import JointObjective, Sample
from edgeflare_whitebox.gradients import InputGradients, JointGradients

pytestmark = pytest.mark.torch

SPEC = InputSpec((1, 3, 8, 8), "float32", (8, 8), 3, "CHW", scale=(1.0, 255.0))
LAYERS = ("r1", "r2", "logits")


@pytest.fixture
def models(tmp_path: Path) -> list[Path]:
    kinds = [("Tanh", "AveragePool"), ("Softplus", "AveragePool"), ("Sigmoid", "AveragePool")]
    return [convolutional(tmp_path / f"{number}.onnx", one) for number, one in enumerate(kinds)]


def joint(models: list[Path]) -> JointGradients:
    original, *others = models
    return JointGradients(InputGradients(original, SPEC, "y"), [str(one) for one in others])


def tensors(path: Path, sample: Sample) -> dict[str, Any]:
    """What the runtime computes at an image."""
    model = onnx.load(str(path))
    model.graph.output.extend(onnx.ValueInfoProto(name=name) for name in LAYERS)
    session = onnxruntime.InferenceSession(model.SerializeToString())
    given = (sample.astype(np.float32) / 255).transpose(2, 0, 1)[None]
    return dict(zip(("y", *LAYERS), session.run(None, {"x": given}), strict=True))


def objective(models: list[Path], sample: Sample, asked: JointObjective) -> float:
    total = 0.0
    for place, path in enumerate(models):
        values = tensors(path, sample)
        share = -asked.weight if place == asked.deviating else 1.0
        total += share * float(values["logits"][0, asked.label])
    return total


@pytest.mark.parametrize("deviating", [0, 1, 2])
def test_the_gradient_is_the_slope_of_the_objective_per_level(models, deviating) -> None:
    others = tuple(str(one) for one in models[1:])
    asked = JointObjective(others, 3, deviating, 2.0)
    sample = np.random.default_rng(deviating).integers(60, 190, (8, 8, 3), dtype=np.uint8)

    found = joint(models).at(sample, asked, "probabilities")

    way = np.sign(found.gradient) * 2
    up, down = (sample + way).astype(np.uint8), (sample - way).astype(np.uint8)
    measured = objective(models, up, asked) - objective(models, down, asked)
    assert measured == pytest.approx(2 * (found.gradient * way).sum(), rel=0.05)
    assert found.labels == tuple(int(tensors(one, sample)["y"].argmax()) for one in models)


def test_what_a_further_models_output_holds_is_told_by_its_end(models, tmp_path) -> None:
    """A copy that ends in logits, or in a logarithm of its softmax, has the same decisions and slopes."""
    sample = np.random.default_rng(2).integers(0, 256, (8, 8, 3), dtype=np.uint8)
    for kind in ("LogSoftmax", "Identity", "Softmax"):
        copy = onnx.load(str(models[0]))
        copy.graph.node[-1].op_type = kind
        onnx.save_model(copy, str(tmp_path / "copy.onnx"))
        others = (str(tmp_path / "copy.onnx"),)
        asked = JointObjective(others, 1, 0, 1.0)

        found = joint([models[0], tmp_path / "copy.onnx"]).at(sample, asked, "probabilities")

        assert found.labels[0] == found.labels[1]
        if kind != "LogSoftmax":
            assert np.abs(found.gradient).max() < 1e-6  # the two scores cancel each other out


def test_models_that_do_not_fit_the_original_are_refused(models, tmp_path) -> None:
    weights = {"w": np.ones((192, 4), np.float32)}
    nodes = [
        helper.make_node("Flatten", ["x"], ["f"]),
        helper.make_node("MatMul", ["f", "w"], ["y"]),
    ]
    four = saved(tmp_path / "four.onnx", nodes, weights, [1, 3, 8, 8])
    weights = {"w": np.ones((48, 5), np.float32)}
    smaller = saved(tmp_path / "smaller.onnx", nodes, weights, [1, 3, 4, 4])
    cases = {
        four: "answers with 4 values and the original with 5",
        smaller: "can't be run on what the original takes",
        two_inputs_onnx(tmp_path / "two.onnx"): "has 2 inputs",
        tmp_path / "none.onnx": "can't be read",
    }

    for path, sentence in cases.items():
        with pytest.raises(UsageError, match=sentence):
            joint([models[0], path])

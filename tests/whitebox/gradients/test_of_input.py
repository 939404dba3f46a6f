"""Gradients of the original's log-odds with respect to an image's levels."""

from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from command import DEMO
from onnx import TensorProto, helper, numpy_helper
from small_models import quantized_onnx

from edgeflare.errors import UsageError
from edgeflare.models import InputSpec, OriginalModel, OutputReader, TensorInfo
from edgeflare.types import Ask
from edgeflare_whitebox.gradients import InputGradients

pytestmark = pytest.mark.torch

SPECS = {
    "scale": {"scale": (1.0, 255.0)},
    "mean and std": {"mean": (100.0,), "std": (60.0,)},
    "resized": {"scale": (1.0, 255.0), "resize": "bilinear"},
    "averaged": {"scale": (1.0, 255.0), "resize": "area"},
    "turned": {"scale": (1.0, 255.0), "orientation": "rotate-90"},
    "clipped": {"scale": (1.0, 255.0), "clip": (0.3, 0.6)},
    "transverse": {"scale": (1.0, 255.0), "resize": "area", "orientation": "transverse"},
}


@pytest.mark.parametrize("name", SPECS)
def test_a_gradient_is_the_slope_of_the_log_odds_per_level(name: str) -> None:
    model = OriginalModel(DEMO / "original.onnx", "onnx", {})
    shape = tuple(size or 1 for size in model.input.shape)
    channels_first = shape[1] in {1, 3}
    height, width = shape[2:] if channels_first else shape[1:3]
    layout = "CHW" if channels_first else "HWC"
    spec = InputSpec(shape, "float32", (height, width), 1, layout, "GRAY", **SPECS[name])
    model.configure(spec, model.outputs[0].name)
    model.read_with(OutputReader(model.outputs[0], "probabilities"))
    rng = np.random.default_rng(1)
    size = (height + 9, width - 5) if spec.resize else (height, width)
    sample = rng.integers(60, 190, (*size, 1), dtype=np.uint8)

    ((over_five, over_two),), _ = model.probe(
        Ask((sample,), "original", "gradient", classes=(3, 5, 2))
    )

    way = np.sign(over_five) * 2  # levels, in the direction in which the log-odds grow
    up, down = (sample + way).astype(np.uint8), (sample - way).astype(np.uint8)
    high, low = (np.log(one) for one in model.scores([up, down]))
    for gradient, other in ((over_five, 5), (over_two, 2)):
        measured = (high[3] - high[other]) - (low[3] - low[other])
        assert measured == pytest.approx(2 * (gradient * way).sum(), rel=0.15)
    model.close()


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        ("probabilities", [0.2, 0.5, 0.3]),
        ("logits", [-1.0, 2.0, 0.5]),
        ("sigmoid", [0.3, 0.9, 0.6]),
        ("sigmoid-logits", [-1.0, 2.0, 0.5]),
        ("sigmoid", [0.3]),
        ("sigmoid-logits", [-0.5]),
    ],
)
@pytest.mark.parametrize("end", ["", "Identity"])
def test_gradients_are_those_of_what_the_output_is_read_as(tmp_path, kind, values, end) -> None:
    ends = {"probabilities": "Softmax", "sigmoid": "Sigmoid"}.get(kind)
    arguments = np.array(values, np.float32)
    if ends == "Softmax":
        arguments = np.log(arguments)
    if ends == "Sigmoid":
        arguments = np.log(arguments / (1 - arguments))
    model = sums_onnx(tmp_path / "m.onnx", arguments, [one for one in (ends, end) if one])
    spec = InputSpec((1, 1, 4, 1), "float32", (1, 4), 1, color="GRAY", scale=(1.0, 255.0))
    tensor = TensorInfo("y", (1, len(values)), "float32")
    gradients = InputGradients(model, spec, "y")
    sample = np.zeros((1, 4, 1), np.uint8)

    (found,) = gradients.log_odds(sample, (1, 0), kind)

    read = OutputReader(tensor, kind)
    session = onnxruntime.InferenceSession(model)
    step = 1e-2
    for place in range(4):
        logs = []
        for by in (step, -step):
            x = np.zeros((1, 1, 4, 1), np.float32)
            x[0, 0, place] = by
            scores = read.read(session.run(None, {"x": x})[0])
            assert isinstance(scores, np.ndarray)
            logs.append(np.log(scores[1]) - np.log(scores[0]))
        assert found[0, place, 0] * 255 == pytest.approx((logs[0] - logs[1]) / (2 * step), abs=1e-3)


def test_a_saturated_softmax_has_gradients_all_the_same(tmp_path: Path) -> None:
    model = sums_onnx(tmp_path / "m.onnx", np.array([0, 300.0, 0], np.float32), ["Softmax"])
    spec = InputSpec((1, 1, 4, 1), "float32", (1, 4), 1, color="GRAY", scale=(1.0, 255.0))

    (found,) = InputGradients(model, spec, "y").log_odds(
        np.zeros((1, 4, 1), np.uint8), (1, 0), "probabilities"
    )

    assert np.abs(found).min() > 0


@pytest.mark.parametrize("dtype", ["int8", "uint8"])
def test_a_quantised_original_is_refused(tmp_path: Path, dtype: str) -> None:
    path = quantized_onnx(tmp_path / "m.onnx", dtype)
    model = OriginalModel(path, "onnx", {})
    shape = tuple(size or 1 for size in model.input.shape)
    spec = InputSpec(shape, model.input.dtype, shape[1:3], shape[3])  # type: ignore[arg-type]
    model.configure(spec, model.outputs[0].name)

    with pytest.raises(UsageError, match="search without"):
        model.check_probe("gradient")
    model.close()


def sums_onnx(path: Path, arguments: np.ndarray, ends: list[str]) -> Path:
    """A model whose output is `arguments` plus different sums of its four values, then `ends`."""
    weights = np.random.default_rng(0).uniform(-1, 1, (4, len(arguments))).astype(np.float32)
    names = ["summed", *(f"after {number}" for number in range(len(ends) - 1)), "y"]
    nodes = [
        helper.make_node("Flatten", ["x"], ["flat"]),
        helper.make_node("Gemm", ["flat", "w", "b"], [names[0] if ends else "y"]),
        *(
            helper.make_node(kind, [given], [made])
            for kind, given, made in zip(ends, names, names[1:], strict=False)
        ),
    ]
    constants = [
        numpy_helper.from_array(np.asarray(value, np.float32), name)
        for name, value in (("w", weights), ("b", arguments))
    ]
    given = helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 1, 4, 1])
    made = helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, len(arguments)])
    graph = helper.make_graph(nodes, "sums", [given], [made], constants)
    opset = helper.make_opsetid("", 17)
    onnx.save(helper.make_model(graph, opset_imports=[opset], ir_version=8), path)
    return path

"""Whether a file computes with floats alone."""

from pathlib import Path

import numpy as np
import onnx
import pytest
from command import DEMO
from onnx import helper, numpy_helper
from onnxruntime.quantization import QuantFormat, quantize_dynamic
from planted_causes import FLOAT, coarse, quantised

from edgeflare.models.tensors import is_float_file


def dynamic(path: Path) -> Path:
    """Write the original with weights of 8 bits, whose activations are rounded as it runs."""
    quantize_dynamic(str(FLOAT), str(path))
    return path


def half_weights(path: Path) -> Path:
    """Write the original with its weights in half precision, each brought back by a Cast."""
    model = onnx.load(str(FLOAT))
    for tensor in list(model.graph.initializer):
        values = numpy_helper.to_array(tensor)
        if values.dtype == np.float32:
            name = f"{tensor.name}_half"
            cast = helper.make_node("Cast", [name], [tensor.name], to=onnx.TensorProto.FLOAT)
            model.graph.node.insert(0, cast)
            tensor.CopyFrom(numpy_helper.from_array(values.astype(np.float16), name))
    onnx.save(model, str(path))
    return path


def half_activation(path: Path) -> Path:
    """Write the original with its scores brought to half precision and back."""
    model = onnx.load(str(FLOAT))
    scores = model.graph.output[0].name
    for node in model.graph.node:
        node.output[:] = ["exact" if one == scores else one for one in node.output]
    model.graph.node.append(
        helper.make_node("Cast", ["exact"], ["half"], to=onnx.TensorProto.FLOAT16)
    )
    model.graph.node.append(helper.make_node("Cast", ["half"], [scores], to=onnx.TensorProto.FLOAT))
    onnx.save(model, str(path))
    return path


def in_a_branch(path: Path) -> Path:
    """Write a model whose rounded weight stands in the graph of an operator, not in its own."""
    weight = numpy_helper.from_array(np.ones(1, np.float16), "w")
    real = helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, [1])
    cast = helper.make_node("Cast", ["w"], ["y"], to=onnx.TensorProto.FLOAT)
    branch = helper.make_graph([cast], "branch", [], [real], [weight])
    condition = helper.make_tensor_value_info("c", onnx.TensorProto.BOOL, [])
    node = helper.make_node("If", ["c"], ["y"], then_branch=branch, else_branch=branch)
    onnx.save(helper.make_model(helper.make_graph([node], "g", [condition], [real])), str(path))
    return path


@pytest.mark.parametrize(
    "rounded",
    [
        lambda path: coarse(path, 0),
        quantised,
        lambda path: quantised(path, form=QuantFormat.QOperator),
        dynamic,
        half_weights,
        half_activation,
        in_a_branch,
    ],
)
def test_integers_and_half_precision_are_seen(tmp_path, rounded) -> None:
    assert is_float_file(rounded(tmp_path / "model.onnx"), "onnx") is False


def test_shapes_and_indices_are_no_rounded_numbers(tmp_path: Path) -> None:
    assert is_float_file(coarse(tmp_path / "float.onnx", 0, integers=False), "onnx") is True
    assert is_float_file(DEMO / "original.tflite", "tflite") is True
    assert is_float_file(DEMO / "deployed.tflite", "tflite") is False


def test_of_what_is_not_read_nothing_is_told(tmp_path: Path) -> None:
    damaged = tmp_path / "model.onnx"
    damaged.write_bytes(b"no model")
    assert is_float_file(damaged, "onnx") is None
    assert is_float_file(damaged, "tflite") is None
    assert is_float_file(tmp_path / "missing.tflite", "tflite") is None
    assert is_float_file(DEMO / "original.onnx", "tensorrt") is None


@pytest.mark.torch
def test_programs_of_pytorch(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    for dtype, is_float in ((torch.float32, True), (torch.float16, False)):
        program = torch.export.export(
            torch.nn.Linear(3, 2).to(dtype).eval(), (torch.zeros(1, 3, dtype=dtype),)
        )
        torch.export.save(program, tmp_path / "model.pt2")
        assert is_float_file(tmp_path / "model.pt2", "torch") is is_float

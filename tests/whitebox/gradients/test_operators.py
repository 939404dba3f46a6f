"""Every operator computes what ONNX Runtime computes, and passes gradients on."""

from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

from edgeflare.errors import UsageError
from edgeflare_whitebox.gradients import DifferentiableModel

pytestmark = pytest.mark.torch

RNG = np.random.default_rng(5)


def draw(*shape: int) -> Any:
    return RNG.normal(size=shape).astype(np.float32)


def graph(
    kind: str, given: dict[str, Any], opset: int = 17, outputs: int = 1, **attributes: Any
) -> Any:
    """A model of one node: its input `x` has the first array's shape, the rest are constants."""
    names = list(given)
    node = helper.make_node(
        kind,
        ["" if given[name] is None else name for name in names],
        [f"y{n}" for n in range(outputs)],
        **attributes,
    )
    constants = [
        numpy_helper.from_array(np.asarray(given[name]), name)
        for name in names[1:]
        if given[name] is not None
    ]
    first = helper.make_tensor_value_info(names[0], TensorProto.FLOAT, given[names[0]].shape)
    outs = [helper.make_empty_tensor_value_info(f"y{n}") for n in range(outputs)]
    return helper.make_model(
        helper.make_graph([node], "one", [first], outs, constants),
        opset_imports=[helper.make_opsetid("", opset)],
        ir_version=8,
    )


def assert_agrees(model: Any, value: Any) -> None:
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    expected = session.run(None, {"x": value})
    got = DifferentiableModel(model).run({"x": value})
    for want, name in zip(expected, got, strict=True):
        assert got[name].shape == want.shape
        np.testing.assert_allclose(got[name].numpy(), want, atol=1e-5, rtol=1e-5)


IMAGE = draw(2, 3, 9, 8)
CASES = {
    "conv padded unevenly": ("Conv", {"x": IMAGE, "w": draw(4, 3, 3, 2), "b": draw(4)}, {"pads": [0, 1, 2, 0], "strides": [2, 1]}),
    "conv same upper": ("Conv", {"x": IMAGE, "w": draw(4, 3, 4, 3)}, {"auto_pad": "SAME_UPPER", "strides": [2, 2]}),
    "conv same lower": ("Conv", {"x": IMAGE, "w": draw(4, 3, 4, 3)}, {"auto_pad": "SAME_LOWER", "strides": [1, 3]}),
    "conv by depth": ("Conv", {"x": IMAGE, "w": draw(6, 1, 3, 3)}, {"group": 3, "dilations": [2, 2]}),
    "conv 1d": ("Conv", {"x": draw(2, 3, 9), "w": draw(5, 3, 3)}, {}),
    "conv transposed": ("ConvTranspose", {"x": IMAGE, "w": draw(3, 4, 3, 3)}, {"strides": [2, 2], "pads": [1, 1, 1, 1]}),
    "max pool": ("MaxPool", {"x": IMAGE}, {"kernel_shape": [3, 3], "strides": [2, 2], "ceil_mode": 1}),
    "max pool padded": ("MaxPool", {"x": IMAGE}, {"kernel_shape": [3, 2], "auto_pad": "SAME_UPPER"}),
    "average pool": ("AveragePool", {"x": IMAGE}, {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1], "strides": [2, 2]}),
    "average pool with padding": ("AveragePool", {"x": IMAGE}, {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1], "count_include_pad": 1}),
    "global average": ("GlobalAveragePool", {"x": IMAGE}, {}),
    "batch normalisation": ("BatchNormalization", {"x": IMAGE, "s": draw(3), "b": draw(3), "m": draw(3), "v": np.abs(draw(3))}, {"epsilon": 0.01}),
    "layer normalisation": ("LayerNormalization", {"x": IMAGE, "s": draw(8), "b": draw(8)}, {}),
    "instance normalisation": ("InstanceNormalization", {"x": IMAGE, "s": draw(3), "b": draw(3)}, {}),
    "gemm": ("Gemm", {"x": draw(2, 5), "w": draw(4, 5), "b": draw(4)}, {"transB": 1, "alpha": 0.5, "beta": 2.0}),
    "matmul": ("MatMul", {"x": draw(2, 5), "w": draw(5, 4)}, {}),
    "clip": ("Clip", {"x": IMAGE, "low": np.float32(-0.5), "high": None}, {}),
    "softmax": ("Softmax", {"x": IMAGE}, {"axis": 1}),
    "log softmax": ("LogSoftmax", {"x": IMAGE}, {}),
    "hard sigmoid": ("HardSigmoid", {"x": IMAGE}, {"alpha": 0.3}),
    "hard swish": ("HardSwish", {"x": IMAGE}, {}),
    "leaky": ("LeakyRelu", {"x": IMAGE}, {"alpha": 0.2}),
    "prelu": ("PRelu", {"x": IMAGE, "s": draw(3, 1, 1)}, {}),
    "mean": ("ReduceMean", {"x": IMAGE}, {"axes": [1, 3], "keepdims": 0}),
    "greatest": ("ReduceMax", {"x": IMAGE}, {"axes": [2]}),
    "sum of all": ("ReduceSum", {"x": IMAGE}, {}),
    "product": ("ReduceProd", {"x": IMAGE}, {"axes": [1, 2]}),
    "reshape": ("Reshape", {"x": IMAGE, "s": np.array([0, -1, 4])}, {}),
    "transpose": ("Transpose", {"x": IMAGE}, {"perm": [0, 2, 3, 1]}),
    "flatten": ("Flatten", {"x": IMAGE}, {"axis": -2}),
    "squeeze": ("Squeeze", {"x": draw(2, 1, 3, 1), "a": np.array([1, -1])}, {}),
    "unsqueeze": ("Unsqueeze", {"x": draw(2, 3), "a": np.array([0, -1])}, {}),
    "split": ("Split", {"x": IMAGE, "s": np.array([3, 5])}, {"axis": 3}),
    "slice backwards": ("Slice", {"x": IMAGE, "s": np.array([-1, 1]), "e": np.array([-100, 7]), "a": np.array([3, 2]), "p": np.array([-1, 2])}, {}),
    "gather": ("Gather", {"x": IMAGE, "i": np.array([[0, -1], [1, 1]])}, {"axis": 1}),
    "expand": ("Expand", {"x": draw(2, 1, 3), "s": np.array([1, 4, 1])}, {}),
    "tile": ("Tile", {"x": draw(2, 3), "s": np.array([2, 1])}, {}),
    "pad": ("Pad", {"x": IMAGE, "p": np.array([0, 0, 1, 2, 0, 0, 3, 0]), "v": np.float32(2)}, {}),
    "pad by edge": ("Pad", {"x": IMAGE, "p": np.array([0, 0, 1, 2, 0, 0, 3, 0])}, {"mode": "edge"}),
    "pad by reflection": ("Pad", {"x": IMAGE, "p": np.array([0, 0, 1, 2, 0, 0, 3, 0])}, {"mode": "reflect"}),
    "fmod": ("Mod", {"x": IMAGE, "d": np.float32(0.7)}, {"fmod": 1}),
    "resize to nearest": ("Resize", {"x": IMAGE, "r": None, "s": np.array([1, 1, 0.5, 1.7], np.float32)}, {}),
    "resize as pytorch": ("Resize", {"x": IMAGE, "r": None, "s": np.array([1, 1, 2, 2], np.float32)}, {"coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}),
    "resize linearly": ("Resize", {"x": IMAGE, "r": None, "s": None, "n": np.array([2, 3, 5, 13])}, {"mode": "linear"}),
    "resize with corners": ("Resize", {"x": IMAGE, "r": None, "s": None, "n": np.array([2, 3, 5, 13])}, {"mode": "linear", "coordinate_transformation_mode": "align_corners"}),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_it_agrees_with_onnx_runtime(case: str) -> None:
    kind, given, attributes = CASES[case]
    outputs = 2 if kind == "Split" else 1

    assert_agrees(graph(kind, given, outputs=outputs, **attributes), given["x"])


def test_old_softmax_flattens_what_follows_its_axis() -> None:
    assert_agrees(graph("Softmax", {"x": IMAGE}, opset=11), IMAGE)


@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
@pytest.mark.parametrize(("kind", "gates"), [("RNN", 1), ("GRU", 3), ("LSTM", 4)])
def test_recurrent_layers_agree_with_onnx_runtime(kind: str, gates: int, direction: str) -> None:
    steps, both = draw(6, 2, 3), 2 if direction == "bidirectional" else 1
    given = {
        "x": steps, "w": draw(both, gates * 4, 3), "r": draw(both, gates * 4, 4),
        "b": draw(both, 2 * gates * 4), "l": None, "h": draw(both, 2, 4),
    }  # fmt: skip
    outputs = 3 if kind == "LSTM" else 2
    more = {"linear_before_reset": 1} if kind == "GRU" and direction == "forward" else {}
    assert_agrees(
        graph(kind, given, outputs=outputs, hidden_size=4, direction=direction, **more), steps
    )


@pytest.mark.parametrize("axis", [None, 1])
def test_quantised_tensors_agree_with_onnx_runtime(axis: int | None) -> None:
    scale = np.float32(0.05) if axis is None else np.array([0.05, 0.02, 0.1], np.float32)
    zero = np.int8(-3) if axis is None else np.array([0, 0, 5], np.int8)
    more = {} if axis is None else {"axis": axis}
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "s", "z"], ["q"], **more),
        helper.make_node("DequantizeLinear", ["q", "s", "z"], ["y"], **more),
    ]
    constants = [
        numpy_helper.from_array(np.asarray(scale), "s"),
        numpy_helper.from_array(np.asarray(zero), "z"),
    ]
    info = helper.make_tensor_value_info("x", TensorProto.FLOAT, IMAGE.shape)
    out = helper.make_tensor_value_info("y", TensorProto.FLOAT, IMAGE.shape)
    model = helper.make_model(
        helper.make_graph(nodes, "qdq", [info], [out], constants),
        opset_imports=[helper.make_opsetid("", 17)],
        ir_version=8,
    )
    value = IMAGE * 5  # some of it saturates
    assert_agrees(model, value)

    (drawn, gradient) = DifferentiableModel(model).gradient(
        value, lambda values: values["y"].flatten(1).sum(1)
    )

    assert drawn.shape == (2,)
    steps = value / np.reshape(scale, (1, -1, 1, 1)) + np.reshape(zero, (1, -1, 1, 1))
    inside = (np.round(steps) >= -127) & (np.round(steps) <= 126)
    np.testing.assert_allclose(gradient[inside], 1, rtol=1e-6)
    assert not gradient[(steps < -129) | (steps > 128)].any()
    assert not inside.all()


def test_an_unknown_operator_is_named() -> None:
    with pytest.raises(UsageError, match="GridSample"):
        DifferentiableModel(graph("GridSample", {"x": IMAGE, "g": draw(2, 4, 4, 2)}, opset=16))


def test_a_file_that_is_no_model_is_refused(tmp_path: Any) -> None:
    broken = tmp_path / "model.onnx"
    broken.write_bytes(b"no model")

    with pytest.raises(UsageError, match="ONNX file"):
        DifferentiableModel(broken)


def test_the_gradient_is_the_slope(tmp_path: Any) -> None:
    model = tmp_path / "model.onnx"
    weight = draw(4, 3, 3, 3)
    onnx.save(graph("Conv", {"x": IMAGE[:1], "w": weight, "b": draw(4)}), model)
    loaded = DifferentiableModel(model)

    def objective(values: Any) -> Any:
        return values["y0"][:, 2].square().flatten(1).sum(1)

    value, gradient = loaded.gradient(IMAGE[:1], objective)
    step = draw(*IMAGE[:1].shape) * 1e-3
    ahead, _ = loaded.gradient(IMAGE[:1] + step, objective)
    behind, _ = loaded.gradient(IMAGE[:1] - step, objective)

    assert value.shape == (1,)
    np.testing.assert_allclose((ahead - behind) / 2, (gradient * step).sum(), rtol=1e-2)

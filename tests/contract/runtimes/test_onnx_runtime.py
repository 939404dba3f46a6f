"""What only ONNX models do."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnxruntime
import pytest
from onnx import TensorProto, helper
from small_models import ONNX_TYPES, flat_weights, save_onnx

from edgeflare_agent.errors import InferenceError, ModelError, RequestError
from edgeflare_agent.runtimes import load
from edgeflare_agent.runtimes.onnx import library_errors

ModelFile = Callable[[str, str], str]


def test_answers_what_numpy_answers(model_file: ModelFile) -> None:
    values = np.random.default_rng(0).random((1, 64), dtype=np.float32)
    [logits] = load(model_file("onnx", "flat"), "onnx", {}).run(values)
    np.testing.assert_allclose(logits, values @ flat_weights(), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("dtype", list(ONNX_TYPES))
def test_every_numeric_input_dtype_has_its_numpy_name(model_file: ModelFile, dtype: str) -> None:
    model = load(model_file("onnx", f"pixels_{dtype}"), "onnx", {})
    assert model.inputs[0].dtype == dtype
    [shares] = model.run(np.ones((1, 8, 8, 1), dtype))
    assert abs(shares.sum() - 1) < 1e-5


def test_the_files_metadata_is_read(model_file: ModelFile) -> None:
    model = load(model_file("onnx", "float"), "onnx", {})
    assert model.metadata == {"edgeflare.input": '{"scale": "1/255"}'}


def test_reports_the_providers_in_effect(model_file: ModelFile) -> None:
    model = load(
        model_file("onnx", "float"), "onnx", {"providers": ["CPUExecutionProvider"], "threads": 1}
    )
    assert model.describe()["providers"] == ["CPUExecutionProvider"]


def test_an_absent_provider_is_refused_with_the_present_ones(model_file: ModelFile) -> None:
    with pytest.raises(RequestError, match="'NoSuchProvider' here"):
        load(model_file("onnx", "float"), "onnx", {"providers": ["NoSuchProvider"]})


@pytest.mark.parametrize("providers", ["CPUExecutionProvider", [], [1], None])
def test_providers_must_be_a_list_of_names(model_file: ModelFile, providers: object) -> None:
    with pytest.raises(RequestError, match="execution providers"):
        load(model_file("onnx", "float"), "onnx", {"providers": providers})


@pytest.mark.parametrize("level", ["all", "extended", "basic", "none"])
def test_the_graph_may_be_left_as_it_is(model_file: ModelFile, level: str) -> None:
    path = model_file("onnx", "float")
    model = load(path, "onnx", {"graph_optimization": level})
    assert model.describe()["graph_optimization"] == level
    values = np.random.default_rng(0).random((1, 8, 8, 1), dtype=np.float32)
    as_usual = load(path, "onnx", {}).run(values)
    np.testing.assert_allclose(model.run(values), as_usual, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("level", ["off", 0, None, ["all"]])
def test_an_unknown_graph_optimization_is_refused(model_file: ModelFile, level: object) -> None:
    with pytest.raises(RequestError, match="extended, basic"):
        load(model_file("onnx", "float"), "onnx", {"graph_optimization": level})


def test_outputs_that_are_no_numbers_are_left_out(tmp_path: Path) -> None:
    image = helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 4])
    words = helper.make_tensor_value_info("words", TensorProto.STRING, [1, 4])
    numbers = helper.make_tensor_value_info("numbers", TensorProto.FLOAT, [1, 4])
    as_words = helper.make_node("Cast", ["x"], ["words"], to=TensorProto.STRING)
    as_numbers = helper.make_node("Neg", ["x"], ["numbers"])
    both = save_onnx(tmp_path / "both.onnx", [as_words, as_numbers], [image], [words, numbers])
    model = load(str(both), "onnx", {})
    assert [output.name for output in model.outputs] == ["numbers"]
    assert model.run(np.ones((1, 4), np.float32))[0].tolist() == [[-1, -1, -1, -1]]

    only_words = save_onnx(tmp_path / "words.onnx", [as_words], [image], [words])
    with pytest.raises(ModelError, match="of numbers"):
        load(str(only_words), "onnx", {})


def test_a_failing_inference_is_an_inference_error(tmp_path: Path) -> None:
    rows = helper.make_tensor_value_info("rows", TensorProto.INT64, [2])
    image = helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", "m"])
    path = save_onnx(
        tmp_path / "reshape.onnx",
        [helper.make_node("Reshape", ["w", "rows"], ["y"])],
        [rows],
        [image],
        {"w": flat_weights()},
    )
    model = load(str(path), "onnx", {})
    with pytest.raises(InferenceError, match="onnx failed"):
        model.run(np.array([7, 7]))
    assert model.run(np.array([4, 64]))[0].shape == (4, 64)


def test_every_error_of_the_library_is_mapped() -> None:
    state = onnxruntime.capi.onnxruntime_pybind11_state
    own = {name for name, value in vars(state).items() if isinstance(value, type)}
    mapped = {kind.__name__ for kind in library_errors()}
    assert {"Fail", "InvalidArgument", "InvalidProtobuf", "NotImplemented", "InvalidGraph"} <= own
    assert {
        "Fail", "InvalidArgument", "InvalidProtobuf", "NotImplemented", "InvalidGraph",
    } <= mapped  # fmt: skip

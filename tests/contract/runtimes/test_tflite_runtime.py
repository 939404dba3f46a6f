"""What only TFLite models do."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from command import DEMO
from small_models import running_sum_tflite

from edgeflare.errors import ModelError
from edgeflare.models.tensors.tflite_graph import TFLiteGraph
from edgeflare_agent.errors import InferenceError, NumpyClashError, RequestError
from edgeflare_agent.image_spec import InputSpec
from edgeflare_agent.preprocess import dequantize, prepare
from edgeflare_agent.runtimes import load, tflite

ModelFile = Callable[[str, str], str]


def image(seed: int) -> np.ndarray:
    return np.random.default_rng(seed).random((1, 8, 8, 1), dtype=np.float32)


@pytest.mark.parametrize(
    ("options", "delegate", "kernels"),
    [
        ({}, "XNNPACK, 4 of 4 operators", "default"),
        ({"delegate": False}, None, "default"),
        ({"kernels": "reference"}, None, "reference"),
        ({"kernels": "reference", "delegate": True}, None, "reference"),
    ],
)
def test_reports_what_is_in_effect(model_file, options, delegate, kernels) -> None:
    described = load(model_file("tflite", "float"), "tflite", options).describe()
    assert (described["delegate"], described["kernels"]) == (delegate, kernels)


@pytest.mark.parametrize(
    ("model", "words"),
    [
        ("lenet5.float", "XNNPACK, 9 of 9 operators"),
        ("lenet5.quant", "XNNPACK, 5 of 8 operators in 3 parts"),
        ("resnet20.quant", "XNNPACK, 34 of 53 operators in 10 parts"),
    ],
)
@pytest.mark.shared_data
def test_the_operators_that_the_delegate_runs_are_counted(shared_data, model, words) -> None:
    path = str(shared_data / "models" / "diffchaser" / f"{model}.tflite")
    model_on_two_threads = load(path, "tflite", {"threads": 2})
    assert load(path, "tflite", {}).describe()["delegate"] == words
    assert model_on_two_threads.describe()["delegate"] == words


def test_the_count_stays_after_an_input_of_another_size(model_file: ModelFile) -> None:
    model = load(model_file("tflite", "open_batch"), "tflite", {})
    before = model.describe()["delegate"]
    model.run(np.zeros((3, 8, 8, 1), np.float32))
    assert model.describe()["delegate"] == before


def test_all_kernels_give_nearly_the_same_answer(model_file: ModelFile) -> None:
    answers = [
        load(model_file("tflite", "float"), "tflite", options).run(image(3))[0]
        for options in ({}, {"delegate": False}, {"kernels": "reference"})
    ]
    np.testing.assert_allclose(answers[0], answers[1], atol=1e-5)
    np.testing.assert_allclose(answers[0], answers[2], atol=1e-5)


@pytest.mark.parametrize("options", [{"delegate": 1}, {"kernels": "fast"}, {"kernels": []}])
def test_bad_option_values_are_refused(model_file: ModelFile, options: dict[str, object]) -> None:
    with pytest.raises(RequestError, match="must be"):
        load(model_file("tflite", "float"), "tflite", options)


@pytest.mark.parametrize("options", [{}, {"delegate": False}, {"kernels": "reference"}])
def test_state_is_reset_before_every_inference(model_file, options) -> None:
    model = load(model_file("tflite", "lstm"), "tflite", options)
    steps = np.random.default_rng(0).normal(size=(1, 5, 4)).astype(np.float32)
    others = np.random.default_rng(1).normal(size=(1, 5, 4)).astype(np.float32)
    [first] = model.run(steps)
    model.run(others)
    [again] = model.run(steps)
    assert first.tobytes() == again.tobytes()


def test_the_stateful_model_would_remember_without_a_reset(model_file: ModelFile) -> None:
    from ai_edge_litert.interpreter import Interpreter

    interpreter = Interpreter(model_file("tflite", "lstm"))
    interpreter.allocate_tensors()
    steps = np.random.default_rng(0).normal(size=(1, 5, 4)).astype(np.float32)
    answers = []
    for _ in range(2):
        interpreter.set_tensor(interpreter.get_input_details()[0]["index"], steps)
        interpreter.invoke()
        answers.append(interpreter.get_tensor(interpreter.get_output_details()[0]["index"]))
    assert answers[0].tobytes() != answers[1].tobytes()


@pytest.mark.parametrize("dtype", ["int8", "uint8"])
def test_quantised_models_answer_nearly_as_the_float_model(model_file, dtype) -> None:
    exact = load(model_file("tflite", "float"), "tflite", {})
    rounded = load(model_file("tflite", dtype), "tflite", {})
    assert rounded.inputs[0].quantization is not None
    spec = InputSpec((1, 8, 8, 1), "float32", (8, 8), 1, scale=(1, 255))
    integer_spec = spec._replace(dtype=dtype, quantization=rounded.inputs[0].quantization)
    agreeing = 0
    for seed in range(20):
        pixels = np.random.default_rng(seed).integers(0, 256, (8, 8, 1), dtype=np.uint8)
        real = exact.run(prepare(pixels, spec))[0]
        stored = rounded.run(prepare(pixels, integer_spec))[0]
        shares = dequantize(stored, rounded.outputs[0].quantization)
        agreeing += int(real.argmax() == shares.argmax())
        assert np.abs(shares - real).max() < 0.25
    assert agreeing >= 17


def test_nan_comes_through(model_file: ModelFile) -> None:
    model = load(model_file("tflite", "nan"), "tflite", {})
    assert np.isnan(model.run(np.ones((1, 8, 8, 1), np.float32))[0]).all()
    assert np.isfinite(model.run(np.zeros((1, 8, 8, 1), np.float32))[0]).all()


def test_a_failing_inference_is_an_inference_error(model_file: ModelFile) -> None:
    # the channels are declared open, but the weights are for one channel
    model = load(model_file("tflite", "open_channels"), "tflite", {})
    with pytest.raises(InferenceError, match="tflite failed"):
        model.run(np.zeros((1, 8, 8, 3), np.float32))
    assert model.run(np.zeros((1, 8, 8, 1), np.float32))[0].shape == (1, 4)


@pytest.mark.skipif(np.__version__.startswith("1."), reason="numpy 1 clashes with nothing")
def test_tflite_runtime_is_not_imported_under_numpy_2(model_file, monkeypatch) -> None:
    monkeypatch.setattr(tflite, "is_installed", lambda module: module == "tflite_runtime")
    with pytest.raises(NumpyClashError, match="numpy 1"):
        load(model_file("tflite", "float"), "tflite", {})


def test_resource_variables_are_reset_too(tmp_path: Path) -> None:
    from ai_edge_litert.interpreter import Interpreter

    path = str(running_sum_tflite(tmp_path / "sum.tflite"))
    ones = np.ones((1, 4), np.float32)
    interpreter = Interpreter(path)
    interpreter.allocate_tensors()
    sums = []
    for _ in range(2):
        interpreter.reset_all_variables()  # which leaves resource variables as they are
        interpreter.set_tensor(interpreter.get_input_details()[0]["index"], ones)
        interpreter.invoke()
        sums.append(interpreter.get_tensor(interpreter.get_output_details()[0]["index"])[0, 0])
    assert sums == [1, 2]

    model = load(path, "tflite", {})
    assert [model.run(ones)[0][0, 0] for _ in range(3)] == [1, 1, 1]


@pytest.mark.parametrize("options", [{}, {"delegate": False}, {"kernels": "reference"}])
@pytest.mark.parametrize("name", ["demo", "float", "int8", "lstm"])
def test_all_tensors_are_one_more_output_and_the_answer_stays(model_file, name, options) -> None:
    path = DEMO / "deployed.tflite" if name == "demo" else Path(model_file("tflite", name))
    undisturbed = load(str(path), "tflite", options)
    model = load(str(path), "tflite", {**options, "tensors": True})
    graph = TFLiteGraph(path, options, None)
    assert model.outputs[:-1] == undisturbed.outputs
    assert model.outputs[-1] == (tflite.TENSORS, (graph.size,), "uint8", None)
    given = model.inputs[0]
    rng = np.random.default_rng(0)
    names = [one[0] for one in graph.layout]
    assert len(names) >= 3
    for _ in range(5):
        tensor = (rng.normal(size=given.shape) * 40).astype(given.dtype)
        answer, content = model.run(tensor)
        assert answer.tobytes() == undisturbed.run(tensor)[0].tobytes()
        sent = graph.split(content, names)
        assert sent[graph.output].tobytes() == answer.tobytes()
        for one, value in graph.read(tensor, names).items():
            assert sent[one].tobytes() == value.tobytes()


def test_what_runs_the_operators_is_the_same_with_their_tensors(model_file: ModelFile) -> None:
    path = str(DEMO / "deployed.tflite")
    described = [load(path, "tflite", {"tensors": one}).describe() for one in (False, True)]
    first, second = (one["delegate"].partition(" in ")[0] for one in described)
    assert first == second == "XNNPACK, 14 of 14 operators"


def test_tensors_of_another_size_than_announced_are_told(model_file: ModelFile) -> None:
    path = Path(model_file("tflite", "open_batch"))
    model = load(str(path), "tflite", {"tensors": True})
    [_, content] = model.run(np.zeros((1, 8, 8, 1), np.float32))
    with pytest.raises(InferenceError, match="sizes depend"):
        model.run(np.zeros((3, 8, 8, 1), np.float32))
    with pytest.raises(ModelError, match=r"open_batch.tflite"):
        TFLiteGraph(path, {}, None).split(content[:-1], [])


def test_tensors_that_no_answer_can_hold_are_refused(model_file, monkeypatch) -> None:
    monkeypatch.setattr(tflite, "DEFAULT_MAX_BODY", 100)
    with pytest.raises(RequestError, match="has 100"):
        load(model_file("tflite", "float"), "tflite", {"tensors": True})

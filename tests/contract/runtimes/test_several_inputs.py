"""Models with two inputs on every runtime that takes them, and one that doesn't."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import stand_in_tensorrt
from onnx import TensorProto, helper
from small_models import TFLITE, VERSIONS, save_onnx

from edgeflare_agent.errors import InferenceError, ModelError, RequestError
from edgeflare_agent.runtimes import Runtime, load

RUNTIMES = ["onnx", "tflite", *(f"tensorrt {version}" for version in VERSIONS)]


def difference_onnx(path: Path, batch: Any = 1) -> Path:
    """y = a - b, of [batch, 4]; the inputs are not interchangeable."""
    described = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, [batch, 4])
        for name in ("a", "b", "y")
    ]
    return save_onnx(
        path, [helper.make_node("Sub", ["a", "b"], ["y"])], described[:2], described[2:]
    )


@pytest.fixture(params=RUNTIMES)
def two(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Runtime:
    name, _, version = request.param.partition(" ")
    if version:
        stand_in_tensorrt.install(version, monkeypatch)
    file = TFLITE / "two_inputs.tflite"
    if name != "tflite":
        file = difference_onnx(tmp_path / "two.onnx")
    return load(str(file), name, {}, str(tmp_path))


def tensors(model: Runtime, seed: int = 0) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    return [rng.random([n or 1 for n in one.shape], np.float32) for one in model.inputs]


def test_each_input_is_given_its_own_tensor(two: Runtime) -> None:
    given, others = tensors(two), tensors(two, 1)
    [answer] = two.run_several(given)
    [other] = two.run_several([given[0], others[1]])
    [swapped] = two.run_several(given[::-1])
    [again] = two.run_several(given)
    assert answer.tobytes() == again.tobytes()
    assert answer.tobytes() != other.tobytes()
    assert answer.tobytes() != swapped.tobytes()
    if two.name != "tflite":
        np.testing.assert_array_equal(answer, given[0] - given[1])


def test_tensors_that_do_not_fit_are_refused(two: Runtime) -> None:
    given = tensors(two)
    with pytest.raises(RequestError, match="2 inputs"):
        two.run_several(given[:1])
    with pytest.raises(RequestError, match=f"input {two.inputs[1].name}"):
        two.run_several([given[0], given[1].astype(np.float64)])
    with pytest.raises(RequestError, match=f"input {two.inputs[0].name}"):
        two.run_several([given[0][..., :1].repeat(9, axis=-1), given[1]])
    assert two.run_several(given)[0].size == 4


@pytest.mark.parametrize("version", VERSIONS)
def test_open_batches_of_both_inputs_follow_the_tensors(version, monkeypatch, tmp_path) -> None:
    stand_in_tensorrt.install(version, monkeypatch)
    file = str(difference_onnx(tmp_path / "two.onnx", "batch"))
    for name in ("tensorrt", "onnx"):
        model = load(file, name, {}, str(tmp_path))
        for batch in (1, 3, 1):
            a, b = np.ones((batch, 4), np.float32), np.full((batch, 4), 3, np.float32)
            np.testing.assert_array_equal(model.run_several([a, b])[0], a - b)
    engine = load(file, "tensorrt", {}, str(tmp_path))
    with pytest.raises(InferenceError, match="shape 99"):
        engine.run_several([np.ones((99, 4), np.float32)] * 2)


def test_a_model_of_one_input_takes_a_list_of_one() -> None:
    model = load(str(TFLITE / "float.tflite"), "tflite", {})
    [given] = tensors(model)
    assert model.run_several([given])[0].tobytes() == model.run(given)[0].tobytes()


def test_a_runtime_of_one_input_refuses_more() -> None:
    class Mine(Runtime):
        name = "mine"

        def _prepare(self) -> None: ...

        def _load(self) -> None:
            self.inputs = model.inputs

    model = load(str(TFLITE / "two_inputs.tflite"), "tflite", {})
    mine = Mine(model.path, {}, "")
    with pytest.raises(ModelError, match="EdgeFlare drives"):
        mine.run_several(tensors(model))

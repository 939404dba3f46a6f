"""What every runtime must do; a new runtime is one row of RUNTIMES.

"mine" is a user's: it runs in the agent's zipapp, behind a real sshd.
"""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import stand_in_tensorrt

from edgeflare_agent.errors import ModelError, RequestError
from edgeflare_agent.preprocess import dequantize
from edgeflare_agent.runtimes import Runtime
from edgeflare_agent.runtimes import load as load_here

RUNTIMES = ["tflite", "onnx", "tensorrt", pytest.param("mine", marks=pytest.mark.sshd)]
REFUSED = {"tensorrt": ("int8", "uint8")}  # whose zero points are not 0
MODELS = [
    # name, input shape, dtype, whether quantised, whether outputs are probabilities
    ("float", (1, 8, 8, 1), "float32", True),
    ("flat", (1, 64), "float32", False),
    ("open_batch", (None, 8, 8, 1), "float32", True),
    ("int8", (1, 8, 8, 1), "int8", True),
    ("uint8", (1, 8, 8, 1), "uint8", True),
]
ModelFile = Callable[[str, str], str]
LOADERS: dict[str, Callable[..., Any]] = {}
"""What loads a model with a runtime that is not this process's."""


def load(path: str, runtime: str, options: dict[str, Any]) -> Runtime:
    model: Runtime = LOADERS.get(runtime, load_here)(path, runtime, options)
    return model


def tensor(shape: tuple[int | None, ...], dtype: str, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    closed = tuple(n or 1 for n in shape)
    if np.dtype(dtype).kind == "f":
        return rng.random(closed).astype(dtype)
    limits = np.iinfo(dtype)
    return rng.integers(limits.min, limits.max, closed, dtype=dtype, endpoint=True)


@pytest.fixture(params=RUNTIMES)
def runtime_name(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> str:
    if request.param == "tensorrt":  # needs a GPU; see test_tensorrt_runtime.py
        monkeypatch.setenv("HOME", str(tmp_path))
        stand_in_tensorrt.install("10.3.0", monkeypatch)
    if request.param == "mine":
        LOADERS["mine"] = request.getfixturevalue("remote_agent").load
    return str(request.param)


@pytest.fixture
def image_model(runtime_name: str, model_file: ModelFile) -> Runtime:
    return load(model_file(runtime_name, "float"), runtime_name, {})


@pytest.mark.parametrize(("name", "shape", "dtype", "shares"), MODELS)
def test_runs_models_of_every_kind(runtime_name, model_file, name, shape, dtype, shares) -> None:
    if name in REFUSED.get(runtime_name, ()):
        with pytest.raises(ModelError, match="quantiz"):
            load(model_file(runtime_name, name), runtime_name, {})
        return
    model = load(model_file(runtime_name, name), runtime_name, {})
    [given] = model.inputs
    [returned] = model.outputs
    assert (given.shape, given.dtype) == (shape, dtype)
    assert returned.shape == (shape[0], 4)
    assert returned.dtype == dtype

    [first] = model.run(tensor(shape, dtype))
    [other] = model.run(tensor(shape, dtype, seed=1))
    [again] = model.run(tensor(shape, dtype))

    assert first.shape == (1, 4)
    assert first.dtype == np.dtype(dtype)
    assert first.tobytes() == again.tobytes()
    assert first.tobytes() != other.tobytes()
    quantization = None if dtype == "float32" else (1 / 256, int(np.iinfo(dtype).min))
    total = dequantize(first, quantization).sum()
    assert (abs(total - 1) < 0.02) == shares


def test_an_open_batch_axis_takes_one_sample_or_more(runtime_name, model_file) -> None:
    open_batch = load(model_file(runtime_name, "open_batch"), runtime_name, {})
    fixed = load(model_file(runtime_name, "float"), runtime_name, {})
    image = tensor((1, 8, 8, 1), "float32")
    [alone] = open_batch.run(image)
    [three] = open_batch.run(np.repeat(image, 3, axis=0))
    assert alone.tobytes() == fixed.run(image)[0].tobytes()
    assert open_batch.run(image)[0].tobytes() == alone.tobytes()
    np.testing.assert_allclose(three, np.repeat(alone, 3, axis=0), atol=1e-5)


@pytest.mark.parametrize("shape", [(1, 8, 8), (1, 8, 8, 3), (2, 8, 8, 1), (1, 64)])
def test_a_tensor_of_another_shape_is_refused(image_model: Runtime, shape: tuple[int, ...]) -> None:
    with pytest.raises(RequestError, match=r"has shape 1 x 8 x 8 x 1, not " + str(shape[0])):
        image_model.run(np.zeros(shape, np.float32))


def test_a_tensor_of_another_dtype_is_refused(image_model: Runtime) -> None:
    with pytest.raises(RequestError, match="float32"):
        image_model.run(np.zeros((1, 8, 8, 1)))


def test_several_inputs_are_listed_and_not_run(runtime_name: str, model_file: ModelFile) -> None:
    model = load(model_file(runtime_name, "two_inputs"), runtime_name, {})
    assert len(model.inputs) == 2
    names = ", ".join(info.name for info in model.inputs)
    with pytest.raises(ModelError, match=r"has 2 inputs \(" + names):
        model.run(np.zeros((1, 8, 8, 1), np.float32))


def test_describes_itself_as_json(image_model: Runtime, runtime_name: str) -> None:
    described = json.loads(json.dumps(image_model.describe()))
    assert described["name"] == runtime_name
    assert described["threads"] == 1
    assert described["package"] in ("ai-edge-litert", "tflite-runtime", "onnxruntime", "tensorrt")
    assert described["version"][0].isdigit()


def test_a_closed_model_runs_no_more(image_model: Runtime) -> None:
    image_model.close()
    image_model.close()
    with pytest.raises(RequestError, match="was closed"):
        image_model.run(np.zeros((1, 8, 8, 1), np.float32))


def test_results_outlive_the_model(image_model: Runtime) -> None:
    [kept] = image_model.run(tensor((1, 8, 8, 1), "float32"))
    before = kept.tobytes()
    image_model.run(tensor((1, 8, 8, 1), "float32", seed=1))
    image_model.close()
    assert kept.tobytes() == before


@pytest.mark.parametrize(
    "content",
    [b"", b"I am no model\n" * 100, bytes(range(256)) * 20, b"\x00" * 4096],
    ids=["empty", "text", "binary", "zeros"],
)
def test_a_file_that_is_no_model_is_refused_by_name(runtime_name, tmp_path, content) -> None:
    path = tmp_path / f"wrong.{runtime_name}"
    path.write_bytes(content)
    with pytest.raises(ModelError, match=r"wrong\." + runtime_name):
        load(str(path), runtime_name, {})


@pytest.mark.parametrize("share", [0.02, 0.3, 0.6, 0.95])
def test_a_truncated_model_is_refused_by_name(runtime_name, model_file, tmp_path, share) -> None:
    whole = Path(model_file(runtime_name, "float")).read_bytes()
    path = tmp_path / "cut.model"
    path.write_bytes(whole[: int(len(whole) * share)])
    with pytest.raises(ModelError, match=r"cut\.model"):
        load(str(path), runtime_name, {})


def test_a_missing_file_or_a_folder_is_refused_by_name(runtime_name: str, tmp_path: Path) -> None:
    for path in (tmp_path / "absent", tmp_path):
        with pytest.raises(ModelError, match=f"{path}"):
            load(str(path), runtime_name, {})


def test_an_unknown_option_is_refused_with_the_known_ones(runtime_name, model_file) -> None:
    with pytest.raises(RequestError, match="option 'speed'"):
        load(model_file(runtime_name, "float"), runtime_name, {"speed": 9})


@pytest.mark.parametrize("threads", [0, -1, 1.5, "2", True, None, 100_000, 10**20 - 1])
def test_threads_must_be_a_whole_number(runtime_name, model_file, threads) -> None:
    with pytest.raises(RequestError, match="from 1"):
        load(model_file(runtime_name, "float"), runtime_name, {"threads": threads})


def test_two_threads_run_and_are_recorded(runtime_name: str, model_file: ModelFile) -> None:
    model = load(model_file(runtime_name, "float"), runtime_name, {"threads": 2})
    assert model.describe()["threads"] == 2
    assert model.run(tensor((1, 8, 8, 1), "float32"))[0].shape == (1, 4)


def test_an_unknown_runtime_is_refused_with_the_known_ones(tmp_path: Path) -> None:
    with pytest.raises(RequestError, match="'caffe'"):
        load(str(tmp_path), "caffe", {})

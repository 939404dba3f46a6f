"""TFLite's delegates: what is given to them, what they run, and what happens to the rest.

The delegate is a real one, built of `delegate.cc`; LiteRT itself says which operators it replaced, and the
delegate writes down how many it was given.
"""

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from command import DEMO
from shown_numbers import numbers
from small_models import edge_tpu_tflite

from edgeflare_agent.errors import ModelError, RequestError, RuntimeMissingError
from edgeflare_agent.runtimes import load, tflite_delegates

ModelFile = Callable[[str, str], str]
SOURCE = Path(__file__).resolve().parents[2] / "helpers" / "delegate.cc"
POOL, RESHAPE, SOFTMAX, DENSE = 17, 22, 25, 9
IMAGE = np.random.default_rng(0).random((1, 8, 8, 1), dtype=np.float32)


@pytest.fixture(scope="session")
def library(tmp_path_factory: pytest.TempPathFactory) -> str:
    if shutil.which("g++") is None:
        pytest.skip("needs a C++ compiler (g++)")
    built = tmp_path_factory.mktemp("delegate") / "libtest_delegate.so"
    compiler = ["g++", "-std=c++17", "-Wall", "-Werror", "-O1", "-shared", "-fPIC"]
    subprocess.run([*compiler, str(SOURCE), "-o", str(built)], check=True)
    return str(built)


@pytest.mark.parametrize(
    ("model", "taken", "words", "parts", "on_cpu"),
    [
        ("float", [SOFTMAX], "1 of 4 operators", [1], {"CONV_2D": 2, "FULLY_CONNECTED": 1}),
        ("float", [DENSE, SOFTMAX], "2 of 4 operators", [2], {"CONV_2D": 2}),
        ("float", [], "no operator", [], {"CONV_2D": 2, "FULLY_CONNECTED": 1, "SOFTMAX": 1}),
        (
            "demo",
            [POOL, RESHAPE],
            "3 of 14 operators in 2 parts",
            [1, 2],
            {"CONV_2D": 2, "DEQUANTIZE": 1, "FULLY_CONNECTED": 3, "SOFTMAX": 1, "TANH": 4},
        ),
    ],
)
def test_what_the_delegate_leaves_is_an_error_unless_it_may(
    library: str,
    model_file: ModelFile,
    tmp_path: Path,
    model: str,
    taken: list[int],
    words: str,
    parts: list[int],
    on_cpu: dict[str, int],
) -> None:
    path = str(DEMO / "deployed.tflite") if model == "demo" else model_file("tflite", model)
    log = tmp_path / "log"
    log.touch()
    given = {"operators": " ".join(map(str, taken)), "log": str(log)}
    options = {"delegate": library, "delegate_options": given}
    names = ", ".join(name if n == 1 else f"{name} x {n}" for name, n in sorted(on_cpu.items()))
    left = sum(on_cpu.values())
    with pytest.raises(RuntimeMissingError, match=rf"{left} .*{names}"):
        load(path, "tflite", options)
    log.write_text("")
    delegated = load(path, "tflite", {**options, "allow_fallback": True})
    described = delegated.describe()
    assert described["delegate"] == f"libtest_delegate.so, {words}"
    assert described["on_cpu"] == on_cpu
    assert [int(line) for line in log.read_text().split()] == parts
    plain = load(path, "tflite", {"delegate": False})
    shape = [n or 1 for n in plain.inputs[0].shape]
    tensor = np.random.default_rng(0).random(shape).astype(plain.inputs[0].dtype)
    assert delegated.run(tensor)[0].tobytes() == plain.run(tensor)[0].tobytes()


def test_a_delegate_that_runs_all_needs_no_permission(library: str, tmp_path: Path) -> None:
    path = str(edge_tpu_tflite(tmp_path / "compiled.tflite", operator=None))
    options = {"delegate": library, "delegate_options": {"operators": f"{RESHAPE} {SOFTMAX}"}}
    described = load(path, "tflite", options).describe()
    assert numbers(described["delegate"]) == "1 1"
    assert "on_cpu" not in described


def test_a_model_for_the_edge_tpu_needs_its_delegate(library: str, tmp_path: Path) -> None:
    path = str(edge_tpu_tflite(tmp_path / "compiled.tflite"))
    for options in ({}, {"delegate": False}, {"delegate": "gpu"}):
        with pytest.raises(ModelError, match=r'"libedgetpu.so.1"'):
            load(path, "tflite", options)
    with pytest.raises(ModelError, match="edgetpu-custom-op"):  # another delegate: TFLite's own
        load(path, "tflite", {"delegate": library, "allow_fallback": True})


@pytest.mark.parametrize(
    ("options", "message"),
    [({"delegate": "libno_such.so.1"}, "install"), ({"delegate": "libm.so.6"}, "TFLite")],
)
def test_a_library_that_is_no_delegate_is_told(model_file, options, message) -> None:
    with pytest.raises(RuntimeMissingError, match=message):
        load(model_file("tflite", "float"), "tflite", options)


def test_the_delegates_own_reason_is_told(library: str, model_file: ModelFile) -> None:
    options = {"delegate": library, "delegate_options": {"refuse": "no Edge TPU found"}}
    with pytest.raises(RuntimeMissingError, match="Edge TPU"):
        load(model_file("tflite", "float"), "tflite", options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"delegate": ""}, "true, false"),
        ({"delegate_options": {"a": 1}}, "`delegate`"),
        ({"delegate": "libm.so.6", "delegate_options": {"a": [1]}}, "object"),
        ({"delegate": "libm.so.6", "kernels": "reference"}, "excludes every"),
        ({"delegate": "libm.so.6", "tensors": True}, "'libm.so.6' runs"),
        ({"delegate": "gpu", "tensors": True}, "'gpu' runs"),
        ({"delegate": "gpu", "delegate_options": {"enforce_f32": True}}, "option 'enforce_f32'"),
        ({"delegate": "npu", "delegate_options": {"intel_openvino.graph_backend": "TPU"}}, "CPU, GPU"),
    ],
)  # fmt: skip
def test_options_that_mean_nothing_are_refused(model_file, options, message) -> None:
    with pytest.raises(RequestError, match=message):
        load(model_file("tflite", "float"), "tflite", options)


@pytest.mark.parametrize("accelerator", ["gpu", "npu"])
def test_an_accelerator_that_is_not_there_is_an_error(model_file, accelerator) -> None:
    with pytest.raises(RuntimeMissingError, match=f"{accelerator.upper()}"):
        load(model_file("tflite", "float"), "tflite", {"delegate": accelerator})


def test_the_cpu_beside_an_accelerator_is_told(model_file: ModelFile) -> None:
    options = {"delegate": "npu", "allow_fallback": True}
    model = load(model_file("tflite", "float"), "tflite", options)
    assert "CPU, LiteRT" in model.describe()["delegate"]
    plain = load(model_file("tflite", "float"), "tflite", {})
    assert model.run(IMAGE)[0].tobytes() == plain.run(IMAGE)[0].tobytes()


@pytest.mark.parametrize("name", ["float", "int8", "uint8", "open_batch"])
def test_a_compiled_model_answers_as_the_interpreter(monkeypatch, model_file, name) -> None:
    """On the CPU, the one accelerator that every machine has."""
    monkeypatch.setitem(tflite_delegates.ACCELERATORS, "gpu", "CPU")
    options = {"delegate": "gpu", "allow_fallback": "int8" in name}  # XNNPACK takes a part of int8
    model = load(model_file("tflite", name), "tflite", options)
    plain = load(model_file("tflite", name), "tflite", {})
    if not options["allow_fallback"]:
        assert "CPU, the whole" in model.describe()["delegate"]
    rng = np.random.default_rng(1)
    shape = [n or 1 for n in model.inputs[0].shape]
    for count in (1, 3, 1) if name == "open_batch" else (1, 1):
        values = rng.normal(size=(count, *shape[1:])) * (1 if name == "float" else 40)
        tensor = values.astype(model.inputs[0].dtype)
        for ours, theirs in zip(model.run(tensor), plain.run(tensor), strict=True):
            assert ours.shape == theirs.shape
            assert ours.tobytes() == theirs.tobytes()


def test_a_compiled_model_gives_each_input_its_own_tensor(monkeypatch, model_file) -> None:
    monkeypatch.setitem(tflite_delegates.ACCELERATORS, "gpu", "CPU")
    file = model_file("tflite", "two_inputs")
    model = load(file, "tflite", {"delegate": "gpu", "allow_fallback": True})
    plain = load(file, "tflite", {})
    rng = np.random.default_rng(1)
    first, second = (rng.random(one.shape, np.float32) for one in model.inputs)
    for given in ([first, second], [second, first]):
        assert model.run_several(given)[0].tobytes() == plain.run_several(given)[0].tobytes()

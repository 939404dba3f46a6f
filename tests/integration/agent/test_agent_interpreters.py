"""The agent on interpreters other than this one: too old, bare, and as a device has them."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from agent_process import AgentProcess, bare_environment
from onnx import TensorProto, helper
from shown_numbers import numbers
from small_models import TFLITE, dense_onnx, save_onnx

from edgeflare.devices.provisioning.upload import agent_bundle
from edgeflare_agent.image_spec import InputSpec
from edgeflare_agent.preprocess import prepare
from edgeflare_agent.runtimes import load
from edgeflare_agent.wire import Kind

PIXELS = InputSpec((1, 8, 8, 1), "float32", (8, 8), 1, scale=(1, 255))


def interpreter(version: str) -> str:
    """A working interpreter of this version, on the PATH or among pyenv's; skip where there is none."""
    candidates = [shutil.which(f"python{version}")]
    root = os.environ.get("PYENV_ROOT")
    if root is None and shutil.which("pyenv"):
        asked = subprocess.run(["pyenv", "root"], capture_output=True, text=True)
        root = asked.stdout.strip()
    if root:
        candidates += map(str, Path(root, "versions").glob(f"{version}.*/bin/python"))
    show = "import sys; print('%d.%d' % sys.version_info[:2])"
    for path in filter(None, candidates):
        done = subprocess.run([path, "-c", show], capture_output=True, text=True)
        if done.stdout.strip() == version:
            return path
    pytest.skip(f"no Python {version} on this machine")


@pytest.mark.parametrize("version", ["2.7", "3.6", "3.7"])
def test_an_interpreter_that_is_too_old_says_so(tmp_path: Path, version: str) -> None:
    python = interpreter(version)
    done = subprocess.run(
        [python, str(agent_bundle(tmp_path))],
        capture_output=True,
        text=True,
        env=bare_environment(),
    )
    assert (done.returncode, done.stdout) == (64, "")
    [sentence] = done.stderr.splitlines()
    assert "Python 3.8" in sentence
    assert f" is {version}." in sentence
    assert '"python"' in sentence


def virtual_environment(python: str, folder: Path, *packages: str) -> str:
    """Make an environment with only these packages; return its interpreter."""
    without_pip = [] if packages else ["--without-pip"]
    subprocess.run([python, "-m", "venv", *without_pip, str(folder)], check=True)
    made = str(folder / "bin" / "python")
    if packages:
        install = [made, "-m", "pip", "install", "-q", "--disable-pip-version-check", *packages]
        done = subprocess.run(install, capture_output=True, text=True, env=bare_environment())
        assert done.returncode == 0, done.stderr
    return made


def test_an_interpreter_without_numpy_says_so(tmp_path: Path) -> None:
    python = virtual_environment(sys.executable, tmp_path / "bare")
    done = subprocess.run(
        [python, str(agent_bundle(tmp_path))],
        capture_output=True,
        text=True,
        env=bare_environment(),
    )
    assert (done.returncode, done.stdout) == (65, "")
    assert f"missing: run '{python}" in done.stderr


def answers(agent: AgentProcess, name: str) -> dict[str, object]:
    """Load a TFLite model and check eight answers; return what is in effect."""
    loaded = agent.load(TFLITE / name, "tflite")
    assert loaded.kind is Kind.LOADED, loaded.header
    agent.configure(PIXELS)
    rng = np.random.default_rng(0)
    samples = [rng.integers(0, 256, (8, 8, 1), dtype=np.uint8) for _ in range(8)]
    result = agent.infer(samples)
    assert result.kind is Kind.RESULT, result.header
    here = load(str(TFLITE / name), "tflite", {})
    for sample, raw in zip(samples, result.arrays, strict=True):
        expected = here.run(prepare(sample, PIXELS))[0]
        np.testing.assert_allclose(raw, expected, atol=1e-5)
    return loaded.header["runtime"]


@pytest.mark.slow
def test_numpy_and_the_runtime_are_all_it_needs(tmp_path: Path) -> None:
    python = virtual_environment(sys.executable, tmp_path / "venv", "numpy", "ai-edge-litert")
    with AgentProcess(tmp_path, python=python, environment=bare_environment()) as agent:
        agent.start()
        assert set(agent.hello.header["runtimes"]) == {"ai-edge-litert"}
        in_effect = answers(agent, "float.tflite")
        assert in_effect["package"] == "ai-edge-litert"
        assert numbers(in_effect["delegate"]) == "4 4"
        refused = agent.load(dense_onnx(tmp_path / "m.onnx", [1, 8, 8, 1]), "onnx")
        assert refused.header["code"] == "no-runtime"
        assert f"run '{python} -m" in refused.header["message"]


@pytest.mark.slow
def test_an_older_python_with_tflite_runtime_serves_too(tmp_path: Path) -> None:
    try:
        old = interpreter("3.8")
    except pytest.skip.Exception:
        old = interpreter("3.9")
    python = virtual_environment(old, tmp_path / "venv", "tflite-runtime", "numpy<2")
    with AgentProcess(tmp_path, python=python, environment=bare_environment()) as agent:
        agent.start()
        assert set(agent.hello.header["runtimes"]) == {"tflite-runtime"}
        in_effect = answers(agent, "float.tflite")
        assert in_effect["package"] == "tflite-runtime"
        assert numbers(in_effect["delegate"]) == "4 4"
        _check_damaged_files(agent, tmp_path)
        _check_state(agent)


@pytest.mark.slow
def test_litert_runs_a_model_on_an_accelerator_of_its_own(tmp_path: Path) -> None:
    """OpenVINO, in the version that LiteRT was built for, with this CPU for an NPU."""
    packages = ("ai-edge-litert==2.3.0", "openvino==2026.3.1", "numpy")
    python = virtual_environment(sys.executable, tmp_path / "venv", *packages)
    options = {"delegate": "npu", "delegate_options": {"intel_openvino.graph_backend": "cpu"}}
    with AgentProcess(tmp_path, python=python, environment=bare_environment()) as agent:
        agent.start()
        loaded = agent.load(TFLITE / "float.tflite", "tflite", **options)
        assert loaded.kind is Kind.LOADED, loaded.header
        assert "NPU, the whole" in loaded.header["runtime"]["delegate"]
        agent.configure(PIXELS)
        sample = np.arange(64, dtype=np.uint8).reshape(8, 8, 1)
        [answer] = agent.infer([sample]).arrays
        [here] = load(str(TFLITE / "float.tflite"), "tflite", {}).run(
            sample[None].astype(np.float32) / np.float32(255)
        )
        np.testing.assert_allclose(answer, here, atol=1e-5)


_COUNTS = """
import json, sys, onnxruntime
from edgeflare_agent.runtimes import load
options = {"providers": ["OpenVINOExecutionProvider"], "allow_fallback": True}
told = load(sys.argv[1], "onnx", options).describe()["nodes"]
del onnxruntime.InferenceSession.__mro__[1].get_provider_graph_assignment_info
profiled = load(sys.argv[1], "onnx", options).describe()["nodes"]
try:
    load(sys.argv[1], "onnx", {**options, "allow_fallback": False})
except Exception as error:
    refused = str(error)
print(json.dumps([told, profiled, refused]))
"""


@pytest.mark.slow
def test_onnxruntime_tells_which_nodes_run_on_openvino(tmp_path: Path) -> None:
    """A determinant, which OpenVINO can't compute, between two nodes that it can."""
    nodes = [
        helper.make_node("Relu", ["x"], ["a"], name="first"),
        helper.make_node("Det", ["a"], ["b"], name="second"),
        helper.make_node("Sigmoid", ["b"], ["y"], name="third"),
    ]
    model = save_onnx(
        tmp_path / "m.onnx",
        nodes,
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 4, 4])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1])],
    )
    packages = ("onnxruntime-openvino", "numpy")
    python = virtual_environment(sys.executable, tmp_path / "venv", *packages)
    environment = {**bare_environment(), "PYTHONPATH": str(agent_bundle(tmp_path))}
    done = subprocess.run(
        [python, "-c", _COUNTS, str(model)], capture_output=True, text=True, env=environment
    )
    assert done.returncode == 0, done.stderr
    told, profiled, refused = json.loads(done.stdout)
    assert told == profiled
    assert told["OpenVINOExecutionProvider"] + told["CPUExecutionProvider"] == 3
    assert f"run {told['CPUExecutionProvider']}" in refused
    assert "Det" in refused


def _check_damaged_files(agent: AgentProcess, folder: Path) -> None:
    whole = (TFLITE / "float.tflite").read_bytes()
    for number, content in enumerate((whole[:100], whole[:1500], whole[:-40], b"text", b"")):
        path = folder / f"damaged{number}.tflite"
        path.write_bytes(content)
        assert agent.load(path, "tflite").header["code"] == "bad-model"


def _check_state(agent: AgentProcess) -> None:
    spec = InputSpec((1, 5, 4), "float32", (5, 4), 1, scale=(1, 255))
    assert agent.load(TFLITE / "lstm.tflite", "tflite").kind is Kind.LOADED
    agent.configure(spec)
    steps = np.arange(20, dtype=np.uint8).reshape(5, 4, 1)
    first, again = agent.infer([steps, steps]).arrays
    assert first.tobytes() == again.tobytes()

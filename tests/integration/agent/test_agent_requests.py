"""What the agent answers to requests, good and bad."""

import hashlib
import platform
from pathlib import Path

import numpy as np
import pytest
from agent_process import AgentProcess, bare_environment
from onnx import TensorProto, helper
from small_models import TFLITE, dense_onnx, save_onnx

from edgeflare_agent.image_spec import InputSpec, TensorInfo
from edgeflare_agent.preprocess import prepare
from edgeflare_agent.runtimes import load
from edgeflare_agent.wire import VERSION, Frame, Kind

PIXELS = InputSpec((1, 8, 8, 1), "float32", (8, 8), 1, scale=(1, 255))


def images(count: int) -> list[np.ndarray]:
    rng = np.random.default_rng(count)
    return [rng.integers(0, 256, (8, 8, 1), dtype=np.uint8) for _ in range(count)]


def refused(answer: Frame, code: str) -> str:
    assert answer.kind is Kind.ERROR, answer
    assert answer.header["code"] == code
    return str(answer.header["message"])


def test_the_handshake_reports_device_and_runtimes(agent: AgentProcess) -> None:
    header = agent.hello.header
    assert header["protocol"] == VERSION
    assert header["python"] == platform.python_version()
    assert header["numpy"] == np.__version__
    assert header["pid"] == agent.process.pid
    assert header["device"]["arch"] == platform.machine()
    assert {"ai-edge-litert", "onnxruntime"} <= set(header["runtimes"])


@pytest.mark.parametrize("runtime", ["tflite", "onnx"])
def test_answers_bit_for_bit_what_the_same_runtime_answers_here(agent, tmp_path, runtime) -> None:
    path = TFLITE / "float.tflite"
    if runtime == "onnx":
        path = dense_onnx(tmp_path / "float.onnx", [1, 8, 8, 1])
    here = load(str(path), runtime, {})
    loaded = agent.load(path, runtime)
    assert loaded.kind is Kind.LOADED
    assert [TensorInfo.from_json(data) for data in loaded.header["inputs"]] == here.inputs
    assert [TensorInfo.from_json(data) for data in loaded.header["outputs"]] == here.outputs
    assert loaded.header["runtime"] == here.describe()
    assert loaded.header["metadata"] == here.metadata

    configured = agent.configure(PIXELS)
    assert configured.kind is Kind.CONFIGURED

    samples = images(5)
    result = agent.infer(samples)
    assert result.kind is Kind.RESULT
    assert len(result.header["seconds"]) == 5
    assert all(seconds > 0 for seconds in result.header["seconds"])
    for sample, raw in zip(samples, result.arrays, strict=True):
        assert raw.tobytes() == here.run(prepare(sample, PIXELS))[0].tobytes()


def test_an_answer_does_not_depend_on_its_neighbours(agent: AgentProcess) -> None:
    agent.load(TFLITE / "int8.tflite", "tflite")
    quantization = (0.003921555820852518, -128)
    spec = PIXELS._replace(dtype="int8", quantization=quantization)
    agent.configure(spec)
    samples = images(6)
    together = agent.infer(samples).arrays
    alone = [agent.infer([sample]).arrays[0] for sample in samples]
    assert [raw.tobytes() for raw in together] == [raw.tobytes() for raw in alone]
    assert together[0].dtype == np.int8


def test_replies_come_in_the_order_of_requests(agent: AgentProcess) -> None:
    agent.load(TFLITE / "float.tflite", "tflite")
    agent.configure(PIXELS)
    for number in range(50):
        agent.send(Kind.INFER, {"id": number}, images(1))
    assert [agent.receive().header["id"] for _ in range(50)] == list(range(50))


def test_only_content_names_are_model_names(agent: AgentProcess) -> None:
    for name in (
        "../../etc/passwd",
        "../agents/" + "a" * 64 + ".pyz",
        "/etc/passwd",
        "a" * 64,
        "A" * 64 + ".tflite",
        "a" * 64 + ".tflite\n",
        "a" * 64 + ".tf/../x",
        "",
        None,
    ):
        answer = agent.request(Kind.LOAD, {"model": name, "runtime": "tflite"})
        assert "model name" in refused(answer, "bad-request"), name


def test_a_model_that_was_changed_is_refused(agent: AgentProcess) -> None:
    name = agent.put(TFLITE / "float.tflite")
    (agent.models / name).write_bytes((TFLITE / "flat.tflite").read_bytes())
    answer = agent.request(Kind.LOAD, {"model": name, "runtime": "tflite"})
    assert "name says" in refused(answer, "bad-model")


def test_a_model_that_is_absent_is_refused_by_path(agent: AgentProcess) -> None:
    name = hashlib.sha256(b"").hexdigest() + ".onnx"
    answer = agent.request(Kind.LOAD, {"model": name, "runtime": "onnx"})
    assert f"file at {agent.models / name}" in refused(answer, "bad-model")


def test_requests_out_of_order_say_what_comes_first(agent: AgentProcess) -> None:
    infer = agent.infer(images(1))
    assert "send LOAD first" in refused(infer, "bad-request")
    agent.load(TFLITE / "float.tflite", "tflite")
    infer = agent.infer(images(1))
    assert "send CONFIGURE first" in refused(infer, "bad-request")


def test_a_new_model_needs_a_new_configuration(agent: AgentProcess) -> None:
    agent.load(TFLITE / "float.tflite", "tflite")
    agent.configure(PIXELS)
    agent.load(TFLITE / "int8.tflite", "tflite")
    infer = agent.infer(images(1))
    assert "send CONFIGURE first" in refused(infer, "bad-request")


def test_a_spec_that_does_not_fit_the_model_is_refused(agent: AgentProcess) -> None:
    agent.load(TFLITE / "float.tflite", "tflite")
    for change, words in (
        ({"shape": [64]}, "has shape 1 x 8 x 8 x 1, not 64"),
        ({"dtype": "float64"}, "is float32, not float64"),
        ({"layout": "?"}, "layout must be one of"),
        ({"mean": None}, "not an input spec"),
    ):
        spec = {**PIXELS.to_json(), **change}
        answer = agent.request(Kind.CONFIGURE, {"input": spec, "output": None})
        assert words in refused(answer, "bad-request")


def test_the_output_is_chosen_by_name(agent: AgentProcess, tmp_path: Path) -> None:
    described = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, 8, 8, 1])
        for name in ("x", "plus", "minus")
    ]
    nodes = [
        helper.make_node("Identity", ["x"], ["plus"]),
        helper.make_node("Neg", ["x"], ["minus"]),
    ]
    model = save_onnx(tmp_path / "two.onnx", nodes, described[:1], described[1:])
    agent.load(model, "onnx")
    spec = InputSpec((1, 8, 8, 1), "float32", (8, 8), 1).to_json()
    for output in (None, "other"):
        answer = agent.request(Kind.CONFIGURE, {"input": spec, "output": output})
        assert "outputs are plus" in refused(answer, "bad-request")
    agent.request(Kind.CONFIGURE, {"input": spec, "output": "minus"})
    [sample] = images(1)
    [raw] = agent.infer([sample]).arrays
    np.testing.assert_array_equal(raw[0], -sample.astype(np.float32))


def test_a_sample_of_another_size_is_refused_with_its_id(agent: AgentProcess) -> None:
    agent.load(TFLITE / "float.tflite", "tflite")
    agent.configure(PIXELS)
    answer = agent.ask(Kind.INFER, {"id": "this one"}, [np.zeros((9, 9, 1), np.uint8)])
    assert "x 9 pixels" in refused(answer, "bad-request")
    assert answer.header["id"] == "this one"


def test_frames_that_are_no_requests_are_refused(agent: AgentProcess) -> None:
    assert "PONG is no" in refused(agent.ask(Kind.PONG, {"id": 1}), "bad-request")
    assert "needs an id" in refused(agent.ask(Kind.INFER, {}), "bad-request")


def test_long_metadata_is_left_out_and_the_rest_is_sent(agent, tmp_path) -> None:
    described = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, 4]) for name in ("x", "y")
    ]
    model = save_onnx(
        tmp_path / "wordy.onnx",
        [helper.make_node("Neg", ["x"], ["y"])],
        described[:1],
        described[1:],
        metadata={"weights": "x" * (2 << 20), "edgeflare.input": "{}"},
    )
    assert agent.load(model, "onnx").header["metadata"] == {"edgeflare.input": "{}"}


def shim(folder: Path, code: str) -> dict[str, str]:
    """An environment in which `import onnxruntime` runs this code instead."""
    package = folder / "shim" / "onnxruntime"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text(code)
    return {**bare_environment(), "PYTHONPATH": str(package.parent)}


def test_what_native_code_prints_goes_to_stderr(tmp_path: Path) -> None:
    code = """
import ctypes, os, sys
print("printed by Python")
ctypes.CDLL(None).puts(b"printed by C")
ctypes.CDLL(None).fflush(None)
os.system("echo printed by a child; cat")
sys.path.remove(os.path.dirname(os.path.dirname(__file__)))
del sys.modules["onnxruntime"]
import onnxruntime
"""
    with AgentProcess(tmp_path, environment=shim(tmp_path, code)) as agent:
        agent.start()
        assert agent.load(dense_onnx(tmp_path / "m.onnx", [1, 8, 8, 1]), "onnx").kind is Kind.LOADED
        assert agent.ask(Kind.PING, {"n": 1}).kind is Kind.PONG
        agent.send(Kind.BYE, {})
        status, stderr = agent.ended()
    assert status == 0
    assert stderr.split("\n")[:3] == ["printed by Python", "printed by C", "printed by a child"]


def test_an_unforeseen_failure_is_reported_and_the_agent_goes_on(tmp_path: Path) -> None:
    environment = shim(tmp_path, "raise LookupError('half installed')")
    with AgentProcess(tmp_path, environment=environment) as agent:
        agent.start()
        answer = agent.load(dense_onnx(tmp_path / "m.onnx", [1, 8, 8, 1]), "onnx")
        assert refused(answer, "internal") == "LookupError: half installed"
        assert agent.load(TFLITE / "float.tflite", "tflite").kind is Kind.LOADED

"""How TensorRT engines are built and calibrated, when they are kept, and when they are refused."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import stand_in_tensorrt
from small_models import (
    WEAKLY_TYPED,
    Load,
    ModelFile,
    calibration_name,
    engines,
    images,
    quantized_model,
)
from stand_in_engines import StandInGpu

from edgeflare_agent.cache import file_sha256
from edgeflare_agent.errors import ModelError, RequestError
from edgeflare_agent.runtimes import cuda, load


@pytest.mark.parametrize("version", WEAKLY_TYPED, indirect=True)
def test_fp16_is_another_engine(load_here: Load, model_file: ModelFile, tmp_path: Path) -> None:
    path = model_file("onnx", "float")
    full, half = load_here(path), load_here(path, precision="fp16")
    [one], [other] = full.run(images()), half.run(images())
    assert one.tobytes() != other.tobytes()
    np.testing.assert_allclose(one, other, atol=1e-3)
    assert len(engines(tmp_path)) == 2
    assert half.describe()["precision"] == "fp16"
    layers = full.describe()["layers"]["fp32"]
    assert half.describe()["layers"] == {"fp16": layers - 1, "fp32": 1}  # which TensorRT kept


@pytest.mark.parametrize("version", ["11.0.0"], indirect=True)
@pytest.mark.parametrize("precision", ["fp16", "int8"])
def test_a_tensorrt_without_weak_typing_says_what_to_give_instead(
    load_here: Load, model_file: ModelFile, precision: str
) -> None:
    with pytest.raises(ModelError, match=f"{precision} engine"):
        load_here(model_file("onnx", "float"), precision=precision)


def test_a_model_with_qdq_nodes_needs_no_calibration(load_here, library, tmp_path, version) -> None:
    path = quantized_model(tmp_path / "qdq.onnx")
    values = np.random.default_rng(0).normal(size=(1, 64)).astype(np.float32)
    [expected] = load(str(path), "onnx", {}).run(values)
    for precision in ("fp32", "int8"):
        [answer] = load_here(path, precision=precision).run(values)
        assert answer.tobytes() == expected.tobytes()
    assert library.state.calibrated == []


@pytest.mark.parametrize("version", WEAKLY_TYPED, indirect=True)
@pytest.mark.parametrize("name", ["float", "open_batch"])
def test_int8_is_calibrated_with_every_tensor_of_the_file(
    load_here: Load, library: Any, gpu: StandInGpu, model_file: ModelFile, tmp_path: Path, name: str
) -> None:
    tensors = images(5)[:, np.newaxis]
    calibration = calibration_name(tmp_path, tensors)
    model = load_here(model_file("onnx", name), precision="int8", calibration=calibration)
    np.testing.assert_array_equal(np.stack(library.state.calibrated), tensors)
    assert model.describe()["calibration_sha256"] == calibration[:64]
    [answer] = model.run(images())
    [exact] = load(model_file("onnx", name), "onnx", {}).run(images())
    assert answer.tobytes() != exact.tobytes()
    np.testing.assert_allclose(answer, exact, atol=0.1)

    other = calibration_name(tmp_path, images(4, seed=1)[:, np.newaxis])
    load_here(model_file("onnx", name), precision="int8", calibration=other).close()
    assert library.state.builds == 2
    model.close()
    assert (gpu.memory, gpu.streams) == ({}, {})


@pytest.mark.parametrize("version", ["8.5.2", "10.3.0"], indirect=True)
def test_calibration_that_can_not_serve_is_explained(load_here, model_file, tmp_path) -> None:
    path = model_file("onnx", "float")
    with pytest.raises(ModelError, match="calibration data"):
        load_here(path, precision="int8")
    flat = calibration_name(tmp_path, images(3))
    with pytest.raises(ModelError, match=r"float32 \[3"):
        load_here(path, precision="int8", calibration=flat)
    none = calibration_name(tmp_path, np.zeros((0, 1, 8, 8, 1), np.float32))
    with pytest.raises(ModelError, match=r"float32 \[0"):
        load_here(path, precision="int8", calibration=none)
    (tmp_path / "cache" / "models" / flat).write_bytes(b"other")
    with pytest.raises(ModelError, match="changed or"):
        load_here(path, precision="int8", calibration=flat)
    with pytest.raises(RequestError, match="calibration name"):
        load_here(path, precision="int8", calibration="../../etc/passwd.npy")


@pytest.mark.parametrize("version", ["8.6.1", "10.3.0"], indirect=True)
def test_a_gpu_that_fails_during_calibration_is_named(
    load_here: Load, model_file: ModelFile, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise cuda.CudaError("cudaMemcpyAsync failed: out of memory (2)")

    monkeypatch.setattr(cuda.Cuda, "upload", fail)
    name = calibration_name(tmp_path, images(2)[:, np.newaxis])
    with pytest.raises(ModelError, match="calibration failed"):
        load_here(model_file("onnx", "float"), precision="int8", calibration=name)


def test_an_engine_is_built_once(load_here, library, model_file, tmp_path) -> None:
    path = model_file("onnx", "float")
    first = load_here(path).describe()
    assert load_here(path).describe() == first
    assert library.state.builds == 1
    [engine] = engines(tmp_path)
    assert file_sha256(str(engine)) == first["engine_sha256"]
    about = json.loads(engine.with_suffix(".json").read_text())
    assert about["model_sha256"] == file_sha256(path)
    assert about["tensorrt"] == library.__version__
    assert (about["gpu"], about["compute_capability"]) == ("Orin", "8.7")
    assert [p.name for p in engine.parent.iterdir() if p.suffix == ".part"] == []


def test_what_changes_the_engine_builds_another(load_here, library, gpu, model_file) -> None:
    path = model_file("onnx", "float")
    digests = [load_here(path).describe()["engine_sha256"]]
    digests.append(load_here(path, workspace_mb=64).describe()["engine_sha256"])
    digests.append(load_here(model_file("onnx", "open_batch")).describe()["engine_sha256"])
    gpu.name = "Orin NX"
    digests.append(load_here(path).describe()["engine_sha256"])
    assert len(set(digests)) == library.state.builds == 4
    load_here(path, threads=3)
    assert library.state.builds == 4


@pytest.mark.parametrize("harm", ["cut", "no description", "foreign", "empty"])
@pytest.mark.parametrize("version", ["8.5.2", "10.3.0"], indirect=True)
def test_a_kept_engine_that_serves_no_more_is_built_anew(
    load_here: Load,
    library: Any,
    model_file: ModelFile,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    harm: str,
) -> None:
    path = model_file("onnx", "float")
    [before] = load_here(path).run(images())
    [engine] = engines(tmp_path)
    if harm == "cut":
        engine.write_bytes(engine.read_bytes()[:-9])
    elif harm == "empty":
        engine.write_bytes(b"")
    elif harm == "no description":
        engine.with_suffix(".json").unlink()
    else:  # whole, but TensorRT refuses it all the same
        content = b"of another TensorRT"
        engine.write_bytes(content)
        about = json.loads(engine.with_suffix(".json").read_text())
        about["engine_sha256"] = file_sha256(str(engine))
        engine.with_suffix(".json").write_text(json.dumps(about))
    [again] = load_here(path).run(images())
    assert again.tobytes() == before.tobytes()
    assert library.state.builds == 2
    load_here(path)
    assert library.state.builds == 2


@pytest.mark.parametrize("version", ["10.3.0"], indirect=True)
def test_a_kept_engine_serves_though_the_host_removes_it_meanwhile(
    load_here: Load, library: Any, model_file: ModelFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = model_file("onnx", "float")
    load_here(path)

    def removed(*_: object) -> None:
        raise FileNotFoundError

    monkeypatch.setattr("os.utime", removed)
    load_here(path)
    assert library.state.builds == 1


@pytest.mark.parametrize("version", ["10.3.0"], indirect=True)
def test_where_engines_can_not_be_kept_the_model_runs_all_the_same(
    load_here: Load, library: Any, model_file: ModelFile, tmp_path: Path
) -> None:
    (tmp_path / "cache").mkdir()
    (tmp_path / "cache" / "engines").write_text("in the way")
    assert load_here(model_file("onnx", "float")).run(images())[0].shape == (1, 4)


@pytest.mark.parametrize("ours", ["8.5.2", "10.3.0"])
def test_an_engine_of_another_tensorrt_or_gpu_is_refused(
    model_file: ModelFile, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ours: str
) -> None:
    stand_in_tensorrt.install("8.6.1", monkeypatch)
    load(model_file("onnx", "float"), "tensorrt", {}, str(tmp_path / "cache"))
    given = engines(tmp_path)[0].rename(tmp_path / "theirs.engine")
    stand_in_tensorrt.install(ours, monkeypatch)
    with pytest.raises(ModelError, match=f"TensorRT {ours}"):
        load(str(given), "tensorrt", {})
    stand_in_tensorrt.install("8.6.1", monkeypatch, StandInGpu("Xavier", (7, 2)))
    with pytest.raises(ModelError, match=r"incompatible device.*on"):
        load(str(given), "tensorrt", {})


@pytest.mark.parametrize("content", [b"", b"no engine", b"ftrt" + bytes(99)])
def test_a_file_that_is_no_engine_is_refused(load_here, tmp_path, content) -> None:
    (tmp_path / "wrong.engine").write_bytes(content)
    with pytest.raises(ModelError, match=r"engine .*wrong.engine"):
        load_here(tmp_path / "wrong.engine")


def test_the_workspace_is_limited_as_asked(load_here, model_file, tmp_path, version) -> None:
    load_here(model_file("onnx", "float"), workspace_mb=256)
    if version != "8.2.1":  # which takes it another way
        assert b'"workspace": 268435456' in engines(tmp_path)[0].read_bytes()

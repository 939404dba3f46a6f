"""What only TensorRT does, over a stand-in of each generation of its API and of CUDA's library."""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import stand_in_tensorrt
from onnx import TensorProto, helper
from small_models import Load, ModelFile, dense_model, engines, images, quantized_model, save_onnx
from stand_in_engines import BY_VALUES, StandInGpu

from edgeflare_agent.cache import file_sha256
from edgeflare_agent.errors import InferenceError, ModelError, RequestError, RuntimeMissingError
from edgeflare_agent.runtimes import load, tensorrt
from edgeflare_agent.runtimes.tensorrt_tensors import layers_by_type


def test_answers_as_the_model_says_in_every_generation(load_here, model_file) -> None:
    path = model_file("onnx", "float")
    [alone] = load_here(path).run(images())
    [expected] = load(path, "onnx", {}).run(images())
    assert alone.tobytes() == expected.tobytes()  # so TF32 is off
    [rounded] = load_here(path, tf32=True).run(images())
    assert rounded.tobytes() != expected.tobytes()


@pytest.mark.parametrize("ending", [".engine", ".plan"])
def test_a_built_engine_runs(load_here, library, model_file, tmp_path, ending) -> None:
    path = model_file("onnx", "open_batch")
    [expected] = load_here(path).run(images(3))
    [built] = engines(tmp_path)
    given = built.rename(tmp_path / f"mine{ending}")
    model = load_here(given)
    assert model.inputs[0].shape == (None, 8, 8, 1)
    assert model.run(images(3))[0].tobytes() == expected.tobytes()
    assert model.describe()["engine_sha256"] == file_sha256(str(given))
    assert model.describe()["precision"] is None
    assert library.state.builds == 1


def test_open_axes_beside_the_batch_need_their_sizes(load_here: Load, tmp_path: Path) -> None:
    path = dense_model(tmp_path / "open.onnx", ["n", "length", 64])
    with pytest.raises(ModelError, match=r"64\).*give them"):
        load_here(path)
    with pytest.raises(ModelError, match="input 'x'"):
        load_here(path, input_shape=[1, 5, 63])
    model = load_here(path, input_shape=[1, 5, 64])
    assert model.inputs[0].shape == (1, 5, 64)
    assert model.run(np.ones((1, 5, 64), np.float32))[0].shape == (1, 5, 4)


@pytest.mark.parametrize("version", ["8.4.1", "10.3.0"], indirect=True)
def test_an_output_whose_size_depends_on_values_is_refused(load_here: Load, tmp_path: Path) -> None:
    path = save_onnx(
        tmp_path / "nonzero.onnx",
        [helper.make_node("NonZero", ["x"], ["y"])],
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 4])],
        [helper.make_tensor_value_info("y", TensorProto.INT64, [2, BY_VALUES])],
    )
    with pytest.raises(InferenceError, match="'y' depends"):
        load_here(path).run(np.ones((1, 4), np.float32))


def test_more_samples_than_the_engine_takes_are_refused(load_here, model_file) -> None:
    model = load_here(model_file("onnx", "open_batch"))
    [eight] = model.run(images(8))
    with pytest.raises(InferenceError, match="shape 9"):
        model.run(images(9))
    assert model.run(images(8))[0].tobytes() == eight.tobytes()


def test_int64_is_what_the_generation_makes_of_it(load_here, model_file, version) -> None:
    model = load_here(model_file("onnx", "pixels_int64"))
    dtype = "int32" if version.startswith("8") else "int64"
    assert model.inputs[0].dtype == dtype
    assert abs(model.run(np.ones((1, 8, 8, 1), dtype))[0].sum() - 1) < 1e-5


def test_the_metadata_of_the_onnx_file_is_read(load_here, model_file, tmp_path) -> None:
    assert load_here(model_file("onnx", "float")).metadata == {
        "edgeflare.input": '{"scale": "1/255"}'
    }
    assert load_here(quantized_model(tmp_path / "bare.onnx")).metadata == {}


def test_all_memory_is_given_back(load_here: Load, model_file: ModelFile, gpu: StandInGpu) -> None:
    model = load_here(model_file("onnx", "open_batch"))
    for count in (1, 3, 8, 2):
        model.run(images(count))
    assert len(gpu.memory) == 2  # it grew, and did not pile up
    model.close()
    assert (gpu.memory, gpu.streams) == ({}, {})


def test_reports_what_is_in_effect(load_here: Load, model_file: ModelFile, library: Any) -> None:
    described = load_here(model_file("onnx", "float")).describe()
    assert described["package"] == "tensorrt"
    assert described["version"] == library.__version__
    assert (described["cuda"], described["cuda_driver"]) == ("12.6", "12.6")
    assert (described["gpu"], described["compute_capability"]) == ("Orin", "8.7")
    assert (described["precision"], described["tf32"]) == ("fp32", False)
    assert described["build_s"] >= 0
    assert list(described["layers"]) == ["fp32"]


@pytest.mark.parametrize(
    ("words", "kind"),
    [
        ("Thirty-two wide channel vectorized row major Int8 format", "int8"),
        ("Channel major FP16 format where channel % 8 == 0", "fp16"),
        ("Half", "fp16"),
        ("BFloat16", "bf16"),
        ("FP8", "fp8"),
        ("Row major linear FP32", "fp32"),
        ("Float", "fp32"),
        ("Int32", "other"),
    ],
)
def test_the_inspectors_words_are_types(words: str, kind: str) -> None:
    layers = {"Layers": [{"Outputs": [{"Format/Datatype": words}]}, {"Outputs": []}]}
    inspector = SimpleNamespace(get_engine_information=lambda form: json.dumps(layers))
    engine = SimpleNamespace(create_engine_inspector=lambda: inspector)
    library = SimpleNamespace(LayerInformationFormat=SimpleNamespace(JSON=None))
    assert layers_by_type(library, engine) == {kind: 1}


def test_an_engine_that_tells_names_alone_has_no_types() -> None:
    inspector = SimpleNamespace(get_engine_information=lambda form: '{"Layers": ["conv1"]}')
    engine = SimpleNamespace(create_engine_inspector=lambda: inspector)
    library = SimpleNamespace(LayerInformationFormat=SimpleNamespace(JSON=None))
    assert layers_by_type(library, engine) is None


@pytest.mark.parametrize("version", ["8.4.1", "10.3.0"], indirect=True)
def test_a_failing_inference_carries_tensorrts_words(load_here, model_file, gpu) -> None:
    model = load_here(model_file("onnx", "float"))
    model.run(images())
    kept = dict(gpu.memory)
    gpu.memory.clear()
    with pytest.raises(InferenceError, match="invalid argument"):
        model.run(images())
    gpu.memory.update(kept)
    gpu.streams[next(iter(gpu.streams))].clear()
    gpu.put(next(iter(gpu.streams)), lambda: 700)
    with pytest.raises(InferenceError, match="cudaStreamSynchronize failed"):
        model.run(images())


@pytest.mark.parametrize("cuda", [11040, 12060, 13000])
def test_cuda_of_every_generation_reports_its_gpu(model_file, tmp_path, monkeypatch, cuda) -> None:
    gpu = StandInGpu("NVIDIA H200", (9, 0), cuda)
    stand_in_tensorrt.install("10.3.0", monkeypatch, gpu)
    model = load(model_file("onnx", "float"), "tensorrt", {}, str(tmp_path))
    described = model.describe()
    assert (described["gpu"], described["compute_capability"]) == ("NVIDIA H200", "9.0")
    assert described["cuda"] == f"{cuda // 1000}.{cuda % 1000 // 10}"


def test_without_a_gpu_or_its_library_the_reason_is_reported(model_file, monkeypatch) -> None:
    stand_in_tensorrt.install("10.3.0", monkeypatch, StandInGpu(devices=0))
    with pytest.raises(RuntimeMissingError, match="CUDA-capable device"):
        load(model_file("onnx", "float"), "tensorrt", {})
    stand_in_tensorrt.install("10.3.0", monkeypatch, StandInGpu(version=99000))
    with pytest.raises(RuntimeMissingError, match=r"library \(libcudart.so.12"):
        load(model_file("onnx", "float"), "tensorrt", {})


@pytest.mark.parametrize(
    ("options", "wanted"),
    [
        ({"precision": "int4"}, "fp32, fp16, int8"),
        ({"tf32": 1}, "true or false"),
        ({"workspace_mb": 0}, "a whole number from 1"),
        ({"calibration": "seeds.npz"}, "the name of a .npy file"),
        ({"input_shape": [1, 0]}, "a list of whole numbers"),
    ],
)
def test_bad_option_values_are_refused_by_tensorrt(model_file, options, wanted) -> None:
    with pytest.raises(RequestError, match="must be " + wanted):
        load(model_file("onnx", "float"), "tensorrt", options)


def test_without_tensorrt_the_way_to_it_is_reported(model_file, monkeypatch, tmp_path) -> None:
    monkeypatch.setattr(tensorrt, "is_installed", lambda _: False)
    with pytest.raises(RuntimeMissingError, match=r"(numpy )?tensorrt"):
        load(model_file("onnx", "float"), "tensorrt", {})
    (tmp_path / "nv_tegra_release").touch()
    monkeypatch.setattr(
        "edgeflare_agent.install_hints._JETSON_RELEASE", str(tmp_path / "nv_tegra_release")
    )
    with pytest.raises(RuntimeMissingError, match="install python3-libnvinfer"):
        load(model_file("onnx", "float"), "tensorrt", {})


def test_a_cuda_that_the_driver_does_not_serve_is_passed_over(
    model_file: ModelFile, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = stand_in_tensorrt.install("10.3.0", monkeypatch)
    packages = tmp_path / "site-packages" / "nvidia" / "cu12" / "lib"
    packages.mkdir(parents=True)
    (packages / "libcudart.so.12").touch()
    monkeypatch.syspath_prepend(str(tmp_path / "site-packages"))
    libraries = {
        "libcudart.so.13": StandInGpu(devices=0, version=13000).library(),
        str(packages / "libcudart.so.12"): module.state.gpu.library(),
    }

    def load_it(path: str) -> Any:
        if path not in libraries:
            raise OSError(f"{path}: cannot open shared object file")
        return libraries[path]

    monkeypatch.setattr("ctypes.CDLL", load_it)
    model = load(model_file("onnx", "float"), "tensorrt", {}, str(tmp_path))
    assert model.describe()["cuda"] == "12.6"

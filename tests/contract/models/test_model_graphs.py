"""The tensors of every kind of file: they are read as they are, and the model starts at any cut."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from ai_edge_litert.interpreter import Interpreter, OpResolverType
from command import DEMO
from onnxruntime import GraphOptimizationLevel, InferenceSession, SessionOptions
from onnxruntime.quantization import QuantFormat, QuantType
from planted_causes import FLOAT, quantised
from small_models import TFLITE, two_inputs_onnx

from edgeflare.errors import ModelError, UsageError
from edgeflare.models.tensors import ModelGraph, open_graph
from edgeflare_agent.arrays import Array

IMAGES = np.load(DEMO / "seeds.npz")["images"][:3]


def qdq(folder: Path) -> Path:
    return quantised(folder / "qdq.onnx", activations=QuantType.QInt8)


def qoperator(folder: Path) -> Path:
    return quantised(folder / "q.onnx", activations=QuantType.QInt8, form=QuantFormat.QOperator)


FILES: dict[str, Callable[[Path], Path]] = {
    "onnx": lambda _: FLOAT,
    "onnx-qdq": qdq,
    "onnx-qoperator": qoperator,
    "tflite": lambda _: DEMO / "original.tflite",
    "tflite-int8": lambda _: DEMO / "deployed.tflite",
}


@pytest.fixture(params=FILES)
def path(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    return FILES[request.param](tmp_path)


def test_models_of_several_inputs_are_refused(tmp_path: Path) -> None:
    for path in (two_inputs_onnx(tmp_path / "two.onnx"), TFLITE / "two_inputs.tflite"):
        with pytest.raises(ModelError, match=f"{path.name}"):
            open_graph(path, path.suffix[1:], {})


def opened(path: Path) -> ModelGraph:
    """Open a file with the plainest kernels, which no reading of tensors changes."""
    options = {"graph_optimization": "none"} if path.suffix == ".onnx" else {"kernels": "reference"}
    return open_graph(path, path.suffix[1:], options)


def tensor(path: Path, image: Array) -> Array:
    """Return the input tensor for an image."""
    real = (image / 255).astype(np.float32)
    if path.suffix == ".onnx":
        return real.reshape(1, 1, 28, 28)
    grid = opened(path).grids.get(opened(path).input)
    return (real if grid is None else grid.quantized(real)).reshape(1, 28, 28, 1)


def output(path: Path, given: Array) -> Array:
    """Return what the model answers by those kernels, by its library alone."""
    if path.suffix == ".onnx":
        settings = SessionOptions()
        settings.intra_op_num_threads = 1
        settings.graph_optimization_level = GraphOptimizationLevel.ORT_DISABLE_ALL
        session = InferenceSession(str(path), settings, providers=["CPUExecutionProvider"])
        return np.asarray(session.run(None, {session.get_inputs()[0].name: given})[0])
    run = Interpreter(str(path), experimental_op_resolver_type=OpResolverType.BUILTIN_REF)
    run.allocate_tensors()
    run.set_tensor(run.get_input_details()[0]["index"], given)
    run.invoke()
    return np.asarray(run.get_tensor(run.get_output_details()[0]["index"]))


def cuts(graph: ModelGraph) -> list[list[str]]:
    """Return the single tensors that all depends on, the input first."""
    names = [graph.input, *(name for one in graph.operations for name in one.outputs)]
    return [[name] for name in names if graph.part_after([name]) is not None]


def test_reading_all_tensors_leaves_the_answer_as_it_is(path: Path) -> None:
    graph = opened(path)
    names = [name for one in graph.operations for name in one.outputs]
    for image in IMAGES:
        given = tensor(path, image)
        read = graph.read(given, names)
        assert set(names) <= set(read)
        np.testing.assert_array_equal(read[graph.output], output(path, given))


def test_the_rest_of_the_model_computes_its_answer_from_what_was_read(path: Path) -> None:
    graph = opened(path)
    found = cuts(graph)
    assert len(found) >= 10
    for image in IMAGES:
        given = tensor(path, image)
        read = graph.read(given, [name for cut in found for name in cut])
        for cut in found[1:-1]:
            answer = graph.starting_at(cut)([read[name] for name in cut])
            np.testing.assert_allclose(answer, read[graph.output], atol=2e-6, err_msg=str(cut))


def test_quantised_tensors_lie_on_their_grids(path: Path) -> None:
    graph = opened(path)
    assert bool(graph.grids) == (path.name not in ("original.onnx", "original.tflite"))
    read = graph.read(tensor(path, IMAGES[0]), graph.grids)
    for name, grid in graph.grids.items():
        if name in read and name != graph.output:
            np.testing.assert_allclose(grid.real(grid.quantized(read[name])), read[name], atol=1e-6)


def test_what_does_not_suffice_is_refused(path: Path) -> None:
    with pytest.raises(UsageError, match="don't suffice"):
        opened(path).starting_at([])


def test_a_damaged_file_is_told_in_a_sentence(path: Path, tmp_path: Path) -> None:
    damaged = tmp_path / f"damaged{path.suffix}"
    damaged.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    with pytest.raises(ModelError, match=r"damaged\.(onnx|tflite)"):
        opened(damaged)


def test_models_of_other_formats_have_no_graph(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"model\.keras"):
        open_graph(tmp_path / "model.keras", "keras", {})

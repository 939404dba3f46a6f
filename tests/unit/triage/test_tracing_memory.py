"""Tracing an ONNX file holds a bounded number of bytes at once, whatever the model's size: counted, not timed."""

from itertools import pairwise
from pathlib import Path

import numpy as np
import onnx
import pytest
from large_detector import SIZE, large_detector
from numpy.typing import NDArray
from onnx import TensorProto, helper

from edgeflare.models.tensors import onnx_graph
from edgeflare.models.tensors.onnx_graph import OnnxGraph

BOUND = 256 << 20


@pytest.fixture
def handed_out(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The bytes of the tensors that each run hands out together."""
    counted: list[int] = []
    run = OnnxGraph._run

    def counting(graph: OnnxGraph, session: object, feeds: dict[str, object]) -> list[NDArray]:
        values = run(graph, session, feeds)
        counted.append(sum(value.nbytes for value in values))
        return values

    monkeypatch.setattr(OnnxGraph, "_run", counting)
    return counted


@pytest.mark.parametrize("axes", [("n", 3, "height", "width"), (1, 3, 64, 64)])
def test_shapes_that_the_input_alone_tells_count_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, handed_out: list[int], axes: tuple
) -> None:
    names = ["image", *(f"t{place}" for place in range(12))]
    nodes = [helper.make_node("Relu", [before], [behind]) for before, behind in pairwise(names)]
    ends = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, axes)
        for name in (names[0], names[-1])
    ]
    model = helper.make_model(
        helper.make_graph(nodes, "chain", ends[:1], ends[1:]),
        opset_imports=[helper.make_opsetid("", 17)],
        ir_version=8,
    )
    onnx.save(model, tmp_path / "chain.onnx")
    image = np.ones((1, 3, 64, 64), np.float32)
    monkeypatch.setattr(onnx_graph, "_TRACED_BYTES", 5 * image.nbytes)
    traced = [name for name, _ in OnnxGraph(tmp_path / "chain.onnx", {}, None).trace([image])]
    assert traced == names
    assert handed_out == [5 * image.nbytes, 5 * image.nbytes, 2 * image.nbytes]


@pytest.mark.extended
def test_a_detector_of_640_x_640_is_traced_in_parts(tmp_path: Path, handed_out: list[int]) -> None:
    model = large_detector()
    onnx.save(model, tmp_path / "detector.onnx")
    graph = OnnxGraph(tmp_path / "detector.onnx", {}, None)
    rng = np.random.default_rng(0)
    images = [rng.random((1, 3, SIZE, SIZE), dtype=np.float32) for _ in range(2)]
    traced = [name for name, _ in graph.trace_several([[image] for image in images])]
    assert max(handed_out) <= BOUND < sum(handed_out) / len(images)
    operators = [name for node in model.graph.node for name in node.output]
    assert sorted(traced) == sorted(2 * ["image", *operators])

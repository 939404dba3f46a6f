"""`edgeflare check` with an arm64 board as the device: five healthy pairs and five faults."""

from pathlib import Path
from typing import Any

import cv2
import numpy as np
import onnx
import pytest
from command import DEMO, edgeflare
from onnx import TensorProto, helper, numpy_helper
from onnxruntime.transformers.float16 import convert_float_to_float16
from triage_pairs import SIZE, SPEC, images, network

from edgeflare.models.quantized import Recipe, make_quantized
from edgeflare_agent.preprocess import prepare

pytestmark = [pytest.mark.virtual, pytest.mark.slow]
NORMALISED = {"scale": "1/255", "mean": "0.485,0.456,0.406", "std": "0.229,0.224,0.225"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The network as float, int8, half precision, and of other weights; photographs for it."""
    folder = tmp_path_factory.mktemp("models")
    onnx.save(network(), folder / "float.onnx")
    onnx.save(network(seed=9), folder / "weights.onnx")
    onnx.save(convert_float_to_float16(network(), keep_io_types=True), folder / "half.onnx")
    onnx.save(reading_planes(), folder / "planes.onnx")
    inputs = [prepare(image, SPEC) for image in images()]
    made = make_quantized(
        folder / "float.onnx", [Recipe("int8", per_channel=True)], inputs, folder, lambda *_: None
    )
    made["int8"].rename(folder / "int8.onnx")
    (folder / "photos").mkdir()
    for place, image in enumerate(images()):
        cv2.imwrite(str(folder / "photos" / f"{place:02}.png"), image[..., ::-1])
    return folder


def reading_planes() -> onnx.ModelProto:
    """The network, which takes pixels one after the other for planes of colours."""
    model = network()
    graph = model.graph
    graph.node[0].input[0] = "planes"
    shape = numpy_helper.from_array(np.int64([1, 3, SIZE, SIZE]), "shape")
    graph.initializer.append(shape)
    graph.node.insert(0, helper.make_node("Transpose", ["image"], ["rows"], perm=[0, 2, 3, 1]))
    graph.node.insert(1, helper.make_node("Reshape", ["rows", "shape"], ["planes"]))
    assert graph.input[0].type.tensor_type.elem_type == TensorProto.FLOAT
    return model


def check(
    board: Any,
    home: Path,
    original: Path,
    deployed: Path,
    seeds: Path,
    fed: tuple[dict[str, str], dict[str, str]] = ({}, {}),
) -> dict[str, Any]:
    def stated(flag: str, options: dict[str, str]) -> list[str]:
        return [word for name, value in options.items() for word in (flag, f"{name}={value}")]

    ran = edgeflare(
        *("check", original, deployed, seeds, "--device", "virtual", "--limit", 24, "--json"),
        *("--survey-queries", 24, "--pursuit-queries", 0, "--out", home / "out"),
        *stated("--original-input", fed[0]),
        *stated("--deployed-input", fed[1]),
        home=home,
        extra=board.environment,
    )
    assert ran.code in (0, 1, 2, 4), ran.err
    found: dict[str, Any] = ran.json
    return found


@pytest.mark.parametrize("name", ["float.onnx", "int8.onnx", "half.onnx"])
def test_a_healthy_onnx_file_has_no_cause(
    virtual_board: Any, tmp_path: Path, folder: Path, name: str
) -> None:
    files = folder / "float.onnx", folder / name, folder / "photos"
    found = check(virtual_board, tmp_path, *files, (NORMALISED, NORMALISED))
    assert (found["verdict"], found["causes"]) == ("cannot-tell", [])


@pytest.mark.parametrize("name", ["original.tflite", "deployed.tflite"])
def test_a_healthy_tflite_file_has_no_cause(virtual_board: Any, tmp_path: Path, name: str) -> None:
    found = check(virtual_board, tmp_path, DEMO / "original.onnx", DEMO / name, DEMO / "seeds.npz")
    assert (found["verdict"], found["causes"]) == ("cannot-tell", [])


@pytest.mark.parametrize(
    ("name", "fed", "kinds"),
    [
        ("float.onnx", NORMALISED | {"color": "BGR"}, {"preprocessing"}),
        ("int8.onnx", {"scale": "1/255", "mean": "0", "std": "1"}, {"preprocessing"}),
        ("float.onnx", NORMALISED | {"scale": "1"}, {"preprocessing"}),
        ("planes.onnx", NORMALISED, {"conversion", "preprocessing"}),
        ("weights.onnx", NORMALISED, {"another-model"}),
    ],
    ids=["colours", "not normalised", "range", "planes", "other weights"],
)
def test_a_fault_is_the_first_cause(
    virtual_board: Any, tmp_path: Path, folder: Path, name: str, fed: Any, kinds: set[str]
) -> None:
    files = folder / "float.onnx", folder / name, folder / "photos"
    found = check(virtual_board, tmp_path, *files, (NORMALISED, fed))
    first = found["causes"][0]
    print(name, fed, found["verdict"], first)
    assert (found["verdict"], first["kind"] in kinds) == ("worse", True), first

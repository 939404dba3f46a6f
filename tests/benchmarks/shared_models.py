"""The shared models and images that the benchmarks run on, and what their files don't tell of inputs."""

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from edgeflare.models import InputOptions, InputSpec, TensorInfo, resolve_input
from edgeflare_agent.runtimes import load

CIFAR = {"mean": [125.307, 122.95, 113.865], "std": [62.9932, 62.0887, 66.7048]}
_RUNTIMES = {".tflite": "tflite", ".onnx": "onnx"}


class Pair(NamedTuple):
    """An original and its deployed model, by their paths in the data folder; `entry` holds for both.

    `float_model` is the original in the deployed model's format, "" where there is none or the
    original is it.
    """

    original: str
    deployed: str
    images: str
    entry: dict[str, Any]
    float_model: str = ""


_DIFFCHASER = "models/diffchaser"
_TINY = "models/mlperf-tiny/cifar10_resnet8"
_KEYWORDS = "models/mlperf-tiny/kws_dscnn"
_LITE = "models/imagenet/imagenet_efficientnet_lite0"
_DIGITS = "images/mnist_test_0_499.npz"
_SMALL = "images/cifar10_test_500_jpeg.npz"
_PHOTOS = "images/photos_coral_10.npz"

PAIRS = {
    "LeNet-1": Pair(
        f"{_DIFFCHASER}/lenet1.onnx",
        f"{_DIFFCHASER}/lenet1.quant.tflite",
        _DIGITS,
        {"scale": "1/255"},
        f"{_DIFFCHASER}/lenet1.float.tflite",
    ),
    "LeNet-5": Pair(
        f"{_DIFFCHASER}/lenet5.onnx",
        f"{_DIFFCHASER}/lenet5.quant.tflite",
        _DIGITS,
        {"scale": "1/255"},
        f"{_DIFFCHASER}/lenet5.float.tflite",
    ),
    "ResNet-20": Pair(
        f"{_DIFFCHASER}/resnet20.onnx",
        f"{_DIFFCHASER}/resnet20.quant.tflite",
        _SMALL,
        CIFAR,
        f"{_DIFFCHASER}/resnet20.float.tflite",
    ),
    "ResNet-8": Pair(f"{_TINY}_float.tflite", f"{_TINY}_int8.tflite", _SMALL, {"scale": "1"}),
    "EfficientNet-Lite0": Pair(
        f"{_LITE}_fp32.onnx",
        f"{_LITE}_int8_perchannel.onnx",
        _PHOTOS,
        {"mean": 127, "std": 128, "size": [224, 224]},
    ),
    "KWS": Pair(
        f"{_KEYWORDS}_float.tflite",
        f"{_KEYWORDS}_int8.tflite",
        "audio/speech_commands_mfcc_1000.npz",
        {"mean": 211, "std": 1.7102703},
    ),
}
"""KWS hears spoken words, searched as images: its MFCC features, int8, moved up by 128."""


def images_of(data: Path, pair: Pair) -> NDArray[np.uint8]:
    """Return a pair's seed images, uint8 [N, H, W, C]."""
    with np.load(data / pair.images) as archive:
        images: NDArray[np.uint8]
        if "mfcc_int8" in archive:
            images = (archive["mfcc_int8"].astype(np.int16) + 128).astype(np.uint8)
        else:
            images = archive["images"]
    return images if images.ndim == 4 else images[..., np.newaxis]


def runtime_of(model: Path) -> str:
    """Return the runtime's name."""
    return _RUNTIMES[model.suffix]


def input_of(model: Path, entry: dict[str, Any]) -> InputSpec:
    """Return how a sample becomes this model's input, as a campaign would have it."""
    runtime = load(str(model), runtime_of(model), {})
    try:
        tensor: TensorInfo = runtime.inputs[0]
    finally:
        runtime.close()
    return resolve_input(tensor, InputOptions.model_validate(entry), InputOptions(), "the model")

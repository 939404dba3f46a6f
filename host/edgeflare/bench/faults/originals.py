"""The float originals that faults are planted into, with their natural inputs."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from edgeflare._internal import extras
from edgeflare.bench.faults.rebuilt_tflite import rebuilt
from edgeflare.errors import UsageError

Layout = Literal["NHWC", "NCHW"]
Batch = npt.NDArray[np.float32]


@dataclass(frozen=True)
class Original:
    """A float ONNX classifier of images, with one input and one output of class scores.

    Spectra with their time as rows are images, too. An image without colours may lack that axis.

    `model` is an `onnx.ModelProto`; `inputs` are natural ones [N, ...] as the model takes them,
    `low` and `high` their least and greatest valid values (black and white), which broadcast
    against `inputs`. A valid input lies on a grid of 256 values from `low` to `high`. `softmax` is
    whether the scores are logits.
    """

    name: str
    model: Any
    inputs: Batch
    low: Batch
    high: Batch
    layout: Layout
    softmax: bool = False

    @property
    def input_name(self) -> str:
        """The name of the model's input."""
        constants = {one.name for one in self.model.graph.initializer}
        names = (str(one.name) for one in self.model.graph.input)
        return next(name for name in names if name not in constants)

    @property
    def axes(self) -> tuple[int, int]:
        """The axes of height and width of a batch."""
        return (1, 2) if self.layout == "NHWC" else (2, 3)

    def from_pixels(self, pixels: npt.NDArray[Any]) -> Batch:
        """Return inputs of pixels in 0 to 1, rounded to the grid of valid values."""
        grid = np.rint(np.clip(pixels, 0, 1) * 255) / 255
        return np.asarray(self.low + grid * (self.high - self.low), np.float32)

    def to_pixels(self, inputs: Batch) -> npt.NDArray[np.float64]:
        """Return inputs as pixels in 0 to 1."""
        return (inputs - self.low) / (self.high - self.low)

    def probabilities(self, scores: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
        """Return class probabilities [N, classes] of the model's output."""
        scores = scores.astype(np.float64)
        if not self.softmax:
            return scores
        raised = np.exp(scores - scores.max(1, keepdims=True))
        return np.asarray(raised / raised.sum(1, keepdims=True))


def session(model: Any) -> Any:
    """Return an ONNX Runtime session of a model, on one thread."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )


def predict(opened: Any, inputs: Batch, size: int = 64) -> npt.NDArray[np.float32]:
    """Return the first output of a session for all inputs, `size` at a time."""
    name = opened.get_inputs()[0].name
    return np.concatenate(
        [opened.run(None, {name: inputs[at : at + size]})[0] for at in range(0, len(inputs), size)]
    )


def observe(model: Any, tensors: Sequence[str], inputs: Batch) -> dict[str, npt.NDArray[Any]]:
    """Return what tensors of a model hold for some inputs, by name."""
    onnx = extras.onnx()
    probed = onnx.ModelProto()
    probed.CopyFrom(model)
    known = {one.name for one in probed.graph.output}
    names = list(dict.fromkeys(tensors))
    probed.graph.output.extend(
        onnx.helper.make_empty_tensor_value_info(name) for name in names if name not in known
    )
    opened = session(probed)
    given = opened.get_inputs()[0].name
    parts = [opened.run(names, {given: inputs[at : at + 32]}) for at in range(0, len(inputs), 32)]
    return {name: np.concatenate([one[n] for one in parts]) for n, name in enumerate(names)}


def _mnist(data: Path) -> Original:
    images = np.load(data / "images/mnist_test_0_499.npz")["images"]
    return Original(
        "mnist",
        _model(data / "models/diffchaser/lenet5.onnx"),
        (images[..., None] / 255).astype(np.float32),
        np.zeros((1, 1, 1, 1), np.float32),
        np.ones((1, 1, 1, 1), np.float32),
        "NHWC",
    )


def _cifar(data: Path) -> Original:
    images = np.load(data / "images/cifar10_test_500_jpeg.npz")["images"]
    mean = np.array([125.307, 122.95, 113.865])
    deviation = np.array([62.9932, 62.0887, 66.7048])
    low, high = ((value - mean) / deviation for value in (0, 255))
    return Original(
        "cifar",
        _model(data / "models/diffchaser/resnet20.onnx"),
        ((images - mean) / deviation).astype(np.float32),
        low.astype(np.float32).reshape(1, 1, 1, 3),
        high.astype(np.float32).reshape(1, 1, 1, 3),
        "NHWC",
    )


def _photographs(data: Path) -> Original:
    """Open EfficientNet-Lite0 with 50 inputs: ten photographs, mirrored, and cropped three times.

    A crop (the second: of the mirror images) has 7/8 of the side, and is made larger again by
    nearest neighbours.
    """
    photographs = np.load(data / "images/photos_coral_10.npz")["images"].transpose(0, 3, 1, 2)
    side = photographs.shape[2]
    places = np.arange(side) * 7 // 8
    made = [photographs, photographs[..., ::-1]]
    for down, right in ((0, 0), (side // 8, side // 8), (side // 16, side // 16)):
        made.append(made[len(made) % 2][:, :, places + down][..., places + right])
    return Original(
        "photographs",
        _model(data / "models/imagenet/imagenet_efficientnet_lite0_fp32.onnx"),
        ((np.concatenate(made) - 127.0) / 128).astype(np.float32),
        np.full((1, 1, 1, 1), -127 / 128, np.float32),
        np.full((1, 1, 1, 1), 1, np.float32),
        "NCHW",
        softmax=True,
    )


def _keywords(data: Path) -> Original:
    clips = np.load(data / "audio/speech_commands_mfcc_1000.npz")["mfcc_int8"][:500]
    scale, zero = np.float32(0.5847029), 83  # of the int8 model's input

    def real(values: Any) -> Batch:
        return np.asarray((np.float32(values) - zero) * scale, np.float32)

    model = rebuilt(data / "models/mlperf-tiny/kws_dscnn_float.tflite")
    low, high = (real(value).reshape(1, 1, 1, 1) for value in (-128, 127))
    return Original("keywords", model, real(clips), low, high, "NHWC")


def _rows(data: Path) -> Original:
    images = np.load(data / "images/mnist_test_0_499.npz")["images"]
    return Original(
        "rows",
        _model(Path(__file__).parents[2] / "assets/faults/rows_lstm.onnx"),
        (images / 255).astype(np.float32),
        np.zeros((1, 1, 1), np.float32),
        np.ones((1, 1, 1), np.float32),
        "NHWC",
    )


ORIGINALS: Mapping[str, Callable[[Path], Original]] = {
    "mnist": _mnist,
    "cifar": _cifar,
    "photographs": _photographs,
    "keywords": _keywords,
    "rows": _rows,
}


def open_original(name: str, data: Path) -> Original:
    """Open an original of `ORIGINALS` below the folder of models and seeds.

    Raises UsageError for an unknown name, and where its files are missing.
    """
    if name not in ORIGINALS:
        raise UsageError(f"there is no original {name!r}; there are {', '.join(ORIGINALS)}")
    try:
        return ORIGINALS[name](data)
    except FileNotFoundError as error:
        raise UsageError(
            f"{error.filename} is needed for the original {name}; name the folder of models and "
            "seeds with --data"
        ) from error


def _model(path: Path) -> Any:
    return extras.onnx().load_model(path)

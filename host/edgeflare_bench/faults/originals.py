"""The float originals that faults are planted into, with their natural inputs."""

import errno
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from importlib.resources import as_file, files
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from edgeflare._internal import extras
from edgeflare.errors import UsageError

Layout = Literal["NHWC", "NCHW"]
Batch = npt.NDArray[np.float32]


@dataclass(frozen=True)
class Original:
    """A float ONNX classifier of images, with one input and one output of class scores.

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


def _values(low: Any, high: Any) -> tuple[Batch, Batch]:
    """Return the least and the greatest valid values, one or one a channel, as `Original` has them."""
    first, last = (np.reshape(one, (1, 1, 1, -1)).astype(np.float32) for one in (low, high))
    return first, last


def _mnist(data: Path) -> Original:
    images = np.load(data / "images/mnist_test_0_499.npz")["images"]
    return Original(
        "mnist",
        _model(data / "models/diffchaser/lenet5.onnx"),
        (images[..., None] / 255).astype(np.float32),
        *_values(0, 1),
        "NHWC",
    )


def _cifar(data: Path) -> Original:
    images = np.load(data / "images/cifar10_test_500_jpeg.npz")["images"]
    mean = np.array([125.307, 122.95, 113.865])
    deviation = np.array([62.9932, 62.0887, 66.7048])
    ends = ((value - mean) / deviation for value in (0, 255))
    return Original(
        "cifar",
        _model(data / "models/diffchaser/resnet20.onnx"),
        ((images - mean) / deviation).astype(np.float32),
        *_values(*ends),
        "NHWC",
    )


def _photographs(data: Path) -> Original:
    images = np.load(data / "images/photos_coral_10.npz")["images"].transpose(0, 3, 1, 2)
    return Original(
        "photographs",
        _model(data / "models/imagenet/imagenet_efficientnet_lite0_fp32.onnx"),
        ((_views(images) - 127.0) / 128).astype(np.float32),
        *_values(-127 / 128, 1),
        "NCHW",
        softmax=True,
    )


def _views(images: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
    """Return five views of each image [N, channels, height, width], by turns of the images.

    The whole, the whole mirrored, and three quarters of height and width at two corners and in the
    middle, the last mirrored, enlarged to the whole's size.
    """
    size = images.shape[2]
    side = size * 3 // 4
    places = np.arange(size) * side // size
    views = [images, images[..., ::-1]]
    for down, right in ((0, 0), (size - side, size - side), ((size - side) // 2,) * 2):
        views.append(images[:, :, places + down][..., places + right])
    views[-1] = views[-1][..., ::-1]
    return np.concatenate(views)


def _rows(data: Path) -> Original:
    images = np.load(data / "images/mnist_test_0_499.npz")["images"]
    with as_file(files("edgeflare_bench") / "assets" / "mnist" / "rows.onnx") as path:
        model = _model(path)
    return Original(
        "rows",
        model,
        (images[:, None] / 255).astype(np.float32),
        *_values(0, 1),
        "NCHW",
    )


def _keywords(data: Path) -> Original:
    features = np.load(data / "audio/speech_commands_mfcc_1000.npz")["mfcc_int8"]
    scale, zero = _input_quantisation(data / "models/mlperf-tiny/kws_dscnn_int8.tflite")
    low, high, inputs = (
        ((np.asarray(one, np.float32) - zero) * scale).astype(np.float32)
        for one in (-128, 127, features)
    )
    return Original(
        "keywords",
        keyword_spotter(data / "models/mlperf-tiny/kws_dscnn_float.tflite"),
        inputs.reshape(-1, 49, 10, 1),
        *_values(low, high),
        "NHWC",
    )


def _input_quantisation(path: Path) -> tuple[np.float32, int]:
    (given,) = _interpreter(path).get_input_details()
    scale, zero = given["quantization"]
    return np.float32(scale), int(zero)


def keyword_spotter(path: Path) -> Any:
    """Return MLPerf Tiny's keyword spotter, a TFLite file, as an ONNX model of float numbers.

    Input ``features`` float32 [batch, 49, 10, 1], output ``probabilities`` float32 [batch, 12]. The
    kernels of the file's convolutions are int8; here they are the float numbers that those stand
    for. TFLite rounds the activations before such kernels, too, so that its answers differ a little.
    """
    helper = extras.onnx().helper
    opened = _interpreter(path)
    known = {one["index"]: one for one in opened.get_tensor_details()}
    nodes = [helper.make_node("Transpose", ["features"], ["value0"], perm=[0, 3, 1, 2])]
    weights: dict[str, npt.NDArray[Any]] = {}

    def array(index: int) -> npt.NDArray[np.float32]:
        scale = known[index]["quantization"][0] or 1.0
        stored: npt.NDArray[Any] = opened.get_tensor(index)
        return (stored * scale).astype(np.float32)

    def add(kind: str, value: str, *given: str, **attributes: Any) -> str:
        nodes.append(helper.make_node(kind, [value, *given], [f"value{len(nodes)}"], **attributes))
        return str(nodes[-1].output[0])

    value = "value0"
    layers = [one for one in opened._get_ops_details() if len(one["inputs"]) == 3]
    for number, layer in enumerate(layers):
        kernel, bias = (array(int(one)) for one in layer["inputs"][1:])
        names = (f"kernel{number}", f"bias{number}")
        if layer["op_name"] == "FULLY_CONNECTED":
            value = add("Flatten", add("GlobalAveragePool", value))
            value = add("Gemm", value, *names, transB=1)
        else:
            deep = layer["op_name"] == "DEPTHWISE_CONV_2D"
            kernel = kernel.transpose((3, 0, 1, 2) if deep else (0, 3, 1, 2))
            stride = 1 if number else 2
            sizes = (known[int(layer["inputs"][0])]["shape"][1:3], kernel.shape[2:])
            value = add(
                *("Conv", value, *names),
                pads=_same_pads(*sizes, stride),
                strides=[stride, stride],
                group=len(bias) if deep else 1,
            )
            value = add("Relu", value)
        weights |= dict(zip(names, (np.ascontiguousarray(kernel), bias), strict=True))
    nodes.append(helper.make_node("Softmax", [value], ["probabilities"], axis=1))
    return _keyword_model(nodes, weights)


def _same_pads(sizes: Sequence[int], kernel: Sequence[int], stride: int) -> list[int]:
    """Return what TFLite's padding "same" adds to height and width: before both, then behind."""
    pads = [
        max((-(-int(size) // stride) - 1) * stride + int(side) - int(size), 0)
        for size, side in zip(sizes, kernel, strict=True)
    ]
    return [*(one // 2 for one in pads), *(one - one // 2 for one in pads)]


def _keyword_model(nodes: list[Any], weights: Mapping[str, npt.NDArray[Any]]) -> Any:
    onnx = extras.onnx()
    helper, floats = onnx.helper, onnx.TensorProto.FLOAT
    graph = helper.make_graph(
        nodes,
        "keywords",
        [helper.make_tensor_value_info("features", floats, ["batch", 49, 10, 1])],
        [helper.make_tensor_value_info("probabilities", floats, ["batch", 12])],
        [onnx.numpy_helper.from_array(value, name) for name, value in weights.items()],
    )
    model = helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8, producer_name="edgeflare"
    )
    onnx.checker.check_model(model, full_check=True)
    return model


def _interpreter(path: Path) -> Any:
    if not path.is_file():
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(path))
    opened = import_module("ai_edge_litert.interpreter").Interpreter(str(path), num_threads=1)
    opened.allocate_tensors()
    return opened


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
            f"there is no file {error.filename}, of which the original {name} is made; name the "
            "folder of models and seeds with --data, or other originals with --pair"
        ) from error


def _model(path: Path) -> Any:
    return extras.onnx().load_model(path)

"""A small student that learns from an original's answers: a healthy model of another shape."""

from typing import Any

import numpy as np
import numpy.typing as npt

from edgeflare._internal import extras
from edgeflare_bench.faults.originals import Batch, Original, predict, session

_BATCH = 64
_FILTERS = (16, 32)
_HIDDEN = 64


def distilled(original: Original, seed: int = 0, steps: int = 1000) -> Any:
    """Train a student of an original with one channel; return it as a float ONNX model.

    Knowledge distillation (Hinton, Vinyals and Dean, 2015) at temperature 1: the student, two
    convolutions and two dense layers, learns the original's probabilities on its natural inputs,
    changed in contrast, noisy, or mixed by two. Its outputs are probabilities.

    `steps` batches of 64 are learned from, on one thread. On one machine the same seed gives the
    same student. Needs the extra `torch`.
    """
    torch = extras.torch()
    height, width = (original.inputs.shape[axis] for axis in original.axes)
    opened = session(original.model)
    classes = opened.get_outputs()[0].shape[1]
    mean, deviation = original.inputs.mean(0), original.inputs.std()
    rng = np.random.default_rng(seed)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        student = torch.nn.Sequential(
            torch.nn.Conv2d(1, _FILTERS[0], 3, stride=2, padding=1),
            torch.nn.ReLU(),
            torch.nn.Conv2d(*_FILTERS, 3, stride=2, padding=1),
            torch.nn.ReLU(),
            torch.nn.Flatten(),
            torch.nn.Linear(_FILTERS[1] * -(-height // 4) * -(-width // 4), _HIDDEN),
            torch.nn.ReLU(),
            torch.nn.Linear(_HIDDEN, classes),
        )
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        optimiser = torch.optim.Adam(student.parameters(), 3e-3)
        schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, steps)
        for _ in range(steps):
            inputs = original.from_pixels(
                original.to_pixels(_changed(original.inputs, mean, deviation, rng))
            )
            taught = original.probabilities(predict(opened, inputs)).astype(np.float32)
            scores = student(
                torch.from_numpy((inputs - mean) / deviation).reshape(-1, 1, height, width)
            )
            optimiser.zero_grad()
            torch.nn.functional.cross_entropy(scores, torch.from_numpy(taught)).backward()
            optimiser.step()
            schedule.step()
    finally:
        torch.set_num_threads(threads)
    values = [one.detach().numpy() for one in student.parameters()]
    return _as_onnx(original, classes, values)


def _changed(inputs: Batch, mean: Batch, deviation: np.float32, rng: np.random.Generator) -> Batch:
    """Return a batch of natural inputs, most of them changed."""
    first, second = (inputs[rng.integers(len(inputs), size=_BATCH)] for _ in range(2))
    shape = (_BATCH, *[1] * (inputs.ndim - 1))
    share = np.where(rng.random(shape) < 0.3, rng.random(shape), 1)
    gain = np.where(rng.random(shape) < 0.5, rng.uniform(0.3, 1.3, shape), 1)
    noise = rng.normal(size=first.shape) * rng.uniform(0, 0.15, shape) * deviation
    mixed = first * share + second * (1 - share)
    return np.asarray((mixed - mean) * gain + mean + noise, np.float32)


def _as_onnx(original: Original, classes: int, values: list[npt.NDArray[Any]]) -> Any:
    onnx = extras.onnx()
    height, width = (original.inputs.shape[axis] for axis in original.axes)
    constants = {
        "shape": np.array([-1, 1, height, width], np.int64),
        "mean": original.inputs.mean(0).reshape(1, 1, height, width),
        "deviation": original.inputs.std(),
        **{
            f"weights_{n // 2}" if n % 2 == 0 else f"bias_{n // 2}": v for n, v in enumerate(values)
        },
    }
    node = onnx.helper.make_node
    window = {"strides": [2, 2], "pads": [1, 1, 1, 1]}
    nodes = [
        node("Reshape", ["input", "shape"], ["maps"]),
        node("Sub", ["maps", "mean"], ["centred"]),
        node("Div", ["centred", "deviation"], ["scaled"]),
        node("Conv", ["scaled", "weights_0", "bias_0"], ["conv_0"], **window),
        node("Relu", ["conv_0"], ["relu_0"]),
        node("Conv", ["relu_0", "weights_1", "bias_1"], ["conv_1"], **window),
        node("Relu", ["conv_1"], ["relu_1"]),
        node("Flatten", ["relu_1"], ["features"]),
        node("Gemm", ["features", "weights_2", "bias_2"], ["dense"], transB=1),
        node("Relu", ["dense"], ["hidden"]),
        node("Gemm", ["hidden", "weights_3", "bias_3"], ["logits"], transB=1),
        node("Softmax", ["logits"], ["output"], axis=-1),
    ]
    shape = ["n", *original.inputs.shape[1:]]
    graph = onnx.helper.make_graph(
        nodes,
        f"{original.name}_student",
        [onnx.helper.make_tensor_value_info("input", 1, shape)],
        [onnx.helper.make_tensor_value_info("output", 1, ["n", classes])],
        [onnx.numpy_helper.from_array(np.array(v, order="C"), k) for k, v in constants.items()],
    )
    opset = [onnx.helper.make_opsetid("", 17)]
    return onnx.helper.make_model(graph, opset_imports=opset, ir_version=8)

# /// script
# requires-python = ">=3.10,<3.14"
# dependencies = [
#     "mlxtend==0.25.0",
#     "onnx==1.23.2",
#     "onnxruntime==1.32.0",
#     "opencv-python-headless>=4.9",
#     "torch==2.14.1",
# ]
# ///
# ruff: noqa: T201 - a script that is run by its path, in no package, and prints its figures
"""Makes the models and seeds of the demo of detection, in host/edgeflare/assets/demo_detection.

``python deploy/models/build_detection_demo.py`` overwrites the three files in some minutes on one
core; NOTICE.txt says where the digits come from.

Data
    Scenes of 96 x 96 pixels with one to four digits (``digit_scenes.py``), made of the 4,000
    training and, for testing, the 1,000 test digits of ``mnist_split.py``.
original.onnx
    Ten convolutions (69,286 parameters), trained with PyTorch. Input ``images`` float32 [batch, 3, 96, 96], RGB, pixels / 255; output ``output0`` float32
    [batch, 14, 144], laid out as YOLOv8's: for each cell of the 12 x 12 grid the box's centre x
    and y, width and height in pixels of the input, then the scores of the ten digits after the
    sigmoid. The metadata properties ``edgeflare.input`` (JSON), ``names`` and ``task`` state the
    preprocessing and, as Ultralytics writes them, the classes and the task.
deployed.onnx
    The same after static quantisation by ONNX Runtime (QDQ): uint8 activations by their range on
    300 training scenes, int8 weights with a scale for each channel and in 7 bits, so that
    processors without VNNI don't saturate and all give the same answers. The last 1 x 1 convolution
    of each head, sigmoids and concatenation stay in float32.
seeds.npz
    ``images`` uint8 [60, 96, 96, 3], the first 60 test scenes.

The ends of the heads stay in float32 because 8 bits for all logits make scores step by 0.04 near
0.5, which itself is one of the steps: a tie is no deviation. Under one scale with the boxes, scores
would have no resolution at all.

Measured at a confidence of 0.5 on 500 test scenes with 1,196 digits: original recall 91.4 %,
precision 95.6 %, deployed 91.3 % and 95.5 %, different detections (IoU below 0.75, or another
digit) on 13 scenes; on the seeds 90.3 % and 95.6 %, 90.3 % and 94.2 %, on 2 of 60. Another
processor or version may give slightly other weights.
"""

import json
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import torch
from onnx import TensorProto, helper, numpy_helper
from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_static
from onnxruntime.quantization.shape_inference import quant_pre_process
from torch import nn
from torch.nn import functional as F  # noqa: N812 - its usual name

from digit_scenes import SIZE, Scene, draw_scene
from mnist_split import split

FOLDER = Path(__file__).resolve().parents[2] / "host" / "edgeflare" / "assets" / "demo_detection"
SEEDS = 60
TEST_SCENES = 500
CALIBRATION = 300
STEPS = 2400
BATCH = 48
STRIDE = 8
GRID = SIZE // STRIDE
LARGEST = 64
"""A box's width and height are a sigmoid times so many pixels."""
CLASSES = 10
CONVOLUTIONS = ((3, 12, 2), (12, 24, 2), (24, 24, 1), (24, 40, 2), (40, 40, 1), (40, 40, 1))
"""Channels in and out, and the stride, of the 3 x 3 convolutions that both heads share."""
HEAD = 32


def convolution(channels: int, filters: int, stride: int = 1) -> nn.Sequential:
    """Return a 3 x 3 convolution, batch normalisation and ReLU."""
    return nn.Sequential(
        nn.Conv2d(channels, filters, 3, stride, 1, bias=False), nn.BatchNorm2d(filters), nn.ReLU()
    )


class Detector(nn.Module):  # type: ignore[misc] # PyTorch's types are not followed here
    """An anchor-free detector: for each cell of the grid a box and the logits of the classes."""

    def __init__(self) -> None:
        super().__init__()
        self.shared = nn.Sequential(*(convolution(*row) for row in CONVOLUTIONS))
        self.box = nn.Sequential(convolution(40, HEAD), nn.Conv2d(HEAD, 4, 1))
        self.score = nn.Sequential(convolution(40, HEAD), nn.Conv2d(HEAD, CLASSES, 1))
        nn.init.constant_(self.score[1].bias, -5.0)  # most cells have no digit
        factor, offset = placement()
        self.register_buffer("factor", torch.from_numpy(factor))
        self.register_buffer("offset", torch.from_numpy(offset))

    def forward(self, image: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Return boxes [n, 4, cells] in pixels and logits [n, 10, cells]."""
        features = self.shared(image)
        raw = self.box(features).flatten(2)
        return torch.sigmoid(raw) * self.factor + self.offset, self.score(features).flatten(2)


def placement() -> tuple[np.ndarray, np.ndarray]:
    """Return the factor [1, 4, 1] and the offset [1, 4, cells] that make boxes of sigmoids.

    A centre is within one stride of the centre of its cell.
    """
    factor = np.array([2 * STRIDE, 2 * STRIDE, LARGEST, LARGEST], np.float32)[None, :, None]
    row, column = np.divmod(np.arange(GRID * GRID), GRID)
    nothing = np.zeros_like(row)
    corner = np.stack([column * STRIDE, row * STRIDE, nothing, nothing])[None]
    half = np.array([STRIDE / 2, STRIDE / 2, 0, 0])[None, :, None]
    return factor, (corner - half).astype(np.float32)


def targets(scenes: list[Scene]) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the wanted boxes [n, 4, cells] and classes [n, cells], -1 where there is no digit.

    A digit belongs to the cells whose centres are less than three quarters of a stride from its
    own, along both axes.
    """
    centre = (np.arange(GRID) + 0.5) * STRIDE
    boxes = np.zeros((len(scenes), 4, GRID, GRID), np.float32)
    classes = np.full((len(scenes), GRID, GRID), -1, np.int64)
    for n, scene in enumerate(scenes):
        for box, digit in zip(scene.boxes, scene.digits, strict=True):
            rows = np.abs(centre - box[1]) < 0.75 * STRIDE
            cells = np.ix_(rows, np.abs(centre - box[0]) < 0.75 * STRIDE)
            classes[n][cells] = digit
            boxes[n][:, cells[0], cells[1]] = box[:, None, None]
    return torch.from_numpy(boxes).flatten(2), torch.from_numpy(classes).flatten(1)


def iou(first: torch.Tensor, second: torch.Tensor) -> torch.Tensor:
    """Return the IoU [n] of boxes [n, 4] of centre, width and height."""
    low = torch.maximum(first[:, :2] - first[:, 2:] / 2, second[:, :2] - second[:, 2:] / 2)
    high = torch.minimum(first[:, :2] + first[:, 2:] / 2, second[:, :2] + second[:, 2:] / 2)
    common = (high - low).clamp(min=0).prod(1)
    return common / (first[:, 2:].prod(1) + second[:, 2:].prod(1) - common)


def loss_of(
    boxes: torch.Tensor, logits: torch.Tensor, wanted: torch.Tensor, classes: torch.Tensor
) -> torch.Tensor:
    """Return the mean loss of a cell with a digit: cross entropy, IoU and distance of the box."""
    has = classes >= 0
    hot = F.one_hot(classes.clamp(min=0), CLASSES) * has[..., None]
    scores = F.binary_cross_entropy_with_logits(
        logits, hot.transpose(1, 2).float(), reduction="sum"
    )
    found, true = boxes.transpose(1, 2)[has], wanted.transpose(1, 2)[has]
    placed = 2 * (1 - iou(found, true)).sum() + (found - true).abs().sum() / STRIDE
    return (scores + placed) / has.sum()


def to_tensor(scenes: list[Scene]) -> torch.Tensor:
    """Return the images as float32 [n, 3, SIZE, SIZE] in [0, 1]."""
    return torch.from_numpy(prepared(np.stack([scene.image for scene in scenes])))


def prepared(images: np.ndarray) -> np.ndarray:
    """uint8 [n, SIZE, SIZE, 3] -> float32 [n, 3, SIZE, SIZE] in [0, 1]."""
    return np.ascontiguousarray(images.transpose(0, 3, 1, 2) / np.float32(255))


def train(images: np.ndarray, labels: np.ndarray) -> Detector:
    """Return the detector trained on new scenes of these digits in each step."""
    torch.manual_seed(0)
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    rng = np.random.default_rng(1)
    net = Detector()
    optimizer = torch.optim.AdamW(net.parameters(), lr=4e-3, weight_decay=1e-2)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 4e-3, total_steps=STEPS)
    for step in range(STEPS):
        scenes = [draw_scene(images, labels, rng) for _ in range(BATCH)]
        boxes, logits = net(to_tensor(scenes))
        loss = loss_of(boxes, logits, *targets(scenes))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
        if step % 200 == 0:
            print(f"step {step}: loss {loss.item():.3f}", flush=True)
    net.eval()
    return net


def to_onnx(net: Detector) -> onnx.ModelProto:
    """Write the network as an ONNX graph, its normalisation merged into the convolutions."""
    nodes, weights = [], {}

    def add(operator: str, inputs: list[str], output: str, **attributes: object) -> str:
        nodes.append(helper.make_node(operator, inputs, [output], output, **attributes))
        return output

    def convolve(layer: nn.Module, norm: nn.Module | None, source: str, name: str) -> str:
        weight, bias = layer.weight.detach(), layer.bias
        if norm is not None:
            gain = norm.weight.detach() / torch.sqrt(norm.running_var + norm.eps)
            bias = norm.bias - norm.running_mean * gain
            weight = weight * gain[:, None, None, None]
        weights[f"{name}.weight"], weights[f"{name}.bias"] = weight.numpy(), bias.detach().numpy()
        kernel, stride = weight.shape[-1], layer.stride[0]
        result = add(
            "Conv",
            [source, f"{name}.weight", f"{name}.bias"],
            name,
            kernel_shape=[kernel] * 2,
            pads=[kernel // 2] * 4,
            strides=[stride] * 2,
        )
        return result if norm is None else add("Relu", [result], f"{name}.relu")

    features = "images"
    for number, block in enumerate(net.shared):
        features = convolve(block[0], block[1], features, f"conv{number}")
    flat = {}
    for name, head in (("box", net.box), ("score", net.score)):
        inner = convolve(head[0][0], head[0][1], features, f"{name}.conv")
        raw = convolve(head[1], None, inner, f"{name}.raw")
        flat[name] = add("Reshape", [raw, f"{name}.shape"], f"{name}.flat")
        weights[f"{name}.shape"] = np.array([0, 4 if name == "box" else CLASSES, -1], np.int64)
    weights["box.factor"], weights["box.offset"] = placement()
    shares = add("Sigmoid", [flat["box"]], "box.shares")
    scaled = add("Mul", [shares, "box.factor"], "box.scaled")
    boxes = add("Add", [scaled, "box.offset"], "boxes")
    scores = add("Sigmoid", [flat["score"]], "scores")
    add("Concat", [boxes, scores], "output0", axis=1)

    shape = ["batch", 4 + CLASSES, GRID * GRID]
    graph = helper.make_graph(
        nodes,
        "digit_detector",
        [helper.make_tensor_value_info("images", TensorProto.FLOAT, ["batch", 3, SIZE, SIZE])],
        [helper.make_tensor_value_info("output0", TensorProto.FLOAT, shape)],
        [
            numpy_helper.from_array(np.ascontiguousarray(value), name)
            for name, value in weights.items()
        ],
    )
    model = helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8, producer_name="edgeflare"
    )
    state_properties(model)
    onnx.checker.check_model(model, full_check=True)
    return model


def state_properties(model: onnx.ModelProto) -> None:
    """Write the properties that the docstring above names."""
    names = {number: str(number) for number in range(CLASSES)}
    helper.set_model_props(
        model,
        {
            "edgeflare.input": json.dumps({"scale": "1/255"}),
            "names": str(names),
            "task": "detect",
        },
    )


class Calibration(CalibrationDataReader):  # type: ignore[misc] # ONNX Runtime has no types
    """Gives single scenes to ONNX Runtime's quantisation."""

    def __init__(self, images: np.ndarray) -> None:
        self._images: Iterator[np.ndarray] = iter(images)

    def get_next(self) -> dict[str, np.ndarray] | None:
        """Return the next model input, None at the end."""
        image = next(self._images, None)
        return None if image is None else {"images": prepared(image[None])}


def quantize(model: onnx.ModelProto, images: np.ndarray) -> onnx.ModelProto:
    """Return the model with quantised convolutions, calibrated on uint8 images [n, 96, 96, 3]."""
    with tempfile.TemporaryDirectory() as folder:
        source, result = Path(folder, "prepared.onnx"), Path(folder, "quantized.onnx")
        quant_pre_process(model, source, skip_symbolic_shape=True, skip_optimization=True)
        quantize_static(
            source,
            result,
            Calibration(images),
            quant_format=QuantFormat.QDQ,
            op_types_to_quantize=["Conv", "Relu"],
            nodes_to_exclude=["box.raw", "score.raw"],
            per_channel=True,
            reduce_range=True,
            activation_type=QuantType.QUInt8,
            weight_type=QuantType.QInt8,
        )
        quantized = onnx.load(result)
    state_properties(quantized)
    return quantized


def outputs(model: bytes, images: np.ndarray) -> np.ndarray:
    """Return float32 [n, 14, 144] of uint8 images [n, 96, 96, 3]."""
    session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
    results = [session.run(None, {"images": prepared(image[None])})[0] for image in images]
    return np.concatenate(results)


def detections(output: np.ndarray, confidence: float = 0.5) -> list[tuple[np.ndarray, int, float]]:
    """Return (box, digit, score) by falling score after NMS in each class at an IoU of 0.45."""
    digits, scores = output[4:].argmax(0), output[4:].max(0)
    kept: list[tuple[np.ndarray, int, float]] = []
    for cell in np.argsort(-scores, kind="stable"):
        box, digit = output[:4, cell], int(digits[cell])
        if scores[cell] >= confidence and not any(
            digit == other and overlap(box, rival) > 0.45 for rival, other, _ in kept
        ):
            kept.append((box, digit, float(scores[cell])))
    return kept


def overlap(first: np.ndarray, second: np.ndarray) -> float:
    """Return the IoU of two boxes of centre, width and height."""
    return float(iou(torch.tensor(first[None]), torch.tensor(second[None])))


def quality(found: list[list[tuple[np.ndarray, int, float]]], scenes: list[Scene]) -> str:
    """Return recall and precision in words; a digit is found at an IoU of 0.5 and its class."""
    right = sum(
        any(digit == true and overlap(box, place) >= 0.5 for box, digit, _ in boxes)
        for boxes, scene in zip(found, scenes, strict=True)
        for place, true in zip(scene.boxes, scene.digits, strict=True)
    )
    digits, boxes = sum(len(scene.digits) for scene in scenes), sum(map(len, found))
    return f"recall {right / digits:.1%} of {digits}, precision {right / boxes:.1%} of {boxes}"


def differ(
    first: list[tuple[np.ndarray, int, float]], second: list[tuple[np.ndarray, int, float]]
) -> bool:
    """Tell whether the detections of two models can't be paired at the same class and IoU 0.75."""
    return len(first) != len(second) or any(
        not any(digit == other and overlap(box, rival) >= 0.75 for rival, other, _ in second)
        for box, digit, _ in first
    )


def main() -> None:
    """Train, quantise, measure and write."""
    train_images, train_labels, images, labels = split()
    net = train(train_images, train_labels)
    original = to_onnx(net)
    rng = np.random.default_rng(2)
    calibration = [draw_scene(train_images, train_labels, rng) for _ in range(CALIBRATION)]
    deployed = quantize(original, np.stack([scene.image for scene in calibration]))
    rng = np.random.default_rng(3)
    scenes = [draw_scene(images, labels, rng) for _ in range(TEST_SCENES)]
    pixels = np.stack([scene.image for scene in scenes])

    FOLDER.mkdir(exist_ok=True)
    models = {"original": original.SerializeToString(), "deployed": deployed.SerializeToString()}
    for name, data in models.items():
        (FOLDER / f"{name}.onnx").write_bytes(data)
    np.savez_compressed(FOLDER / "seeds.npz", images=pixels[:SEEDS])

    with torch.no_grad():
        boxes, logits = net(to_tensor(scenes))
    expected = torch.cat([boxes, torch.sigmoid(logits)], 1).numpy()
    answers = {name: outputs(data, pixels) for name, data in models.items()}
    print(f"ONNX against PyTorch: {np.abs(answers['original'] - expected).max():.1e}")
    found = {name: [detections(one) for one in answer] for name, answer in answers.items()}
    for text, part in ((f"{TEST_SCENES} scenes", slice(None)), ("seeds", slice(SEEDS))):
        for name, every in found.items():
            print(f"{text}, {name}: {quality(every[part], scenes[part])}")
        pairs = zip(found["original"][part], found["deployed"][part], strict=True)
        print(f"{text}: {sum(differ(*pair) for pair in pairs)} with different detections")


if __name__ == "__main__":
    main()

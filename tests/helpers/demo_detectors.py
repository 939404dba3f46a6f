"""The demo's detectors as ONNX Runtime alone sees them, and one whose head has a fault."""

from pathlib import Path

import numpy as np
import onnx
import onnxruntime
from command import ROOT
from numpy.typing import NDArray
from onnx import helper, numpy_helper

DETECTION_DEMO = ROOT / "host" / "edgeflare" / "assets" / "demo_detection"
OUTPUT = "output0"
CONFIDENCE = 0.5

Boxes = list[tuple[NDArray[np.float64], int]]


def with_one_scale(path: Path, largest: float = 120.0) -> Path:
    """Write the demo's int8 detector with boxes and scores quantised together.

    They are concatenated under one uint8 scale, `largest` / 255, for a range of boxes up to
    `largest` pixels. Scores become multiples of it: 0, 0.471 and 0.941 by default, so that what was
    found at scores of 0.5 to 0.7 is lost. A scale above 0.5, as of `largest` 132, makes ghosts.
    """
    model = onnx.load(str(DETECTION_DEMO / "deployed.onnx"))
    (concat,) = (node for node in model.graph.node if OUTPUT in node.output)
    concat.output[0] = "joined"
    model.graph.initializer.extend(
        [
            numpy_helper.from_array(np.array(largest / 255, np.float32), "joined.scale"),
            numpy_helper.from_array(np.array(0, np.uint8), "joined.zero_point"),
        ]
    )
    model.graph.node.extend(
        helper.make_node(operator, [source, "joined.scale", "joined.zero_point"], [result])
        for operator, source, result in (
            ("QuantizeLinear", "joined", "joined.quantized"),
            ("DequantizeLinear", "joined.quantized", OUTPUT),
        )
    )
    onnx.checker.check_model(model, full_check=True)
    onnx.save_model(model, str(path))
    return path


def answers(path: Path, images: NDArray[np.uint8]) -> NDArray[np.float32]:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    pixels = images.transpose(0, 3, 1, 2) / np.float32(255)
    return np.concatenate([session.run(None, {"images": one[None]})[0] for one in pixels])


def decoded(output: NDArray[np.float32]) -> Boxes:
    """Boxes (left, top, right, bottom in pixels) and digits of a raw output, by falling score."""
    centre, size, scores = output[:2], output[2:4], output[4:]
    ltrb = np.concatenate([centre - size / 2, centre + size / 2]).T.astype(float)
    found: Boxes = []
    for cell in np.argsort(-scores.max(0), kind="stable"):
        digit = int(scores[:, cell].argmax())
        if scores[digit, cell] < CONFIDENCE:
            break
        if all(digit != other or iou(ltrb[cell], box) <= 0.45 for box, other in found):
            found.append((ltrb[cell], digit))
    return found


def iou(first: NDArray[np.float64], second: NDArray[np.float64]) -> float:
    width, height = np.minimum(first[2:], second[2:]) - np.maximum(first[:2], second[:2])
    common = max(width, 0) * max(height, 0)
    areas = [(box[2] - box[0]) * (box[3] - box[1]) for box in (first, second)]
    return float(common / (sum(areas) - common))

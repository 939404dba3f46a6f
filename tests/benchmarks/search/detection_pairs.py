"""The real detectors of the benchmarks: FastestDet and RFB-320, with decoders of a few lines.

Boxes and scores are computed here once more, apart from `edgeflare.models.detectors`.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import cv2
import numpy as np
import onnx
import onnxruntime
from numpy.typing import NDArray

from edgeflare.types import DetectionRules, Detections, Sample

Array = NDArray[np.float64]
LEAST_SHARE = 0.25
"""Candidates score at least this share of the confidence, as in `edgeflare.models.detectors`."""


class Detector(NamedTuple):
    """How a detector is run and read.

    `size`: width and height. `suppression`: the IoU from which of two boxes of a class only the
    better one stays.
    """

    size: tuple[int, int]
    confidence: float
    suppression: float
    prepare: Callable[[Sample], NDArray[np.float32]]
    decode: Callable[[Sequence[Array]], tuple[Array, NDArray[np.int64], Array]]


def _fastestdet_input(sample: Sample) -> NDArray[np.float32]:
    return (sample[..., ::-1].astype(np.float32) / 255.0).transpose(2, 0, 1)[None]


def _rfb_input(sample: Sample) -> NDArray[np.float32]:
    return ((sample.astype(np.float32) - 127.0) / 128.0).transpose(2, 0, 1)[None]


def _fastestdet_boxes(outputs: Sequence[Array]) -> tuple[Array, NDArray[np.int64], Array]:
    grid = outputs[0][0]
    side = grid.shape[-1]
    rows, columns = np.mgrid[:side, :side]
    centres = (columns + np.tanh(grid[1])) / side, (rows + np.tanh(grid[2])) / side
    halves = (0.5 / (1 + np.exp(-one)) for one in (grid[3], grid[4]))
    across, down = halves
    boxes = np.stack(
        [centres[0] - across, centres[1] - down, centres[0] + across, centres[1] + down], -1
    )
    scores = np.maximum(grid[0], 0) ** 0.6 * np.maximum(grid[5:].max(0), 0) ** 0.4
    return boxes.reshape(-1, 4), grid[5:].argmax(0).reshape(-1), scores.reshape(-1)


def _rfb_boxes(outputs: Sequence[Array]) -> tuple[Array, NDArray[np.int64], Array]:
    scores = next(one for one in outputs if one.shape[-1] == 2)[0, :, 1]
    boxes = next(one for one in outputs if one.shape[-1] == 4)[0]
    return boxes, np.zeros(len(scores), np.int64), scores


DETECTORS = {
    "fastestdet": Detector((352, 352), 0.65, 0.45, _fastestdet_input, _fastestdet_boxes),
    "rfb320": Detector((320, 240), 0.7, 0.3, _rfb_input, _rfb_boxes),
}


def suppressed(boxes: Array, labels: NDArray[np.int64], bound: float) -> list[int]:
    """Return the places that stay; the boxes are in the order of their scores."""
    sides = np.maximum(boxes[:, 2:] - boxes[:, :2], 0)
    areas = sides[:, 0] * sides[:, 1]
    least = np.maximum(boxes[:, None, :2], boxes[None, :, :2])
    most = np.minimum(boxes[:, None, 2:], boxes[None, :, 2:])
    shared = np.prod(np.maximum(most - least, 0), axis=2)
    iou = shared / np.maximum(areas[:, None] + areas[None] - shared, 1e-12)
    beats = (iou > bound) & (labels[:, None] == labels[None])
    kept: list[int] = []
    left = np.ones(len(boxes), bool)
    for place in range(len(boxes)):
        if left[place]:
            kept.append(place)
            left &= ~beats[place]
    return kept


def model(
    path: Path, detector: Detector, *, optimised: bool = True
) -> Callable[[Sample], Detections]:
    """Return a detector of one thread; not `optimised`: its graph is run as the file has it."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    if not optimised:
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    graph = onnx.load(path)
    weights = {one.name for one in graph.graph.initializer}
    inputs = [one for one in graph.graph.input if one.name not in weights]
    del graph.graph.input[:]  # as inputs too, weights would not be folded
    graph.graph.input.extend(inputs)
    session = onnxruntime.InferenceSession(
        graph.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    name = session.get_inputs()[0].name
    rules = DetectionRules(detector.confidence)

    def answer(sample: Sample) -> Detections:
        found: Any = session.run(None, {name: np.ascontiguousarray(detector.prepare(sample))})
        boxes, labels, scores = detector.decode([np.asarray(one, np.float64) for one in found])
        least = LEAST_SHARE * detector.confidence
        order = np.argsort(-scores, kind="stable")[: int((scores >= least).sum())]
        boxes, labels, scores = boxes[order], labels[order], scores[order]
        kept = suppressed(boxes, labels, detector.suppression)
        return Detections(boxes[kept], labels[kept].astype(np.int64), scores[kept], rules)

    return answer


def photographs(folder: Path, size: tuple[int, int]) -> list[tuple[str, Sample]]:
    """Return the photographs of a folder with their names, stretched to a size, RGB."""
    found = []
    for path in sorted(folder.iterdir()):
        pixels = cv2.imread(str(path), cv2.IMREAD_COLOR)
        if pixels is not None:
            resized = cv2.resize(pixels, size, interpolation=cv2.INTER_LINEAR)
            found.append((path.stem, np.ascontiguousarray(resized[..., ::-1])))
    return found

"""The real detectors of the benchmarks: FastestDet and RFB-320, and photographs of their size."""

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import cv2
import numpy as np
import onnx
import onnxruntime
from numpy.typing import NDArray

from edgeflare.models import DetectionReader, TensorInfo, complete_options, infer_format
from edgeflare.types import DetectionRules, Detections, Sample


class Detector(NamedTuple):
    """How a detector is run and read. `size`: width and height; `nms`: the IoU of suppression."""

    size: tuple[int, int]
    confidence: float
    nms: float
    prepare: Callable[[Sample], NDArray[np.float32]]


def _fastestdet_input(sample: Sample) -> NDArray[np.float32]:
    scaled: NDArray[np.float32] = sample[..., ::-1].astype(np.float32) / np.float32(255)
    return np.ascontiguousarray(scaled.transpose(2, 0, 1)[None])


def _rfb_input(sample: Sample) -> NDArray[np.float32]:
    scaled: NDArray[np.float32] = (sample.astype(np.float32) - 127) / np.float32(128)
    return np.ascontiguousarray(scaled.transpose(2, 0, 1)[None])


DETECTORS = {
    "fastestdet": Detector((352, 352), 0.65, 0.45, _fastestdet_input),
    "rfb320": Detector((320, 240), 0.7, 0.3, _rfb_input),
}


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
    tensors = tuple(
        TensorInfo(one.name, tuple(one.shape), "float32") for one in session.get_outputs()
    )
    size = detector.size[::-1]
    found = infer_format(tensors, size, {})
    assert found is not None
    rules = DetectionRules(detector.confidence)
    made: list[DetectionReader] = []

    def answer(sample: Sample) -> Detections:
        raws = tuple(session.run(None, {name: detector.prepare(sample)}))
        if not made:
            chosen = complete_options(found.options, tensors, size, [raws])
            made.append(DetectionReader(tensors, chosen, size, rules, detector.nms))
        return made[0].read(raws)

    return answer


CROPPED = 0.7
"""The share of each side that a crop has."""


def photographs(
    folder: Path, size: tuple[int, int], *, cropped: bool = False
) -> list[tuple[str, Sample]]:
    """Return the photographs of a folder with their names, stretched to a size, RGB.

    `cropped`: in place of each its upper left and its lower right part.
    """
    found = []
    for path in sorted(folder.iterdir()):
        pixels = cv2.imread(str(path), cv2.IMREAD_COLOR)
        if pixels is None:
            continue
        height, width = (round(CROPPED * side) for side in pixels.shape[:2])
        parts = {"": pixels}
        if cropped:
            parts = {
                " upper left": pixels[:height, :width],
                " lower right": pixels[-height:, -width:],
            }
        for name, part in parts.items():
            resized = cv2.resize(part, size, interpolation=cv2.INTER_LINEAR)
            found.append((path.stem + name, np.ascontiguousarray(resized[..., ::-1])))
    return found

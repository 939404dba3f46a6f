"""The real detectors of the shared data, and FastestDet with its output in other formats.

A format is made by appending nodes to the model, float or quantised, which decode its grid as
`edgeflare.answers.detections.formats` does. Each such model has the outputs of the format alone.
"""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import onnx
import onnxruntime as ort
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

from edgeflare_agent.image_spec import TensorInfo

GRID, CLASSES, SIDE = 22, 80, 352
ANCHORS = GRID * GRID
OBJECTS = 300
FASTESTDET_NMS, FASTESTDET_CONFIDENCE = 0.45, 0.65
RFB_NMS, RFB_CONFIDENCE = 0.3, 0.7


def detector_path(shared_data: Path, name: str) -> Path:
    """Return a detector's file, such as that of "fastestdet_int8_perchannel"."""
    return shared_data / "models" / "detection" / f"{name}.onnx"


def photographs(shared_data: Path) -> list[NDArray[np.uint8]]:
    """Return the 36 photographs, uint8 [height, width, BGR], in the order of their names."""
    files = sorted((shared_data / "images" / "photos_detection").iterdir())
    return [np.asarray(cv2.imread(str(file)), np.uint8) for file in files]


def fastestdet_input(photograph: NDArray[np.uint8]) -> NDArray[np.float32]:
    """Return what FastestDet takes: stretched, BGR, 0 to 1, float32 [1, 3, 352, 352]."""
    sized = cv2.resize(photograph, (SIDE, SIDE)).astype(np.float32)
    return np.asarray((sized / np.float32(255)).transpose(2, 0, 1)[None])


def rfb_input(photograph: NDArray[np.uint8]) -> NDArray[np.float32]:
    """Return what RFB-320 takes: stretched, RGB, (x - 127) / 128, float32 [1, 3, 240, 320]."""
    sized = cv2.cvtColor(cv2.resize(photograph, (320, 240)), cv2.COLOR_BGR2RGB)
    scaled = (sized.astype(np.float32) - 127) / np.float32(128)
    return np.asarray(scaled.transpose(2, 0, 1)[None])


class RawModel:
    """A model whose raw outputs are asked for, with one thread."""

    def __init__(self, model: Path | onnx.ModelProto) -> None:
        options = ort.SessionOptions()
        options.intra_op_num_threads = 1
        options.log_severity_level = 3
        source = str(model) if isinstance(model, Path) else model.SerializeToString()
        self._session = ort.InferenceSession(source, options, ["CPUExecutionProvider"])
        self.outputs = tuple(
            TensorInfo(one.name, tuple(one.shape), "float32") for one in self._session.get_outputs()
        )

    def run(self, value: NDArray[np.float32]) -> list[NDArray[Any]]:
        return list(self._session.run(None, {self._session.get_inputs()[0].name: value}))


class _Graph:
    """Nodes that are appended to a model, each with one output."""

    def __init__(self, model: onnx.ModelProto) -> None:
        self.model = onnx.ModelProto()
        self.model.CopyFrom(model)
        self.graph = self.model.graph
        self._count = 0

    def constant(self, value: Any, dtype: Any = np.float32) -> str:
        name = self._name()
        self.graph.initializer.append(numpy_helper.from_array(np.asarray(value, dtype), name))
        return name

    def add(self, kind: str, *inputs: str, name: str = "", **attributes: Any) -> str:
        output = name or self._name()
        self.graph.node.append(helper.make_node(kind, inputs, [output], **attributes))
        return output

    def take(self, value: str, rows: Sequence[int] | int, axis: int) -> str:
        return self.add("Gather", value, self.constant(rows, np.int64), axis=axis)

    def end(self, outputs: Mapping[str, Sequence[int]]) -> onnx.ModelProto:
        """Return the model with these outputs alone, by their shapes."""
        del self.graph.output[:]
        self.graph.output.extend(
            helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)
            for name, shape in outputs.items()
        )
        onnx.checker.check_model(self.model)
        return self.model

    def _name(self) -> str:
        self._count += 1
        return f"appended_{self._count}"


class _Decoded:
    """FastestDet's grid as shares of the image: centre boxes [1, 4, N], factors of the scores."""

    def __init__(self, model: onnx.ModelProto) -> None:
        self.nodes = add = _Graph(model)
        raw = add.add(
            "Reshape",
            add.graph.output[0].name,
            add.constant([1, 5 + CLASSES, ANCHORS], np.int64),
        )
        self.objectness = add.add("Pow", add.take(raw, [0], 1), add.constant(0.6))
        self.classes = add.add("Pow", add.take(raw, range(5, 5 + CLASSES), 1), add.constant(0.4))
        cells = np.stack([np.tile(np.arange(GRID), GRID), np.repeat(np.arange(GRID), GRID)])
        offset = add.add("Tanh", add.take(raw, [1, 2], 1))
        shifted = add.add("Add", offset, add.constant(cells[None]))
        self.centre = add.add("Div", shifted, add.constant(GRID))
        self.sides = add.add("Sigmoid", add.take(raw, [3, 4], 1))
        self.scores = add.add("Mul", self.objectness, self.classes)

    def corners(self, order: Sequence[int] = (0, 1, 2, 3)) -> str:
        """Return left, top, right, bottom [1, N, 4] in another order."""
        add = self.nodes
        half = add.add("Div", self.sides, add.constant(2))
        both = add.add("Sub", self.centre, half), add.add("Add", self.centre, half)
        boxes = add.take(add.add("Concat", *both, axis=1), order, 1)
        return add.add("Transpose", boxes, perm=[0, 2, 1])

    def centres(self, scale: float) -> str:
        """Return centre, width and height [1, 4, N] times a number."""
        add = self.nodes
        boxes = add.add("Concat", self.centre, self.sides, axis=1)
        return add.add("Mul", boxes, add.constant(scale))

    def objects(self) -> tuple[str, str, str, str]:
        """Return the best 300 after suppression: boxes, classes, scores and their number.

        Corners [1, 300, 4] as shares, [1, 300] each, [1]. Objects that lack are zeros.
        """
        add = self.nodes
        best = add.add("ReduceMax", self.scores, axes=[1], keepdims=1)
        is_best = add.add("Cast", add.add("Equal", self.scores, best), to=TensorProto.FLOAT)
        alone = add.add("Mul", self.scores, is_best)
        corners = self.corners()
        chosen = add.add(
            "NonMaxSuppression", corners, alone, add.constant(OBJECTS, np.int64),
            add.constant(FASTESTDET_NMS), add.constant(FASTESTDET_CONFIDENCE / 4),
        )  # fmt: skip
        classes, places = add.take(chosen, 1, 1), add.take(chosen, 2, 1)
        pairs = add.take(chosen, [1, 2], 1)
        scores = add.add("GatherND", add.add("Squeeze", alone, add.constant([0], np.int64)), pairs)
        boxes = add.add("Gather", add.add("Squeeze", corners, add.constant([0], np.int64)), places)
        labels = add.add("Cast", classes, to=TensorProto.FLOAT)
        column = add.constant([1], np.int64)
        rows = add.add(
            "Concat",
            boxes,
            add.add("Unsqueeze", scores, column),
            add.add("Unsqueeze", labels, column),
            axis=1,
        )
        padded = add.add("Concat", rows, add.constant(np.zeros((OBJECTS, 6))), axis=0)
        order = add._name()
        add.graph.node.append(
            helper.make_node(
                "TopK",
                [add.take(padded, 4, 1), add.constant([OBJECTS], np.int64)],
                [add._name(), order],
            )
        )
        rows = add.add(
            "Unsqueeze", add.add("Gather", padded, order, axis=0), add.constant([0], np.int64)
        )
        count = add.add(
            "Cast",
            add.take(add.add("Shape", scores), [0], 0),
            to=TensorProto.FLOAT,
        )
        limited = add.add("Min", count, add.constant([OBJECTS]))
        return (
            add.take(rows, [0, 1, 2, 3], 2),
            add.take(rows, 5, 2),
            add.take(rows, 4, 2),
            limited,
        )


def as_yolo(
    model: onnx.ModelProto, *, pixels: bool = True, last: bool = False, step: float | None = None
) -> onnx.ModelProto:
    """Return FastestDet with the output of YOLOv8: [1, 84, 484], with `last` [1, 484, 84].

    `pixels`: boxes are in pixels, else in shares. `step`: the output is quantised to 8 bits with
    this scale and zero point 0, boxes and scores alike, which is the usual fault of such heads.
    """
    parts = _Decoded(model)
    boxes = parts.centres(SIDE if pixels else 1)
    add = parts.nodes
    output = add.add("Concat", boxes, parts.scores, axis=1)
    if last:
        output = add.add("Transpose", output, perm=[0, 2, 1])
    if step is not None:
        numbers = add.constant(step), add.constant(0, np.uint8)
        output = add.add("DequantizeLinear", add.add("QuantizeLinear", output, *numbers), *numbers)
    add.add("Identity", output, name="output0")
    return add.end({"output0": (1, ANCHORS, 84) if last else (1, 84, ANCHORS)})


def as_yolo_objectness(model: onnx.ModelProto) -> onnx.ModelProto:
    """Return FastestDet with the output of YOLOv5: [1, 484, 85], boxes in pixels."""
    parts = _Decoded(model)
    boxes = parts.centres(SIDE)
    add = parts.nodes
    joined = add.add("Concat", boxes, parts.objectness, parts.classes, axis=1)
    add.add("Transpose", joined, perm=[0, 2, 1], name="output0")
    return add.end({"output0": (1, ANCHORS, 85)})


def as_end_to_end(model: onnx.ModelProto) -> onnx.ModelProto:
    """Return FastestDet with the output of YOLO26: [1, 300, 6], boxes in pixels."""
    parts = _Decoded(model)
    boxes, classes, scores, _ = parts.objects()
    add = parts.nodes
    column = add.constant([2], np.int64)
    add.add(
        "Concat", add.add("Mul", boxes, add.constant(SIDE)), add.add("Unsqueeze", scores, column),
        add.add("Unsqueeze", classes, column), axis=2, name="output0",
    )  # fmt: skip
    return add.end({"output0": (1, OBJECTS, 6)})


SSD_NAMES = {
    "scores": "StatefulPartitionedCall:0",
    "boxes": "StatefulPartitionedCall:1",
    "count": "StatefulPartitionedCall:2",
    "classes": "StatefulPartitionedCall:3",
}


def as_ssd(model: onnx.ModelProto, names: Mapping[str, str] = SSD_NAMES) -> onnx.ModelProto:
    """Return FastestDet with the four outputs of SSD's post-processing, in the order of `names`."""
    parts = _Decoded(model)
    boxes, classes, scores, count = parts.objects()
    add = parts.nodes
    made = {
        "boxes": add.take(boxes, [1, 0, 3, 2], 2),
        "classes": classes,
        "scores": scores,
        "count": count,
    }
    shapes = {"boxes": (1, OBJECTS, 4), "count": (1,)}
    for part, name in names.items():
        add.add("Identity", made[part], name=name)
    return add.end({name: shapes.get(part, (1, OBJECTS)) for part, name in names.items()})


def as_ssd_raw(model: onnx.ModelProto) -> onnx.ModelProto:
    """Return FastestDet with scores [1, 484, 80] and boxes [1, 484, 4], corners as shares."""
    parts = _Decoded(model)
    boxes = parts.corners()
    add = parts.nodes
    add.add("Identity", boxes, name="boxes")
    add.add("Transpose", parts.scores, perm=[0, 2, 1], name="scores")
    return add.end({"boxes": (1, ANCHORS, 4), "scores": (1, ANCHORS, CLASSES)})


FORMATS: Mapping[str, Callable[[onnx.ModelProto], onnx.ModelProto]] = {
    "yolo": as_yolo,
    "yolo-objectness": as_yolo_objectness,
    "end-to-end": as_end_to_end,
    "ssd": as_ssd,
    "ssd-raw": as_ssd_raw,
}
"""How FastestDet gets the output of each format, by the name of its kind."""

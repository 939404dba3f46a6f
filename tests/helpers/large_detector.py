"""A detector of random weights with inputs of 640 x 640: its cost is that of a small YOLO, its answers mean nothing."""

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

SIZE, CLASSES = 640, 80
_WIDTHS = (32, 64, 128, 256, 512)
_STRIDES = (8, 16, 32)


class _Graph:
    """Nodes and weights so far; each method adds an operator and returns the name of its output."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.nodes: list[onnx.NodeProto] = []
        self.weights: list[onnx.TensorProto] = []

    def constant(self, values: np.ndarray) -> str:
        name = f"w{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(values, name))
        return name

    def add(self, kind: str, *inputs: str, **attributes: object) -> str:
        name = f"{kind.lower()}{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, [*inputs], [name], name, **attributes))
        return name

    def conv(self, source: str, ins: int, outs: int, size: int = 3, stride: int = 1) -> str:
        shape = outs, ins, size, size
        kernel = self.rng.normal(0, 1.6 / (ins * size * size) ** 0.5, shape).astype(np.float32)
        bias = self.rng.normal(0, 0.1, outs).astype(np.float32)
        if outs == 4 + CLASSES:  # so that few cells have a score above one half
            kernel[4:], bias[4:] = 8 * kernel[4:], bias[4:] - 6
        steps = {"strides": [stride] * 2, "pads": [size // 2] * 4}
        return self.add("Conv", source, self.constant(kernel), self.constant(bias), **steps)

    def block(self, source: str, ins: int, outs: int, size: int = 3, stride: int = 1) -> str:
        """A convolution with SiLU behind it."""
        computed = self.conv(source, ins, outs, size, stride)
        return self.add("Mul", computed, self.add("Sigmoid", computed))

    def stage(self, source: str, ins: int, outs: int) -> str:
        """Two branches, one of them with a residual bottleneck, joined."""
        half = outs // 2
        first, second = (self.block(source, ins, half, 1) for _ in range(2))
        deeper = self.block(self.block(second, half, half), half, half)
        joined = self.add("Concat", first, self.add("Add", second, deeper), axis=1)
        return self.block(joined, outs, outs, 1)

    def upsampled(self, source: str) -> str:
        scales = self.constant(np.float32([1, 1, 2, 2]))
        return self.add("Resize", source, "", scales, mode="nearest")


def large_detector(seed: int = 0) -> onnx.ModelProto:
    """Backbone, two levels of a neck, three heads: image [1, 3, 640, 640], output [1, 84, 8400].

    The output has centre, width and height in pixels, then 80 scores, as YOLOv8's.
    """
    graph = _Graph(seed)
    source, ins = "image", 3
    levels = []
    for outs in _WIDTHS:
        source = graph.block(source, ins, outs, stride=2)
        if outs > _WIDTHS[0]:
            source = graph.stage(source, outs, outs)
        levels.append(source)
        ins = outs
    _, _, small, middle, large = levels
    middle = graph.add("Concat", graph.upsampled(large), middle, axis=1)
    middle = graph.stage(middle, 512 + 256, 256)
    small = graph.add("Concat", graph.upsampled(middle), small, axis=1)
    small = graph.stage(small, 256 + 128, 128)
    heads = []
    for name, width, stride in zip((small, middle, large), (128, 256, 512), _STRIDES, strict=True):
        deep = graph.conv(graph.block(name, width, 64), 64, 4 + CLASSES, 1)
        cells = SIZE // stride
        flat = graph.add("Reshape", deep, graph.constant(np.int64([1, 4 + CLASSES, cells**2])))
        heads.append(graph.add("Sigmoid", flat))
    joined = graph.add("Concat", *heads, axis=2)
    parts = graph.constant(np.int64([2, 2, CLASSES]))
    graph.nodes.append(helper.make_node("Split", [joined, parts], ["at", "size", "scores"], axis=1))
    strides = np.concatenate([np.full((SIZE // s) ** 2, s) for s in _STRIDES])
    cells = [np.indices((SIZE // s,) * 2)[::-1].reshape(2, -1) for s in _STRIDES]
    centres = np.concatenate(cells, axis=1)[None] * strides
    at = graph.add("Mul", "at", graph.constant(strides.astype(np.float32)))
    at = graph.add("Add", at, graph.constant(centres.astype(np.float32)))
    size = graph.add("Mul", "size", graph.constant((4 * strides).astype(np.float32)))
    graph.nodes.append(helper.make_node("Concat", [at, size, "scores"], ["output0"], axis=1))
    shapes = ("image", [1, 3, SIZE, SIZE]), ("output0", [1, 4 + CLASSES, 8400])
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, of) for name, of in shapes]
    made = helper.make_graph(graph.nodes, "detector", ends[:1], ends[1:], graph.weights)
    return helper.make_model(made, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)

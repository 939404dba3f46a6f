"""Versions of the demo's original in which one cause of deviations is planted."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import onnx
from command import DEMO
from onnx import helper, numpy_helper
from onnxruntime.quantization import (
    CalibrationDataReader,
    QuantFormat,
    QuantType,
    quantize_static,
)

FLOAT = DEMO / "original.onnx"


def coarse(path: Path, layer: int, *, integers: bool = True) -> Path:
    """Write the original with the weights of one layer rounded to five values.

    They are integers and a scale, or else floats, as a converter's mistake might make them.
    """
    model = onnx.load(str(FLOAT))
    weights = [one for one in model.graph.initializer if len(one.dims) > 1][layer]
    values = numpy_helper.to_array(weights)
    step = np.abs(values).max() / 2
    rounded = np.round(values / step).astype(np.int8)
    if integers:
        name = f"{weights.name}_rounded"
        model.graph.initializer.append(numpy_helper.from_array(np.float32(step), f"{name}_scale"))
        model.graph.node.insert(
            0, helper.make_node("DequantizeLinear", [name, f"{name}_scale"], [weights.name])
        )
        weights.CopyFrom(numpy_helper.from_array(rounded, name))
    else:
        weights.CopyFrom(numpy_helper.from_array(rounded * np.float32(step), weights.name))
    onnx.save(model, str(path))
    return path


class Digits(CalibrationDataReader):  # type: ignore[misc]
    """The demo's images, for quantisation."""

    def __init__(self, name: str) -> None:
        self._images: Iterator[np.ndarray] = iter(np.load(DEMO / "seeds.npz")["images"][:50])
        self._name = name

    def get_next(self) -> dict[str, np.ndarray] | None:
        image = next(self._images, None)
        if image is None:
            return None
        return {self._name: (image.reshape(1, 1, 28, 28) / 255).astype(np.float32)}


def quantised(
    path: Path,
    source: Path = FLOAT,
    activations: QuantType = QuantType.QUInt8,
    form: QuantFormat = QuantFormat.QDQ,
) -> Path:
    """Write an ONNX model, the original by default, with activations and signed weights of 8 bits."""
    name = onnx.load(str(source)).graph.input[0].name
    kinds = {"activation_type": activations, "weight_type": QuantType.QInt8}
    quantize_static(str(source), str(path), Digits(name), quant_format=form, **kinds)
    return path

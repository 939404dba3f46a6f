"""Copies of the demo's original that decide worse the more they are damaged."""

from pathlib import Path

import numpy as np
import onnx
from command import DEMO
from onnx import numpy_helper


def damaged_onnx(path: Path, damage: float) -> Path:
    """Write the demo's original with noise on its weights, `damage` times as large as each tensor's own spread."""
    model = onnx.load(DEMO / "original.onnx")
    rng = np.random.default_rng(0)
    for tensor in model.graph.initializer:
        weights = numpy_helper.to_array(tensor)
        if weights.dtype == np.float32 and weights.size > 1:
            noise = rng.normal(size=weights.shape) * weights.std() * damage
            worse = (weights + noise).astype(np.float32)
            tensor.CopyFrom(numpy_helper.from_array(worse, tensor.name))
    onnx.save(model, path)
    return path

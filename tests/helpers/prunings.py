"""Deployed models with a known order of damage: an original's smallest weights set to 0, by magnitude."""

from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, numpy_helper


def prune(model: Path, out: Path, share: float) -> Path:
    """Write `model` with this share of its convolution and dense weights set to 0, the smallest ones."""
    graph = onnx.load_model(model)
    tensors = [
        one
        for one in graph.graph.initializer
        if one.data_type == TensorProto.FLOAT and len(one.dims) >= 2
    ]
    sizes = np.concatenate([np.abs(numpy_helper.to_array(one)).ravel() for one in tensors])
    least = np.quantile(sizes, share)
    for one in tensors:
        weights = numpy_helper.to_array(one).copy()
        weights[np.abs(weights) < least] = 0
        one.CopyFrom(numpy_helper.from_array(weights, one.name))
    out.write_bytes(graph.SerializeToString(deterministic=True))
    return out

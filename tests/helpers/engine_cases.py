"""Models and calibration data for tests of TensorRT."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from onnx import TensorProto, helper
from small_models import flat_weights, save_onnx

from edgeflare_agent.cache import file_sha256
from edgeflare_agent.runtimes import Runtime

ModelFile = Callable[[str, str], str]
Load = Callable[..., Runtime]

VERSIONS = ["8.2.1", "8.4.1", "8.5.2", "8.6.1", "10.3.0", "11.0.0"]
"""One of each generation of the API."""
WEAKLY_TYPED = VERSIONS[:-1]
"""Those that take the precision as a flag."""


def images(count: int = 1, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).random((count, 8, 8, 1), dtype=np.float32)


def engines(tmp_path: Path) -> list[Path]:
    return sorted((tmp_path / "cache" / "engines").glob("*.engine"))


def calibration_name(tmp_path: Path, tensors: np.ndarray) -> str:
    """Put tensors where the host uploads them; return the name."""
    folder = tmp_path / "cache" / "models"
    folder.mkdir(parents=True, exist_ok=True)
    np.save(folder / "new.npy", tensors)
    name = file_sha256(str(folder / "new.npy")) + ".npy"
    (folder / "new.npy").rename(folder / name)
    return name


def quantized_model(path: Path) -> Path:
    """float -> quantise -> de-quantise (zero point 0) -> dense."""
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "step", "zero"], ["stored"]),
        helper.make_node("DequantizeLinear", ["stored", "step", "zero"], ["real"]),
        helper.make_node("MatMul", ["real", "w"], ["y"]),
    ]
    return save_onnx(
        path,
        nodes,
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 64])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 4])],
        {"w": flat_weights(), "step": np.float32(0.25), "zero": np.int8(0)},
    )


def dense_model(path: Path, shape: list[Any]) -> Path:
    return save_onnx(
        path,
        [helper.make_node("MatMul", ["x", "w"], ["y"])],
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [*shape[:-1], 4])],
        {"w": flat_weights()},
    )

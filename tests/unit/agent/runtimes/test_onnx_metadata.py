"""An ONNX file's metadata, read as the library would."""

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from small_models import save_onnx

from edgeflare_agent.errors import ModelError
from edgeflare_agent.runtimes.tensorrt_build import read_metadata


def saved(path: Path, metadata: dict[str, str]) -> Path:
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, 4]) for name in "xy"]
    nodes = [helper.make_node("Add", ["x", "w"], ["y"])]
    weights = {"w": np.arange(4, dtype=np.float32)[np.newaxis]}
    return save_onnx(path, nodes, values[:1], values[1:], weights, metadata)


@pytest.mark.parametrize(
    "metadata", [{}, {"a": "b"}, {"edgeflare.input": '{"size": [8, 8]}', "ü": "z" * 70_000, "": ""}]
)
def test_all_entries_are_read(tmp_path: Path, metadata: dict[str, str]) -> None:
    path = saved(tmp_path / "m.onnx", metadata)
    assert read_metadata(str(path)) == metadata
    assert metadata == {one.key: one.value for one in onnx.load(path).metadata_props}


@pytest.mark.parametrize("content", [b"text, no model", b"\xff" * 40, b"\x3a\xff\x01", b"\x08"])
def test_a_file_of_something_else_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "m.onnx").write_bytes(content)
    with pytest.raises(ModelError, match=r"m.onnx"):
        read_metadata(str(tmp_path / "m.onnx"))

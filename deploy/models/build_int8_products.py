"""Writes `assets/checks/int8_products.onnx`: 64 products of an unsigned and a signed byte, summed as integers."""

from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

FILE = Path(__file__).resolve().parents[2] / "host/edgeflare/assets/checks/int8_products.onnx"
TERMS, COLUMNS = 64, 16
"""Enough for the kernels that processors have for large matrices."""


def main() -> None:
    """Write the file."""
    weights = numpy_helper.from_array(np.full((TERMS, COLUMNS), 127, np.int8), "weights")
    node = helper.make_node("MatMulInteger", ["levels", "weights"], ["sums"])
    given = helper.make_tensor_value_info("levels", TensorProto.UINT8, [1, TERMS])
    sums = helper.make_tensor_value_info("sums", TensorProto.INT32, [1, COLUMNS])
    graph = helper.make_graph([node], "int8_products", [given], [sums], [weights])
    opset = helper.make_opsetid("", 13)
    model = helper.make_model(graph, opset_imports=[opset], ir_version=7)
    onnx.checker.check_model(model)
    FILE.parent.mkdir(exist_ok=True)
    FILE.write_bytes(model.SerializeToString())


if __name__ == "__main__":
    main()

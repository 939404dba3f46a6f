"""A repair as an ONNX model, for applications that run their models by ONNX Runtime."""

from typing import Any

import numpy as np

from edgeflare._internal.extras import onnx as onnx_library
from edgeflare_agent.repair import Repair

_OPSET = 17
_IR = 8


def onnx_stage(repair: Repair) -> bytes:
    """Return an ONNX model of a repair: ``probabilities`` float64 [1, size] -> ``repaired``.

    It does to the probabilities of one input what `Repair.of_scores` does. An abstention is the same
    probability for each class. Raises UsageError where onnx is missing.
    """
    onnx = onnx_library()
    helper, tensors = onnx.helper, onnx.TensorProto
    nodes: list[Any] = []
    constants: dict[str, Any] = {}

    def node(kind: str, *inputs: str, to: str, **attributes: Any) -> str:
        nodes.append(helper.make_node(kind, inputs, [to], **attributes))
        return to

    def constant(name: str, values: Any, dtype: Any = np.float64) -> str:
        constants[name] = np.asarray(values, dtype)
        return name

    given = "probabilities"
    conditions = []
    if repair.below is not None:
        nodes.append(
            helper.make_node("TopK", [given, constant("two", [2], np.int64)], ["top", "places"])
        )
        signs = constant("signs", [[1.0], [-1.0]])
        margin = node("MatMul", "top", signs, to="margin")
        conditions.append(node("Less", margin, constant("below", repair.below), to="is_unsure"))
    if repair.layers:
        centred = node("Sub", given, constant("mean", repair.mean), to="centred")
        values = node("Div", centred, constant("std", repair.std), to="standardised")
        for place, (weights, bias) in enumerate(repair.layers):
            if place:
                values = node("Relu", values, to=f"hidden_{place}")
            product = node(
                "MatMul", values, constant(f"weights_{place}", weights), to=f"product_{place}"
            )
            values = node("Add", product, constant(f"bias_{place}", bias), to=f"sum_{place}")
        shares = node("Softmax", values, to="shares", axis=-1)
        none = node("Concat", shares, constant("none", [[0.0]]), to="shares_and_none", axis=1)
        places = np.full(repair.size, len(repair.classes))
        places[repair.classes] = np.arange(len(repair.classes))
        classes = constant("classes", places, np.int64)
        made = node("Gather", none, classes, to="made", axis=1)
        if repair.sure is not None:
            own = node("ArgMax", given, to="own", axis=-1, keepdims=1)
            of_own = node("GatherElements", made, own, to="share_of_own", axis=1)
            largest = node("ReduceMax", made, to="largest", axes=[-1], keepdims=1)
            lead = node("Sub", largest, of_own, to="lead")
            conditions.append(node("Greater", lead, constant("sure", repair.sure), to="is_sure"))
    else:
        made = constant("abstention", np.full((1, repair.size), 1.0 / repair.size))
    if not conditions:
        node("Identity", made, to="repaired")
    else:
        condition = conditions[0]
        if len(conditions) > 1:
            condition = node("And", *conditions, to="is_replaced")
        node("Where", condition, made, given, to="repaired")
    shape = [1, repair.size]
    graph = helper.make_graph(
        nodes,
        "repair",
        [helper.make_tensor_value_info(given, tensors.DOUBLE, shape)],
        [helper.make_tensor_value_info("repaired", tensors.DOUBLE, shape)],
        [onnx.numpy_helper.from_array(one, name) for name, one in constants.items()],
    )
    opset = helper.make_opsetid("", _OPSET)
    model = helper.make_model(graph, opset_imports=[opset], ir_version=_IR)
    return bytes(model.SerializeToString(deterministic=True))

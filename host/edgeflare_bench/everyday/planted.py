"""A planted fault, and how a model is deployed with it."""

import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from threading import Lock
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from edgeflare.models.quantized import Recipe, quantized
from edgeflare_bench.everyday.records import EverydayOriginal
from edgeflare_bench.faults.graph_edit import Inapplicable

Chain: TypeAlias = Literal["float32", "float16", "int8", "int8-tensor", "tflite", "tflite-int8"]
"""How a model is deployed: as it is, in half precision, or in int8 with weights on a scale for each
channel or on one; as TFLite files by `TFLITE`, of which only the use can be faulty."""
TFLITE: Mapping[str, str] = {"tflite": "onnx2tf/float32", "tflite-int8": "tensorflow/full-int8-0"}
"""The tool chain and variant of healthy TFLite files."""
CALIBRATED_ON = 32
_QUANTISING = Lock()


@dataclass(frozen=True)
class Planted:
    """What a fault makes of an original: what departs from the healthy pair of the same chain.

    `deployed`: the ONNX model that is deployed; None: as the chain makes it. `original`: what stands for the
    original; None: itself. `names`: where the fault is, whatever it may be called by; (): nowhere.
    `original_input` and `deployed_input`: what is stated instead; `labels`: those that are given.
    `device`: how the device departs from what is stated, see `evaluation`; {}: no device is asked.
    `change`: what becomes of the healthy file instead. `sides`: of a preprocessing; (): of none.
    """

    deployed: Any = None
    original: Any = None
    names: tuple[str, ...] = ()
    original_input: Mapping[str, str] | None = None
    deployed_input: Mapping[str, str] | None = None
    labels: Sequence[int] | None = None
    device: Mapping[str, Any] = field(default_factory=dict)
    sides: tuple[str, ...] = ()
    change: Callable[[bytes], bytes] | None = None


Plant: TypeAlias = Callable[[EverydayOriginal, Chain, np.random.Generator], Planted]
"""Plants a fault in an original that a chain deploys. Raises Inapplicable where that can't be."""


def deployed_as(model: Any, chain: Chain, calibration: NDArray[np.float32]) -> Any:
    """Return a model as a tool chain deploys it. Raises Inapplicable where that can't be done."""
    if chain == "float32":
        return model
    if chain in TFLITE:
        raise Inapplicable("graphs are changed as ONNX files")
    if chain == "float16":
        return in_half_precision(model)
    if len(model.graph.input) > 1:
        raise Inapplicable("the model has several inputs")
    recipe = Recipe(chain, per_channel=chain == "int8")
    inputs = [values[None] for values in calibration[:CALIBRATED_ON]]
    root = logging.getLogger()
    with _QUANTISING:  # one at a time: the logger's level is the program's
        level = root.level
        root.setLevel(logging.ERROR)  # the quantiser warns of weights that it leaves in float
        try:
            return quantized(model, recipe, inputs)
        finally:
            root.setLevel(level)


def in_half_precision(model: Any, in_float: Collection[str] = ()) -> Any:
    """Return a model that computes in half precision; its inputs and outputs are float32.

    Operators `in_float`, by their names or those of what they make, stay as they are.
    """
    import onnx
    from onnxruntime.transformers.float16 import convert_float_to_float16

    copy = onnx.ModelProto.FromString(model.SerializeToString())
    kept = [node for node in copy.graph.node if {node.name, *node.output} & set(in_float)]
    for number, node in enumerate(kept):
        node.name = node.name or f"kept {number}"
    blocked = {"node_block_list": [node.name for node in kept]} if kept else {}
    return convert_float_to_float16(copy, keep_io_types=True, **blocked)

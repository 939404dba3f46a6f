"""Every kind of fault, and the model that has it."""

from typing import Any

from edgeflare.bench.faults.activation_faults import ACTIVATION_FAULTS
from edgeflare.bench.faults.graph_edit import GraphEdit
from edgeflare.bench.faults.input_faults import INPUT_FAULTS
from edgeflare.bench.faults.originals import Original
from edgeflare.bench.faults.parameters import Inapplicable, Parameters
from edgeflare.errors import UsageError

__all__ = ["KINDS", "Inapplicable", "Parameters", "faulty_model"]

KINDS = {**ACTIVATION_FAULTS, **INPUT_FAULTS}
"""Kinds by name; each changes a graph in place by its parameters."""


def faulty_model(original: Original, kind: str, parameters: Parameters) -> Any:
    """Return a copy of the original's ONNX model with a fault planted; nothing else differs.

    Raises UsageError for an unknown kind, Inapplicable where the model has nothing that it could
    befall (no padding, no recurrent layer, no colours).
    """
    if kind not in KINDS:
        raise UsageError(f"there is no kind of fault {kind!r}; there are {', '.join(KINDS)}")
    edit = GraphEdit(original.model)
    KINDS[kind](original, edit, parameters)
    return edit.finish()

"""The original model on the host, and what both models' files and the user say of inputs and outputs."""

from edgeflare.models.input_options import InputOptions, Pixels, resolve_input
from edgeflare.models.labels import check_index, has_one_value, is_index
from edgeflare.models.original import OriginalModel
from edgeflare.models.outputs import (
    OutputKind,
    OutputReader,
    detect_kind,
    largest_sum_error,
    output_classes,
)
from edgeflare_agent.preprocess import prepare
from edgeflare_agent.spec import InputSpec, TensorInfo

__all__ = [
    "InputOptions",
    "InputSpec",
    "OriginalModel",
    "OutputKind",
    "OutputReader",
    "Pixels",
    "TensorInfo",
    "check_index",
    "detect_kind",
    "has_one_value",
    "is_index",
    "largest_sum_error",
    "output_classes",
    "prepare",
    "resolve_input",
]

"""Models as graphs: their tensors can be read, and they can be started in the middle."""

from edgeflare.models.tensors.graph import (
    ROUNDING,
    Grid,
    ModelGraph,
    Probe,
    Probed,
    UnitActivations,
)
from edgeflare.models.tensors.layers import default_layers, penultimate_layer, pre_activation_layers
from edgeflare.models.tensors.number_formats import is_float_file
from edgeflare.models.tensors.open import KERNELS, open_graph, plainest_kernels

__all__ = [
    "KERNELS",
    "ROUNDING",
    "Grid",
    "ModelGraph",
    "Probe",
    "Probed",
    "UnitActivations",
    "default_layers",
    "is_float_file",
    "open_graph",
    "penultimate_layer",
    "plainest_kernels",
    "pre_activation_layers",
]

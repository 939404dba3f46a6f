"""Models as graphs: their tensors can be read, and they can be started in the middle."""

from edgeflare.models.tensors.graph import ROUNDING, Grid, ModelGraph, Operation, SubModel
from edgeflare.models.tensors.open import open_graph

__all__ = ["ROUNDING", "Grid", "ModelGraph", "Operation", "SubModel", "open_graph"]

"""Gradients of the original, an ONNX model on the host; needs the extra `torch`."""

from edgeflare.models.gradients.model import DifferentiableModel
from edgeflare.models.gradients.of_input import InputGradients

__all__ = ["DifferentiableModel", "InputGradients"]

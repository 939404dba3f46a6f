"""Gradients of the original, an ONNX model on the host; needs the extra `torch`."""

from edgeflare.models.gradients.model import DifferentiableModel

__all__ = ["DifferentiableModel"]

"""Gradients of the original, an ONNX model on the host; needs the extra `torch`."""

from edgeflare_whitebox.gradients.joint import JointGradients
from edgeflare_whitebox.gradients.model import DifferentiableModel, Operator
from edgeflare_whitebox.gradients.of_input import InputGradients, as_image, one_thread

__all__ = [
    "DifferentiableModel",
    "InputGradients",
    "JointGradients",
    "Operator",
    "as_image",
    "one_thread",
]

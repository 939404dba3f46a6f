"""Gradients of the original, as a strategy asks for them."""

from collections.abc import Sequence
from typing import Any

from edgeflare.errors import UsageError
from edgeflare.models.original import OriginalModel
from edgeflare.types import Ask
from edgeflare_agent.image_spec import InputSpec
from edgeflare_whitebox.gradients.joint import JointGradients
from edgeflare_whitebox.gradients.of_input import InputGradients


class GradientProbe:
    """Answers with gradients of the log-odds of classes, or of a `JointObjective`; see `Ask`.

    They are computed by PyTorch with one thread, one sample after the other.
    """

    libraries = ("torch",)

    def __init__(self, original: OriginalModel) -> None:
        """Load the model. Raises UsageError where it has no gradients, or PyTorch is missing."""
        configuration = original.configuration
        if original.runtime != "onnx":
            raise UsageError(
                "gradients are computed for ONNX models alone, and the original is run by "
                f"{original.runtime}; give it as an ONNX file, or search without gradients, as "
                "boundary does"
            )
        if "decoder" in configuration or "front_end" in configuration["input"]:
            raise UsageError(
                "gradients are computed for images alone; search without them, as boundary does"
            )
        if len(original.inputs) > 1 or not isinstance(configuration["output"], str):
            raise UsageError(
                "gradients are computed for models with one input, of one output; search without "
                "them, as boundary does"
            )
        spec = InputSpec.from_json(configuration["input"])
        self._original = original
        self._gradients = InputGradients(original.path, spec, configuration["output"])
        self._joint: JointGradients | None = None

    def check(self, others: Sequence[str]) -> None:
        """Raise UsageError where these files of a `JointObjective` can't be used beside it."""
        if others:
            self._joint_gradients(tuple(others))

    def answer(self, ask: Ask) -> list[Any]:
        """Return a gradient for each sample, as `Ask` has it, joint ones, too."""
        kind = self._original.reader.kind
        if ask.joint is None:
            return [self._gradients.log_odds(sample, ask.classes, kind) for sample in ask.samples]
        joint = self._joint_gradients(ask.joint.others)
        return [joint.at(sample, ask.joint, kind) for sample in ask.samples]

    def _joint_gradients(self, others: tuple[str, ...]) -> JointGradients:
        if self._joint is None or self._joint.others != others:
            self._joint = JointGradients(self._gradients, others)
        return self._joint

"""Gradients of DeepXplore's objective over several models (Pei et al., SOSP 2017, algorithm 1)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from edgeflare._internal import extras
from edgeflare.answers.outputs import OutputKind, detect_kind
from edgeflare.errors import UsageError
from edgeflare.types import JointGradient, JointObjective, Sample
from edgeflare_agent.image_spec import TensorInfo
from edgeflare_whitebox.gradients.model import DifferentiableModel
from edgeflare_whitebox.gradients.of_input import InputGradients, logarithms, one_thread

torch: Any = extras.Deferred(extras.torch)


_CLOSING: Mapping[str, OutputKind] = {
    "Softmax": "probabilities",
    "LogSoftmax": "logits",
    "Sigmoid": "sigmoid",
}
"""What an output holds, by the operator that makes it."""
_PROBES = 4
"""Number of inputs of noise by which it is told what a further model's output holds."""


@dataclass
class _Model:
    """A model, the name of its output, and what that holds; None: not known here."""

    runs: DifferentiableModel
    output: str
    kind: OutputKind | None = None

    def tensor(self, name: str, leaf: Any) -> Any:
        """Return a tensor. Raises RuntimeError and the like where it can't be run on this."""
        return self.runs.run({self.runs.inputs[0]: leaf}, (name,))[name]


class JointGradients:
    """An original and other ONNX models that take the same input, see `JointObjective`.

    The others may be quantised ones with QuantizeLinear and DequantizeLinear, whose gradients pass
    their rounding (see `DifferentiableModel`). What their first output holds is told by the operator
    that it ends in, else by its values on noise. Used by one thread at a time; `others` are the files.
    """

    def __init__(self, original: InputGradients, others: Sequence[str]) -> None:
        """Load the models. Raises UsageError for a file that can't be used beside the original."""
        self._original = original
        self.others = tuple(others)
        height, width = original.spec.upright_size
        noise = np.random.default_rng(0).integers(
            256, size=(_PROBES, height, width, original.spec.channels), dtype=np.uint8
        )
        leaves = [original.leaf(sample)[0] for sample in noise]
        own = _Model(original.model, original.output)
        with torch.no_grad():
            classes = own.tensor(own.output, leaves[0]).numel()
            self._models = [own, *(_further(Path(path), leaves, classes) for path in others)]

    def at(self, sample: Sample, objective: JointObjective, kind: OutputKind) -> JointGradient:
        """Return the objective's gradient at an image, and all decisions.

        `kind` says what the original's output holds.
        """
        labels: list[int | None] = []
        with one_thread(torch):
            leaf, inside = self._original.leaf(sample)
            total = leaf.new_zeros(())
            for place, model in enumerate(self._models):
                name, logs = logarithms(model.runs, model.output, model.kind or kind)
                scores = logs(model.tensor(name, leaf))
                labels.append(int(scores.argmax()) if bool(scores.isfinite().all()) else None)
                share = -objective.weight if place == objective.deviating else 1.0
                total = total + share * scores[objective.label]
            (slopes,) = torch.autograd.grad(total, leaf)
        gradient = self._original.of_pixels(slopes.numpy() * inside, sample.shape)
        return JointGradient(gradient, tuple(labels))


def _further(path: Path, leaves: Sequence[Any], classes: int) -> _Model:
    """Return a model beside the original, which answers with so many values on these inputs."""
    try:
        runs = DifferentiableModel(path)
    except UsageError as error:
        raise UsageError(f"the further model {path} can't be used: {error}") from error
    if len(runs.inputs) != 1:
        raise UsageError(f"{path} has {len(runs.inputs)} inputs; name a model with one")
    model = _Model(runs, runs.outputs[0])
    try:
        answers = [model.tensor(model.output, leaf).numpy().reshape(-1) for leaf in leaves]
    except (RuntimeError, IndexError, ValueError) as error:
        raise UsageError(
            f"{path} can't be run on what the original takes, {tuple(leaves[0].shape)}: "
            f"{str(error).splitlines()[0]}"
        ) from error
    if answers[0].size != classes:
        raise UsageError(
            f"{path} answers with {answers[0].size:,} values and the original with {classes:,}: name "
            "a model of the same classes"
        )
    end = runs.node_of(model.output)
    closing = _CLOSING.get(end.kind) if end is not None else None
    tensor = TensorInfo(model.output, (1, classes), "float32")
    model.kind = closing or detect_kind(tensor, answers)
    return model

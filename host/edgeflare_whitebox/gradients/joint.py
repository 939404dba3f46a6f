"""Gradients of DeepXplore's objective over several models (Pei et al., SOSP 2017, algorithm 1)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from edgeflare._internal import extras
from edgeflare.answers.outputs import OutputKind, detect_kind
from edgeflare.errors import ModelError, UsageError
from edgeflare.models.tensors import default_layers, open_graph
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
    """A model, the name of its output, and what that holds."""

    path: Path
    runs: DifferentiableModel
    output: str
    kind: OutputKind | None = None

    def scores(self, leaf: Any) -> Any:
        """Return the output. Raises RuntimeError and the like where it can't be run on this."""
        return self.runs.run({self.runs.inputs[0]: leaf}, (self.output,))[self.output]

    @cached_property
    def layers(self) -> Mapping[str, bool]:
        """The names of its layers, and whether each one's units are the last axis."""
        try:
            graph = open_graph(self.path, "onnx", {}, self.output)
            return {name: graph.has_units_last(name) for name in default_layers(graph)}
        except (ModelError, UsageError) as error:
            raise UsageError(
                f"no units of {self.path} can be read ({error}); state unit_weight=0 to leave them out"
            ) from error


class JointGradients:
    """An original and other ONNX models that take the same input, see `JointObjective`.

    The others may be quantised ones with QuantizeLinear and DequantizeLinear, whose gradients pass
    their rounding (see `DifferentiableModel`). What their first output holds is told by the operator
    that it ends in, else by its values on noise. Units are those of `default_layers`, as they are
    for coverage. Used by one thread at a time; `others` are the files.

    Differences: the authors' code has the outputs of all Keras layers but input and flatten for
    layers, so the scores themselves, too.
    """

    def __init__(self, original: InputGradients, others: Sequence[str]) -> None:
        """Load the models. Raises UsageError for a file that can't be used beside the original."""
        self._original = original
        self.others = tuple(others)
        self._models = [_Model(original.path, original.model, original.output)]
        height, width = original.spec.upright_size
        noise = np.random.default_rng(0).integers(
            256, size=(_PROBES, height, width, original.spec.channels), dtype=np.uint8
        )
        leaves = [original.leaf(one)[0] for one in noise]
        with torch.no_grad():
            classes = self._models[0].scores(leaves[0]).numel()
            self._models += [_further(Path(one), leaves, classes) for one in others]

    def at(self, sample: Sample, objective: JointObjective, kind: OutputKind) -> JointGradient:
        """Return the objective's gradient at an image, all decisions, and which units are active.

        `kind` says what the original's output holds. Raises UsageError where units are wanted and a
        model has none that are known.
        """
        labels: list[int | None] = []
        active = []
        with one_thread(torch):
            leaf, inside = self._original.leaf(sample)
            total = leaf.new_zeros(())
            for place, model in enumerate(self._models):
                tensor, logs = logarithms(model.runs, model.output, model.kind or kind)
                layers = model.layers if objective.unit_weight else {}
                found = model.runs.run({model.runs.inputs[0]: leaf}, (tensor, *layers))
                scores = logs(found[tensor])
                labels.append(int(scores.argmax()) if bool(scores.isfinite().all()) else None)
                share = -objective.weight if place == objective.deviating else 1.0
                total = total + share * scores[objective.label]
                if not layers:
                    continue
                read = [_units(found[name], last=last) for name, last in layers.items()]
                active.append(torch.cat([_scaled(*one) for one in read]) > objective.threshold)
                unit = objective.units[place]
                if unit is not None:
                    means = torch.cat([values.mean(1) for values, *_ in read])
                    total = total + objective.unit_weight * means[unit]
            (slopes,) = torch.autograd.grad(total, leaf)
        return JointGradient(
            self._original.of_pixels(slopes.numpy() * inside, sample.shape),
            tuple(labels),
            tuple(one.numpy() for one in active),
        )


def _further(path: Path, leaves: Sequence[Any], classes: int) -> _Model:
    """Return a model beside the original, which answers with so many values on these inputs."""
    try:
        runs = DifferentiableModel(path)
    except UsageError as error:
        raise UsageError(f"the further model {path} can't be used: {error}") from error
    if len(runs.inputs) != 1:
        raise UsageError(f"{path} has {len(runs.inputs)} inputs; name a model with one")
    model = _Model(path, runs, runs.outputs[0])
    try:
        answers = [model.scores(one).numpy().reshape(-1) for one in leaves]
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


def _units(tensor: Any, *, last: bool) -> tuple[Any, Any, Any]:
    """Return a layer's values by units, [units, ...], and the least and largest of them."""
    values = tensor[0].movedim(-1, 0) if last and tensor.dim() > 2 else tensor[0]
    values = values.reshape(len(values), -1)
    return values, values.min(), values.max()


def _scaled(values: Any, least: Any, largest: Any) -> Any:
    """Return each unit's mean, scaled to 0..1 over the layer; 0 where all of it is the same."""
    reach = largest - least
    return (values.mean(1) - least) / reach if reach > 0 else values.mean(1) * 0.0

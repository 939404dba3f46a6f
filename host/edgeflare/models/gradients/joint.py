"""Gradients of DeepXplore's objective over several models (Pei et al., SOSP 2017, algorithm 1)."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from edgeflare._internal import extras
from edgeflare.errors import ModelError, UsageError
from edgeflare.models.gradients.model import DifferentiableModel
from edgeflare.models.gradients.of_input import InputGradients, logarithms, one_thread
from edgeflare.models.outputs import OutputKind
from edgeflare.models.tensors import default_layers, open_graph
from edgeflare.types import JointGradient, JointObjective, Sample

torch: Any = extras.Deferred(extras.torch)


class _Model(NamedTuple):
    """A model, the name of its output, and the names of its layers; `units_last` has one for each."""

    runs: DifferentiableModel
    output: str
    layers: tuple[str, ...]
    units_last: tuple[bool, ...]


class JointGradients:
    """An original and other ONNX models that take the same input, see `JointObjective`.

    The others may be quantised ones with QuantizeLinear and DequantizeLinear, whose gradients pass
    their rounding (see `DifferentiableModel`). Units are those of `default_layers`, as they are for
    coverage. Used by one thread at a time; `others` are the files.

    Differences: the authors' code has the outputs of all Keras layers but input and flatten for
    layers, so the scores themselves, too.
    """

    def __init__(self, original: InputGradients, others: Sequence[str]) -> None:
        """Load the models. Raises UsageError for a file that can't be used beside the original."""
        self._original = original
        self.others = tuple(others)
        self._models = [_opened(original.path, original.model, original.output)]
        height, width = original.spec.upright_size
        blank = np.zeros((height, width, original.spec.channels), np.uint8)
        leaf, _ = original.leaf(blank)
        (classes,) = self._scores_of(self._models[:1], leaf)
        for one in map(Path, others):
            runs = DifferentiableModel(one)
            model = _opened(one, runs, runs.outputs[0])
            try:
                (scores,) = self._scores_of([model], leaf)
            except (RuntimeError, IndexError, ValueError) as error:
                raise UsageError(
                    f"{one} can't be run on what the original takes, {tuple(leaf.shape)}: "
                    f"{str(error).splitlines()[0]}"
                ) from error
            if scores.numel() != classes.numel():
                raise UsageError(
                    f"{one} answers with {scores.numel():,} values and the original with "
                    f"{classes.numel():,}: name a model of the same classes"
                )
            self._models.append(model)

    def _scores_of(self, models: Sequence[_Model], leaf: Any) -> list[Any]:
        with torch.no_grad():
            return [
                one.runs.run({one.runs.inputs[0]: leaf}, (one.output,))[one.output]
                for one in models
            ]

    def at(self, sample: Sample, objective: JointObjective, kind: OutputKind) -> JointGradient:
        """Return the objective's gradient at an image, all decisions, and which units are active.

        `kind` says what the outputs hold, of all models the same.
        """
        with one_thread(torch):
            leaf, inside = self._original.leaf(sample)
            total, labels, active = leaf.new_zeros(()), [], []
            for place, model in enumerate(self._models):
                tensor, logs = logarithms(model.runs, model.output, kind)
                layers = model.layers if objective.unit_weight else ()
                found = model.runs.run({model.runs.inputs[0]: leaf}, (tensor, *layers))
                scores = logs(found[tensor])
                labels.append(int(scores.argmax()))
                share = -objective.weight if place == objective.deviating else 1.0
                total = total + share * scores[objective.label]
                if not layers:
                    continue
                read = [
                    _units(found[name], last=last)
                    for name, last in zip(layers, model.units_last, strict=True)
                ]
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


def _opened(path: Path, runs: DifferentiableModel, output: str) -> _Model:
    if len(runs.inputs) != 1:
        raise UsageError(f"{path} has {len(runs.inputs)} inputs; name a model with one")
    try:
        graph = open_graph(path, "onnx", {}, output)
    except ModelError as error:
        raise UsageError(str(error)) from error
    layers = default_layers(graph)
    return _Model(runs, output, layers, tuple(graph.has_units_last(name) for name in layers))


def _units(tensor: Any, *, last: bool) -> tuple[Any, Any, Any]:
    """Return a layer's values by units, [units, ...], and the least and largest of them."""
    values = tensor[0].movedim(-1, 0) if last and tensor.dim() > 2 else tensor[0]
    values = values.reshape(len(values), -1)
    return values, values.min(), values.max()


def _scaled(values: Any, least: Any, largest: Any) -> Any:
    """Return each unit's mean, scaled to 0..1 over the layer; 0 where all of it is the same."""
    reach = largest - least
    return (values.mean(1) - least) / reach if reach > 0 else values.mean(1) * 0.0

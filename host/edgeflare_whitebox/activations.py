"""Activations of a model's layers, one input after the other."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from edgeflare._internal import extras
from edgeflare.errors import ModelError
from edgeflare.models import Spec, prepare
from edgeflare.models.quantized import content_digest
from edgeflare.models.tensors import ModelGraph, UnitActivations
from edgeflare.models.tensors import default_layers as default_layers  # noqa: PLC0414 - public here, too
from edgeflare.models.tensors import penultimate_layer as penultimate_layer  # noqa: PLC0414
from edgeflare.models.tensors import pre_activation_layers as pre_activation_layers  # noqa: PLC0414
from edgeflare.types import Sample
from edgeflare_agent.errors import RequestError


class Activations(NamedTuple):
    """What the layers do on one input, by the names of their tensors, and the predicted class."""

    layers: Mapping[str, UnitActivations]
    label: int


def activations_of(
    graph: ModelGraph,
    spec: Spec,
    samples: Iterable[Sample],
    layers: Sequence[str] | None = None,
    *,
    label: Callable[[NDArray[Any]], int] | None = None,
) -> Iterator[Activations]:
    """Yield the activations of each sample, in their order; only those of one are held.

    `spec` is the model's input, `layers` are names of tensors, `default_layers` where it is None.
    `label` makes the predicted class of the raw output, `predicted_class` where it is None.

    Raises UsageError where there are no such layers, ModelError where the runtime can't run the
    model with its tensors read. An input that can't be prepared or run raises ModelError, and
    iterating may go on with the next one.
    """
    probe = graph.probe(default_layers(graph) if layers is None else layers)
    class_of = predicted_class if label is None else label

    def activations(sample: Sample) -> Activations:
        tensors, output = probe(prepared(sample, spec))
        return Activations(tensors, class_of(output))

    return map(activations, samples)


def activations_or_errors(found: Iterator[Activations]) -> Iterator[Activations | ModelError]:
    """Yield each of `activations_of`, or the error in place of an input that has none."""
    while True:
        try:
            yield next(found)
        except StopIteration:
            return
        except ModelError as error:
            yield error


def prepared(sample: Sample, spec: Spec) -> NDArray[Any]:
    """Return a sample as the model takes it. Raises ModelError where it can't be prepared."""
    try:
        return prepare(sample, spec)
    except RequestError as error:
        raise ModelError(f"an input can't be prepared for the model: {error}") from error


def predicted_class(output: NDArray[Any]) -> int:
    """Return the index of a raw output's largest value, the first of equal ones.

    `output` is of any real or integer type and shape, such as [1, classes]: scores or logits.
    """
    return int(np.argmax(output))


def model_digest(path: Path) -> str:
    """Return the SHA-256 of a model's file, in hex; of the files with its weights together with it.

    Raises UsageError without onnx for an ONNX model, OSError where a file can't be read.
    """
    if path.suffix.lower() == ".onnx":
        extras.onnx()
    return content_digest(path, ()).hex()

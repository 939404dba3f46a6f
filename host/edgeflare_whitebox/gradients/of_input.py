"""Gradients of the original's decision with respect to an image, for a search."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edgeflare._internal import extras
from edgeflare.answers.outputs import OutputKind
from edgeflare.errors import UsageError
from edgeflare.types import Sample
from edgeflare_agent.image_spec import InputSpec
from edgeflare_agent.preprocess import RULES, oriented, prepare
from edgeflare_whitebox.gradients.model import DifferentiableModel

_SMALLEST = 1e-30
_BACK = {"rotate-90": "rotate-270", "rotate-270": "rotate-90"}
"""The orientations that are not undone by themselves."""


class InputGradients:
    """An ONNX model of images, of which gradients are computed by PyTorch with one thread.

    Not safe to use from several threads at once. The last bits depend on the processor and on
    PyTorch's version.

    `path` is its file, `model` what runs it, `spec` what an image is prepared by, `output` the name
    of the tensor that it answers with.
    """

    def __init__(self, path: Path, spec: InputSpec, output: str) -> None:
        """Load the model, which is given what `spec` makes of an image and asked for `output`.

        Raises UsageError where PyTorch or onnx is missing, for operators that are not known, and for
        a quantised model, whose answers don't change with small changes of its input.
        """
        self._torch = extras.torch()
        self.path = path
        self.model = DifferentiableModel(path)
        self.spec = spec
        self.output = output
        if any(map(_rounds, self.model.kinds)) or not spec.dtype.startswith("float"):
            raise UsageError(
                f"gradients of the original: {path} is quantised, so that its gradient is 0 almost "
                "everywhere; give a float model, or search without gradients, as boundary does"
            )

    def log_odds(
        self, sample: Sample, classes: Sequence[int], kind: OutputKind
    ) -> NDArray[np.float64]:
        """Return the gradients of the log-odds of the first of `classes` over each of the others.

        float64 [others, ...] of the sample's shape, per level. `kind` says what the output holds. Where the
        model ends in a softmax or a sigmoid, its argument is differentiated, which is exact for
        saturated probabilities, too. Not finite where the model's own arithmetic is not.
        """
        with one_thread(self._torch):
            leaf, inside = self.leaf(sample)
            tensor, logs = logarithms(self.model, self.output, kind)
            values = logs(self.model.run({self.model.inputs[0]: leaf}, (tensor,))[tensor])
            first, *others = classes
            found = []
            for place, other in enumerate(others, start=1):
                (slopes,) = self._torch.autograd.grad(
                    values[first] - values[other], leaf, retain_graph=place < len(others)
                )
                found.append(self.of_pixels(slopes.numpy() * inside, sample.shape))
        return np.array(found)

    def leaf(self, sample: Sample) -> tuple[Any, NDArray[np.bool_]]:
        """Return a sample prepared, as a tensor that wants a gradient, and which values weren't clipped."""
        prepared = prepare(sample, self.spec).astype(np.float32)
        low, high = self.spec.clip or (-np.inf, np.inf)
        inside = (prepared > low) & (prepared < high)
        return self._torch.from_numpy(prepared).requires_grad_(True), inside

    def of_pixels(self, slopes: Any, shape: Sequence[int]) -> NDArray[np.float64]:
        """Return the gradient with respect to an image's levels, of that of what it is prepared to."""
        spec = self.spec
        std = np.array(spec.std[::-1] if spec.color == "BGR" else spec.std)
        found = as_image(slopes, spec) * (spec.scale[0] / spec.scale[1]) / std
        height, width = spec.upright_size
        if shape[:2] != (height, width) and spec.resize is not None:
            rows = _resizing(spec.resize, shape[0], height)
            columns = _resizing(spec.resize, shape[1], width)
            found = np.tensordot(rows, found, (0, 0))
            found = np.tensordot(columns, found, (0, 1)).transpose(1, 0, 2)
        return np.ascontiguousarray(found)


def logarithms(
    model: DifferentiableModel, output: str, form: OutputKind
) -> tuple[str, Callable[[Any], Any]]:
    """Return a tensor's name, and what makes log-probabilities of it, up to one constant.

    Where the model ends in the softmax or sigmoid that `form` says, the tensor is its argument.
    """
    torch, end, name = extras.torch(), model.node_of(output), output
    closing = {"probabilities": "Softmax", "sigmoid": "Sigmoid"}.get(form)
    if end is not None and closing == end.kind:
        name = end.inputs[0]
        form = "logits" if form == "probabilities" else "sigmoid-logits"

    def logs(value: Any) -> Any:
        flat = value.reshape(-1)
        if form == "logits":
            return flat
        if form == "sigmoid-logits":
            sure = torch.nn.functional.logsigmoid
            return torch.stack([sure(-flat[0]), sure(flat[0])]) if len(flat) == 1 else sure(flat)
        if form == "sigmoid" and len(flat) == 1:
            flat = torch.stack([1.0 - flat[0], flat[0]])
        return flat.clamp(min=_SMALLEST).log()

    return name, logs


def as_image(prepared: NDArray[Any], spec: InputSpec) -> NDArray[np.float64]:
    """Return what belongs to a prepared image's values as an image is stored: upright, RGB, in rows.

    float64 [H, W, channels] of the model's input size.
    """
    height, width = spec.size
    if spec.layout == "CHW":
        image = prepared.reshape(spec.channels, height, width).transpose(1, 2, 0)
    else:
        image = prepared.reshape(height, width, spec.channels)
    if spec.color == "BGR":
        image = image[:, :, ::-1]
    return oriented(image, _BACK.get(spec.orientation, spec.orientation)).astype(np.float64)


def _rounds(kind: str) -> bool:
    """Whether an ONNX operator rounds what it is given."""
    parts = ("Quant", "QLinear", "Integer")
    return kind != "DequantizeLinear" and any(part in kind for part in parts)


@lru_cache(maxsize=8)
def _resizing(rule: str, old: int, new: int) -> NDArray[np.float64]:
    """Return the weights by which a rule resizes an axis, [new, old], to 1 / 255."""
    image = 255 * np.eye(old, dtype=np.uint8)[:, :, None]
    return np.asarray(RULES[rule](image, (new, old))[:, :, 0] / 255.0)


@contextmanager
def one_thread(torch: Any) -> Iterator[None]:
    """Let PyTorch compute with one thread, so that results don't depend on how many there are."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)

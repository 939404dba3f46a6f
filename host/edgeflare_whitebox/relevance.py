"""Layer-wise relevance propagation: how much units and input values contribute to a decision.

Source: Bach et al., "On Pixel-Wise Explanations for Non-Linear Classifier Decisions by Layer-Wise
Relevance Propagation", PLOS ONE 2015, equation 56.
"""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import cv2
import numpy as np
from numpy.typing import NDArray

from edgeflare._internal import extras
from edgeflare.errors import ModelError, UsageError
from edgeflare.models import InputSpec, Spec
from edgeflare.models.tensors import ModelGraph
from edgeflare.types import Sample
from edgeflare_whitebox.activations import prepared
from edgeflare_whitebox.gradients import DifferentiableModel, Operator, as_image, one_thread
from edgeflare_whitebox.gradients.operators import OPERATORS

torch: Any = extras.Deferred(extras.torch)

_TINY = 1e-12
"""What counts as 0."""
_ELEMENTWISE = (
    *("Abs", "Clip", "Elu", "Erf", "Exp", "HardSigmoid", "HardSwish", "Log", "Pow", "Reciprocal"),
    *("Sigmoid", "Softplus", "Sqrt", "Tanh"),
)
"""Operators that hand each value's relevance on."""
_MOVING = ("Cast", "Dropout", "Flatten", "Identity", "Reshape", "Squeeze", "Transpose", "Unsqueeze")
"""Operators that leave values as they are."""
_BY_GRADIENT = frozenset(
    [
        *_MOVING,
        *("Add", "Concat", "Expand", "Gather", "Neg", "Pad", "Resize", "Slice", "Split", "Sub"),
        *("Sum", "Tile", "AveragePool", "BatchNormalization", "GlobalAveragePool", "ReduceMean"),
        *("Conv", "ConvTranspose", "Gemm"),
        *("ReduceSum", "DequantizeLinear", "QuantizeLinear"),  # linear, or as if they were
        *("GlobalMaxPool", "Max", "MaxPool", "Min", "ReduceMax", "ReduceMin", "Where"),
        *("LeakyRelu", "PRelu", "Relu"),
        *("And", "Equal", "Greater", "GreaterOrEqual", "IsInf", "IsNaN", "Less", "LessOrEqual"),
        *("Not", "Or", "Shape"),  # nothing passes these
    ]
)
"""Operators through which a value times its gradient is its relevance as it is."""
_LAST = ("LogSoftmax", "Sigmoid", "Softmax")
"""Operators at the end of a model that are left out: relevance begins before them."""


class Relevances(NamedTuple):
    """The relevance of one input's decision.

    `label` is the class whose score before softmax or sigmoid, `score`, was shared out. `layers`
    has float64 [units] by the names of tensors, summed over space; `values` is that of each value
    of the prepared input, float32 in its shape.
    """

    layers: Mapping[str, NDArray[np.float64]]
    values: NDArray[np.float32]
    label: int
    score: float


def check_traceable(path: Path) -> None:
    """Raise UsageError for what is no ONNX model, by the file's name; nothing is read."""
    if path.suffix.lower() != ".onnx":
        raise UsageError(
            f"relevance is traced back in ONNX models, and the original is {path.name}: export it to ONNX "
            "and run a campaign with that as the original (edgeflare inspect coverage and units take "
            "TFLite originals, too)"
        )


class RelevanceModel:
    """An ONNX original whose decisions are traced back through its layers, by PyTorch on one thread.

    In convolution and dense layers, whose output z is a sum of contributions, relevance is shared
    out in proportion to these (LRP-0). Normalisation is linear with its divisor held constant,
    average pooling and sums are in proportion, max pooling gives all to the largest, activation
    functions hand relevance on, and a product of two activations gives half to each.

    Biases take part in z, so that they take up relevance as well. Not safe to use from several
    threads at once.

    Differences: DeepImportance spreads a bias' relevance over the layer's inputs; this way
    relevance is exactly activation times gradient where activation functions are ReLU, and the
    shares that biases take are not given to units. A product's rule is Achtibat et al.'s (AttnLRP,
    ICML 2024).
    """

    def __init__(self, path: Path, graph: ModelGraph) -> None:
        """Load the model, whose `graph` tells where its units are.

        Raises UsageError where PyTorch or onnx is missing, for what is no ONNX model, and for
        operators that are not known.
        """
        check_traceable(path)
        extras.torch("inspection", "relevance")
        self._graph = graph
        self._model = DifferentiableModel(path, _rules(OPERATORS))
        end = self._model.node_of(graph.output)
        while end is not None and end.kind in _MOVING:
            end = self._model.node_of(end.inputs[0])
        is_last = end is not None and end.kind in _LAST
        self._start = end.inputs[0] if end is not None and is_last else graph.output

    def relevances(
        self, given: NDArray[Any], layers: Sequence[str] = (), label: int | None = None
    ) -> Relevances:
        """Share out the score of class `label`, by default of the largest one, on one input tensor.

        `given` is what the model takes, its batch axis 1; `layers` are names of tensors. A single
        score is that of class 1 of two. Raises UsageError for names of no tensor that depends on
        the input, and where relevance would have to pass an operator without a rule; ModelError for
        a score that isn't finite.
        """
        with one_thread(torch):
            leaf = torch.from_numpy(np.array(given, np.float32)).requires_grad_(True)
            tensors = self._model.run({self._model.inputs[0]: leaf}, (self._start, *layers))
            scores = tensors[self._start].reshape(-1)
            if len(scores) == 1:  # of class 1 of two; that of class 0 is its negative
                scores = torch.cat([-scores, scores])
            chosen = int(scores.argmax()) if label is None else label
            if not 0 <= chosen < len(scores):
                raise UsageError(f"the original has no class {chosen}, but {len(scores)} of them")
            score = scores[chosen]
            if not torch.isfinite(score):
                raise ModelError(
                    f"the original's score of class {chosen} is {float(score.detach())}"
                )
            for name in layers:
                if not tensors[name].requires_grad:
                    raise UsageError(f"the tensor {name!r} doesn't depend on the model's input")
            wanted = [leaf, *(tensors[name] for name in layers)]
            slopes = torch.autograd.grad(score, wanted, allow_unused=True)
            values, *found = (
                np.zeros(tuple(one.shape)) if slope is None else (one * slope).detach().numpy()
                for one, slope in zip(wanted, slopes, strict=True)
            )
        units = {
            name: self._by_unit(name, one.astype(np.float64))
            for name, one in zip(layers, found, strict=True)
        }
        return Relevances(units, values.astype(np.float32), chosen, float(score.detach()))

    def _by_unit(self, name: str, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the sums of a tensor [1, ...] over all but its units' axis."""
        axis = values.ndim - 1 if self._graph.has_units_last(name) else min(1, values.ndim - 1)
        total: NDArray[np.float64] = values.sum(axis=tuple(set(range(values.ndim)) - {axis}))
        return total


def total_relevance(
    model: RelevanceModel,
    spec: Spec,
    samples: Iterable[tuple[Sample, int | None]],
    layers: Sequence[str],
) -> tuple[dict[str, NDArray[np.float64]], int]:
    """Return each unit's relevance, summed with its sign over samples, and how many counted.

    `samples` come with their labels; those that the model decides differently, and those on which
    its score isn't finite, don't count; those without a label (None) do. `spec` is the model's
    input. float64 [units] by the names of `layers`, zeros where none counted, and nothing where
    there are no samples; of units where it isn't finite 0 is added.

    Source: Gerasimou et al., "Importance-Driven Deep Learning System Testing", ICSE 2020, algorithm
    1 with cumulative relevance. Raises as `RelevanceModel.relevances`, ModelError where no score is
    finite.
    """
    total: dict[str, NDArray[np.float64]] = {}
    count, failure = 0, None
    for sample, label in samples:
        try:
            one = model.relevances(prepared(sample, spec), layers)
        except ModelError as error:
            failure = error
            continue
        for name, units in one.layers.items():
            known = total.setdefault(name, np.zeros(units.size))
            if label in (None, one.label):
                known += np.where(np.isfinite(units), units, 0.0)
        count += label in (None, one.label)
    if failure is not None and not total:
        raise failure
    return total, count


def relevance_map(found: Relevances, spec: InputSpec, shape: Sequence[int]) -> NDArray[np.float64]:
    """Return the relevance of an image's pixels, float64 [H, W] of an image of this `shape`.

    Channels are summed. Where the model takes images of another size, it is brought to this one's
    bilinearly, so that the sum isn't kept.
    """
    pixels = as_image(found.values, spec).sum(axis=2)
    height, width = shape[:2]
    if pixels.shape != (height, width):
        pixels = cv2.resize(pixels, (width, height), interpolation=cv2.INTER_LINEAR)
    return np.asarray(pixels, np.float64)


def most_relevant(relevance: NDArray[np.float64], count: int) -> NDArray[np.intp]:
    """Return the places of the largest values, flat, the first of equal ones first.

    Raises UsageError for more than there are, and for a negative number.
    """
    if not 0 <= count <= relevance.size:
        raise UsageError(f"of {relevance.size:,} values {count:,} can't be chosen")
    return np.argsort(-relevance.reshape(-1), kind="stable")[:count]


def without_relevant(
    image: NDArray[np.uint8], relevance: NDArray[np.float64], share: float = 0.1
) -> NDArray[np.uint8]:
    """Return an image [H, W, C] whose most relevant pixels, so large a `share` of them, are changed.

    Those above half of the largest relevance become 0, the others 255; `relevance` is its map.

    Source: Gerasimou et al., ICSE 2020, section 5.3, RQ1, where the threshold is .5 of a relevance
    that is scaled to 1.
    """
    places = most_relevant(relevance, round(relevance.size * share))
    chosen = relevance.reshape(-1)[places]
    changed: NDArray[np.uint8] = image.copy()
    rows = changed.reshape(relevance.size, -1)
    rows[places] = np.where(chosen > chosen.max(initial=0.0) / 2, 0, 255)[:, np.newaxis]
    return changed


def _rules(operators: Mapping[str, Operator]) -> dict[str, Operator]:
    """Return the operators whose gradient, times a value, is that value's relevance.

    Relevance R of a tensor a is written as a * s; what autograd hands back is s.
    """
    rules = {
        kind: _refused(kind, run) for kind, run in operators.items() if kind not in _BY_GRADIENT
    }
    rules |= {kind: _handing_on(operators[kind]) for kind in _ELEMENTWISE}
    rules["Div"] = lambda inputs, attributes, opset: operators["Div"](
        [inputs[0], inputs[1].detach()], attributes, opset
    )
    for kind in ("InstanceNormalization", "LayerNormalization"):
        rules[kind] = _normalisation(operators[kind], by_channel=kind == "InstanceNormalization")
    return rules | {kind: _halved(operators[kind]) for kind in ("MatMul", "Mul")}


def _with_slope(value: Any, slope: Any) -> Any:
    """Return a tensor with the values of one and the gradient of another."""
    return slope + (value - slope).detach()


def _handing_on(run: Operator) -> Operator:
    def handed(inputs: Sequence[Any], attributes: Mapping[str, Any], opset: int) -> Any:
        result, value = run(inputs, attributes, opset), inputs[0]
        if not result.requires_grad:
            return result
        is_zero = value.abs() < _TINY  # of which nothing is shared out
        share = torch.where(is_zero, 0.0, result / torch.where(is_zero, 1.0, value))
        return _with_slope(result, value * share.detach())

    return handed


def _halved(run: Operator) -> Operator:
    def halved(inputs: Sequence[Any], attributes: Mapping[str, Any], opset: int) -> Any:
        first, second, *_ = inputs
        if not (first.requires_grad and second.requires_grad):
            return run(inputs, attributes, opset)
        left = run([first, second.detach()], attributes, opset)
        return (left + run([first.detach(), second], attributes, opset)) / 2

    return halved


def _normalisation(run: Operator, *, by_channel: bool) -> Operator:
    def normalised(inputs: Sequence[Any], attributes: Mapping[str, Any], opset: int) -> Any:
        value, scale = inputs[:2]
        first = 2 if by_channel else attributes.get("axis", -1) % value.dim()
        over = list(range(first, value.dim()))
        if by_channel:
            scale = scale.reshape(-1, *[1] * len(over))
        centred = value - value.mean(over, True)
        variance = centred.square().mean(over, True).detach()
        divisor = (variance + attributes.get("epsilon", 1e-5)).sqrt()
        return _with_slope(run(inputs, attributes, opset), centred / divisor * scale)

    return normalised


def _refused(kind: str, run: Operator) -> Operator:
    def refused(inputs: Sequence[Any], attributes: Mapping[str, Any], opset: int) -> Any:
        if any(one is not None and one.requires_grad for one in inputs):
            raise UsageError(
                f"relevance can't be traced back through {kind}: it is known for dense, convolution, "
                "pooling, normalisation and activation layers"
            )
        return run(inputs, attributes, opset)

    return refused

"""Which of a model's tensors count as its layers."""

from collections.abc import Mapping, Sequence

from edgeflare.errors import UsageError
from edgeflare.models.tensors.graph import ACTIVATIONS, ROUNDING, ModelGraph, Operator

WEIGHTED = frozenset(
    [
        *("Conv", "ConvTranspose", "FusedConv", "FusedGemm", "FusedMatMul", "Gemm", "MatMul"),
        *("QGemm", "QLinearConv", "QLinearMatMul"),
        *("BATCH_MATMUL", "CONV_2D", "CONV_3D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED"),
        *("TRANSPOSE_CONV",),
    ]
)
"""Kinds of convolution and dense operators."""
_AFFINE = frozenset(
    [
        *("Add", "BatchNormalization", "Div", "Mul", "QLinearAdd", "QLinearMul", "Sub"),
        *("ADD", "DIV", "MUL", "SUB"),
    ]
)
"""Kinds of operators that add a bias or normalise, where all but one of their inputs are constant."""
_BETWEEN = (
    _AFFINE
    | ROUNDING
    | {"Cast", "Dropout", "Flatten", "Identity", "Reshape", "Squeeze", "Transpose", "Unsqueeze"}
    | {"CAST", "EXPAND_DIMS", "RESHAPE", "SQUEEZE", "TRANSPOSE"}
)
"""Kinds of operators that may stand between a convolution and its activation function."""
_GATES = frozenset(["HardSigmoid", "QLinearSigmoid", "Sigmoid", "LOGISTIC"])
_PRODUCTS = frozenset(["Mul", "QLinearMul", "MUL"])


def default_layers(graph: ModelGraph) -> tuple[str, ...]:
    """Return the names of the tensors that count as layers, in their order in the graph.

    They are the outputs of activation functions, fused ones too, and of convolution and dense
    operators that no activation function follows, with their bias and batch normalisation. A
    softmax is no layer; a product of a tensor and its own sigmoid (SiLU, hard swish) is one, in
    place of the sigmoid.

    Raises UsageError where there is none.

    Differences: DeepXplore (Pei et al., SOSP 2017) counts the output of every Keras layer but input
    and flatten, so pooling and softmax, too, and convolutions beside their activations.
    """
    readers = _readers(graph)
    units: dict[str, None] = {}
    for operation in graph.operations:
        name = operation.outputs[0]
        if operation.activated or operation.kind in ACTIVATIONS:
            units[_product_with_gate(operation, readers) or name] = None
        elif (
            operation.kind in WEIGHTED
            and len(operation.inputs) == 1
            and not _is_activated(name, readers)
        ):
            units[_with_bias(name, readers)] = None
    if not units:
        raise UsageError(
            "the model has no activation, convolution or dense operator that is known here: name "
            "the tensors that count as layers"
        )
    return tuple(units)


def penultimate_layer(graph: ModelGraph) -> str:
    """Return the last layer but one of `default_layers`, of a single one that.

    Surprise adequacy and DeepImportance look at this layer by default. Raises UsageError as
    `default_layers`.
    """
    return default_layers(graph)[-2:][0]


def pre_activation_layers(graph: ModelGraph) -> tuple[str, ...]:
    """Return the names of the tensors that go into activation functions, in their order in the graph.

    They are the outputs of convolution and dense operators with their bias and batch normalisation,
    before any activation function; where that is fused into the operator, what comes out of it.

    Raises UsageError where there is none.

    Differences: DeepInspect (Tian et al., ICSE 2020) takes convolutions alone, before batch
    normalisation.
    """
    readers = _readers(graph)
    units = {
        _with_bias(operation.outputs[0], readers): None
        for operation in graph.operations
        if operation.kind in WEIGHTED and len(operation.inputs) == 1
    }
    if not units:
        raise UsageError(
            "the model has no convolution or dense operator that is known here: name the tensors "
            "that count as layers"
        )
    return tuple(units)


def _readers(graph: ModelGraph) -> dict[str, list[Operator]]:
    """Return the operators that read each tensor."""
    readers: dict[str, list[Operator]] = {}
    for operation in graph.operations:
        for name in operation.inputs:
            readers.setdefault(name, []).append(operation)
    return readers


def _product_with_gate(gate: Operator, readers: Mapping[str, Sequence[Operator]]) -> str | None:
    """Return the product of a gate and its own input, None where there is none."""
    if gate.kind not in _GATES:
        return None
    products = {gate.inputs[0], gate.outputs[0]}
    for operation in readers.get(gate.outputs[0], ()):
        if operation.kind in _PRODUCTS and set(operation.inputs) == products:
            return operation.outputs[0]
    return None


def _is_activated(name: str, readers: Mapping[str, Sequence[Operator]]) -> bool:
    """Whether an activation function reads a tensor, or what is only moved, scaled or added to."""
    to_visit, seen = [name], {name}
    while to_visit:
        for operation in readers.get(to_visit.pop(), ()):
            if operation.activated or operation.kind in ACTIVATIONS:
                return True
            if operation.kind in _BETWEEN and operation.outputs[0] not in seen:
                seen.add(operation.outputs[0])
                to_visit.append(operation.outputs[0])
    return False


def _with_bias(name: str, readers: Mapping[str, Sequence[Operator]]) -> str:
    """Return the tensor after the constants that are added to this one or multiplied with it."""
    while True:
        of_it = readers.get(name, ())
        if len(of_it) != 1 or of_it[0].kind not in _AFFINE or len(of_it[0].inputs) != 1:
            return name
        name = of_it[0].outputs[0]

"""ONNX's RNN, GRU and LSTM by torch, step by step, with ONNX's order of gates."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from edgeflare._internal import extras
from edgeflare.errors import UsageError
from edgeflare_whitebox.gradients.layers import Attributes, Inputs

torch: Any = extras.Deferred(extras.torch)

Step = Callable[..., tuple[Any, ...]]
_DEFAULT = {"RNN": ["Tanh"], "GRU": ["Sigmoid", "Tanh"], "LSTM": ["Sigmoid", "Tanh", "Tanh"]}


def _rnn_step(given: Any, states: Any, weight: Any, bias: Any, _attributes: Attributes) -> Any:
    (hidden,) = states
    own, past = bias.chunk(2)
    return (torch.tanh(given + own + hidden @ weight.T + past),)


def _gru_step(given: Any, states: Any, weight: Any, bias: Any, attributes: Attributes) -> Any:
    """ONNX's equations with gates in the order z, r, h."""
    (hidden,) = states
    own, past = bias.chunk(2)
    update, reset, new = (given + own).chunk(3, -1)
    weight_z, weight_r, weight_h = weight.chunk(3)
    bias_z, bias_r, bias_h = past.chunk(3)
    update = torch.sigmoid(update + hidden @ weight_z.T + bias_z)
    reset = torch.sigmoid(reset + hidden @ weight_r.T + bias_r)
    if attributes.get("linear_before_reset", 0):
        new = torch.tanh(new + reset * (hidden @ weight_h.T + bias_h))
    else:
        new = torch.tanh(new + (reset * hidden) @ weight_h.T + bias_h)
    return ((1 - update) * new + update * hidden,)


def _lstm_step(given: Any, states: Any, weight: Any, bias: Any, _attributes: Attributes) -> Any:
    """ONNX's equations with gates in the order i, o, f, c."""
    hidden, cell = states
    own, past = bias.chunk(2)
    enter, out, forget, new = (given + own + hidden @ weight.T + past).chunk(4, -1)
    cell = torch.sigmoid(forget) * cell + torch.sigmoid(enter) * torch.tanh(new)
    return torch.sigmoid(out) * torch.tanh(cell), cell


def _recurrent(kind: str, gates: int, states: int, step: Step) -> Callable[..., Any]:
    def run(inputs: Inputs, attributes: Attributes, _opset: int) -> Any:
        inputs = [*inputs, *[None] * (8 - len(inputs))]
        value, weights, recurrences, biases, lengths, *initial = inputs
        directions = weights.shape[0]
        _check(kind, attributes, directions, lengths, initial[2])
        size, batch = recurrences.shape[-1], value.shape[1]
        if biases is None:
            biases = torch.zeros(directions, 2 * gates * size)
        outputs, finals = [], []
        for direction in range(directions):
            begin = [
                torch.zeros(batch, size) if one is None else one[direction]
                for one in initial[:states]
            ]
            backward = direction == 1 or attributes.get("direction") == "reverse"
            given = value @ weights[direction].T
            seen, final = _steps(
                step,
                given,
                begin,
                (recurrences[direction], biases[direction]),
                attributes,
                backward,
            )
            outputs.append(seen)
            finals.append(final)
        last = tuple(torch.stack([one[n] for one in finals]) for n in range(states))
        return (torch.stack(outputs, 1), *last)

    return run


def _steps(
    step: Step,
    given: Any,
    begin: Sequence[Any],
    parameters: tuple[Any, Any],
    attributes: Attributes,
    backward: bool,
) -> tuple[Any, Sequence[Any]]:
    states: Sequence[Any] = begin
    seen = []
    order = range(len(given))
    for time in reversed(order) if backward else order:
        states = step(given[time], states, *parameters, attributes)
        seen.append(states[0])
    return torch.stack(seen[::-1] if backward else seen), states


def _check(
    kind: str, attributes: Attributes, directions: int, lengths: Any, peepholes: Any
) -> None:
    problem = ""
    if attributes.get("activations", _DEFAULT[kind] * directions) != _DEFAULT[kind] * directions:
        problem = f"activations {attributes['activations']}"
    elif lengths is not None:
        problem = "sequence_lens"
    elif peepholes is not None:
        problem = "peepholes"
    elif attributes.get("layout", 0) or attributes.get("input_forget", 0) or "clip" in attributes:
        problem = "layout 1, input_forget or clip"
    if problem:
        raise UsageError(f"gradients are not known for {kind} with {problem}; export it without")


RECURRENT: Mapping[str, Callable[..., Any]] = {
    "RNN": _recurrent("RNN", 1, 1, _rnn_step),
    "GRU": _recurrent("GRU", 3, 1, _gru_step),
    "LSTM": _recurrent("LSTM", 4, 2, _lstm_step),
}

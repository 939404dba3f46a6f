"""What a model computes of its input's values before its first layer, and how it is therefore fed."""

import pickle
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from edgeflare._internal.processes import python_calling, run_again_where_killed
from edgeflare.errors import EdgeFlareError
from edgeflare.models.image_input import InputOptions
from edgeflare.models.tensors.graph import ModelStructure, Operator
from edgeflare.models.tensors.open import open_structure
from edgeflare.models.usual_inputs import USUAL_SCALINGS

_Kind: TypeAlias = Literal["add", "subtract", "multiply", "divide", "normalise", "pass", "round"]
_KINDS: Mapping[str, _Kind] = {
    **dict.fromkeys(("Add", "ADD", "add"), "add"),
    **dict.fromkeys(("Sub", "SUB", "sub"), "subtract"),
    **dict.fromkeys(("Mul", "MUL", "mul"), "multiply"),
    **dict.fromkeys(("Div", "DIV", "div"), "divide"),
    **dict.fromkeys(("BatchNormalization", "Normalization", "Rescaling"), "normalise"),
    **dict.fromkeys(("batch_norm", "_native_batch_norm_legit_no_training"), "normalise"),
    **dict.fromkeys(("QuantizeLinear", "DequantizeLinear", "QUANTIZE", "DEQUANTIZE"), "round"),
    **dict.fromkeys(("Cast", "CAST", "_to_copy", "to", "Identity", "clone", "contiguous"), "pass"),
    **dict.fromkeys(("Transpose", "TRANSPOSE", "permute", "Permute"), "pass"),
    **dict.fromkeys(("Reshape", "RESHAPE", "Squeeze", "Unsqueeze", "EXPAND_DIMS"), "pass"),
    **dict.fromkeys(("Pad", "PAD", "ZeroPadding2D", "RESIZE_BILINEAR", "Resize"), "pass"),
}
_UNREAD = frozenset(["Shape", "SHAPE", "sym_size"])
"""Operators that read an input's shape, not its values."""
_TIMEOUT_S = 600.0
_REQUEST, _RESULT = "request.pickle", "result.pickle"
_NEARLY = 0.02
_SPANS = (0.9, 12.0)
"""How far apart the values of black and white are that a network normalises to: 1 to 4.9 are usual."""
_BELOW_ZERO, _OFF_CENTRE = 0.1, 0.25
_PIXELS = 255.0


@dataclass(frozen=True)
class FirstOperators:
    """What a file computes of an input's values first: value * scale + offset, for each channel.

    `kinds` and `names` are those of the operators that do it, in their order. `data`: means and
    deviations of the inputs that a first batch normalisation was trained with. `integers`: the range of the
    integers that the values become before anything else.
    """

    kinds: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    scale: tuple[float, ...] = (1.0,)
    offset: tuple[float, ...] = (0.0,)
    data: tuple[tuple[float, ...], tuple[float, ...]] | None = None
    integers: tuple[float, float] | None = None

    @property
    def is_normalising(self) -> bool:
        """Whether the values are changed at all."""
        return bool(self.kinds)

    def made_of(self, options: InputOptions) -> NDArray[np.float64]:
        """Return what black and white pixels, fed so, become: [channels, 2]."""
        ends = np.array(options.pixel_range())
        scale, offset = np.resize(self.scale, 3), np.resize(self.offset, 3)
        made: NDArray[np.float64] = ends * scale[:, None] + offset[:, None]
        return made


def first_operators(
    path: Path, runtime: str, options: Mapping[str, Any], name: str, channels: int
) -> FirstOperators | None:
    """Return what a file computes first of an input, read in a process of its own.

    None where the file can't be read so: a file that crashes its library tells nothing.
    """
    with TemporaryDirectory(prefix="edgeflare-") as folder:
        request = path, runtime, dict(options), name, channels
        (Path(folder) / _REQUEST).write_bytes(pickle.dumps(request))
        try:
            run_again_where_killed(python_calling(read_here, folder), _TIMEOUT_S)
            first: FirstOperators | None = pickle.loads((Path(folder) / _RESULT).read_bytes())  # noqa: S301
        except (OSError, subprocess.TimeoutExpired):
            return None
        return first


def read_here(folder: str) -> None:
    """Do what `first_operators` asks for in this process; write the result."""
    path, runtime, options, name, channels = pickle.loads(  # noqa: S301
        (Path(folder) / _REQUEST).read_bytes()
    )
    try:
        structure = open_structure(path, runtime, options)
    except EdgeFlareError:
        structure = None
    first = None if structure is None else operators_at(structure, name, channels)
    (Path(folder) / _RESULT).write_bytes(pickle.dumps(first))


def operators_at(structure: ModelStructure, name: str, channels: int) -> FirstOperators:
    """Return what a model computes first of the input `name`, which has so many channels.

    It is followed as long as one operator alone reads the values, and changes each by itself.
    """
    names = [input_name for input_name in structure.inputs if input_name in (name, f"{name}:0")]
    tensor = names[0] if names else structure.inputs[0]
    scale, offset = np.ones(1), np.zeros(1)
    kinds: list[str] = []
    changing: list[str] = []
    data, integers = None, None
    while True:
        # where two read a value, what one of them makes of it isn't what all of the network sees
        readers = [
            operator
            for operator in structure.operators
            if tensor in operator.inputs and operator.kind not in _UNREAD
        ]
        kind = _KINDS.get(readers[0].kind) if len(readers) == 1 else None
        if kind is None:
            break
        operator = readers[0]
        if kind == "round":
            grid = structure.grids.get(operator.outputs[0]) or structure.grids.get(tensor)
            # behind a change the grid's range would be that of changed values
            if grid is not None and not kinds:
                integers = grid.range
        elif kind != "pass":
            change = _change(structure, operator, kind, tensor, channels)
            if change is None:
                break
            factor, added = change
            scale, offset = scale * factor, offset * factor + added
            if operator.kind != "Rescaling" and kind == "normalise" and not kinds:
                data = _data(structure, operator, channels)
            kinds.append(kind)
            changing.append(operator.name)
        tensor = operator.outputs[0]
    return FirstOperators(
        tuple(kinds),
        tuple(changing),
        tuple(map(float, scale)),
        tuple(map(float, offset)),
        data,
        integers,
    )


_Change: TypeAlias = tuple[NDArray[np.float64], NDArray[np.float64]]


def _change(
    structure: ModelStructure, operator: Operator, kind: _Kind, tensor: str, channels: int
) -> _Change | None:
    """Return (factor, summand) of an operator that changes each value by itself; None: another one."""
    if kind == "normalise":
        return _normalisation(structure, operator, channels)
    others = [operand for operand in operator.inputs if operand != tensor]
    value: Any = operator.attributes.get("other")
    if others:
        value = structure.constants.get(others[0])
    if value is None or len(others) > 1 or operator.attributes.get("alpha", 1) != 1:
        return None
    constant = _by_channel(np.asarray(value, np.float64), channels)
    if constant is None or not np.isfinite(constant).all():
        return None
    is_first = operator.inputs[0] == tensor
    nothing, same = np.zeros(1), np.ones(1)
    if kind == "add":
        return same, constant
    if kind == "subtract":
        return (same, -constant) if is_first else (-same, constant)
    if kind == "multiply":
        return constant, nothing
    if not is_first or not constant.all():
        return None
    return 1 / constant, nothing


def _by_channel(constant: NDArray[np.float64], channels: int) -> NDArray[np.float64] | None:
    """Return one number, or one a channel; None where a constant has others."""
    sizes = [size for size in constant.shape if size != 1]
    return constant.reshape(-1) if not sizes or sizes == [channels] else None


def _normalisation(structure: ModelStructure, operator: Operator, channels: int) -> _Change | None:
    if operator.kind == "Rescaling":
        change = [
            _by_channel(np.asarray(operator.attributes.get(name, 0.0), np.float64), channels)
            for name in ("scale", "offset")
        ]
        return None if change[0] is None or change[1] is None else (change[0], change[1])
    statistics = _data(structure, operator, channels)
    if statistics is None:
        return None
    means, deviations = map(np.array, statistics)
    scales, shifts = _learnt(structure, operator, channels)
    return scales / deviations, shifts - means * scales / deviations


def _named_weights(
    structure: ModelStructure, operator: Operator
) -> dict[str, NDArray[np.float32] | None]:
    """Return the weights of a normalisation by what they are."""
    constants = structure.constants
    weights = [weight for weight in operator.inputs if weight in constants]
    ends = {weight.rpartition("/")[2]: constants[weight] for weight in weights}
    if "moving_mean" in ends or operator.kind == "Normalization":  # of Keras
        return {
            "mean": ends.get("moving_mean", ends.get("mean")),
            "variance": ends.get("moving_variance", ends.get("variance")),
            "scale": ends.get("gamma"),
            "shift": ends.get("beta"),
        }
    if len(weights) != 4:
        return {}
    order = ("scale", "shift", "mean", "variance")
    return dict(zip(order, (constants[weight] for weight in weights), strict=True))


def _data(
    structure: ModelStructure, operator: Operator, channels: int
) -> tuple[tuple[float, ...], tuple[float, ...]] | None:
    """Return means and deviations that a normalisation takes its inputs to have."""
    weights = _named_weights(structure, operator)
    named = [weights.get("mean"), weights.get("variance")]
    if named[0] is None:
        named = [operator.attributes.get(name) for name in ("mean", "variance")]
    if named[0] is None or named[1] is None:
        return None
    means, variances = (_by_channel(np.asarray(values, np.float64), channels) for values in named)
    if means is None or variances is None or variances.min() < 0:
        return None
    epsilon = operator.attributes.get("epsilon", operator.attributes.get("eps", 0.0))
    deviations = np.sqrt(variances + float(epsilon or 0.0))
    return (tuple(map(float, means)), tuple(map(float, deviations))) if deviations.all() else None


def _learnt(structure: ModelStructure, operator: Operator, channels: int) -> _Change:
    weights = _named_weights(structure, operator)
    learnt = []
    for name, nothing in (("scale", np.ones(1)), ("shift", np.zeros(1))):
        weight = weights.get(name)
        value = None if weight is None else _by_channel(np.asarray(weight, np.float64), channels)
        learnt.append(nothing if value is None else value)
    return learnt[0], learnt[1]


RAW = InputOptions(scale=1)
UNIT = InputOptions(scale="1/255")
SIGNED = InputOptions(mean=(127.5,), std=(127.5,))


def fed_by(first: FirstOperators) -> InputOptions | None:
    """Return how pixels enter a file that begins so; None where that isn't sure.

    Pixels, pixels / 255 and pixels / 127.5 - 1 are told apart by what becomes of black and white: a
    network normalises to a few units around 0. Only one of them may fit.
    """
    if first.data is not None:
        means, deviations = first.data
        # Smaller statistics may be those of any scaling; pixels alone are so far from 0.
        return RAW if min(means) >= 5 and min(deviations) >= 8 else None
    if not first.is_normalising:
        return None
    fitting = [
        options
        for options, fits in ((RAW, _of_pixels), (UNIT, _of_unit), (SIGNED, _of_signed))
        if fits(first, first.made_of(options))
    ]
    if len(fitting) != 1:
        return None
    (options,) = fitting
    return options.model_copy(update={"color": "BGR"}) if _is_bgr(first, options) else options


def _of_pixels(first: FirstOperators, ends: NDArray[np.float64]) -> bool:
    del first
    spans, low, high = np.ptp(ends, axis=1), ends.min(axis=1), ends.max(axis=1)
    slack = _BELOW_ZERO * spans
    if ((spans >= _SPANS[0]) & (spans <= _SPANS[1])).all():
        return bool(((low <= slack) & (high >= -slack)).all())
    is_shifted = np.abs(spans - _PIXELS).max() <= _NEARLY * _PIXELS
    return bool(is_shifted and (np.abs(low + high) / 2 <= _OFF_CENTRE * spans).all())


def _of_unit(first: FirstOperators, ends: NDArray[np.float64]) -> bool:
    if _usual(ends) is not None:
        return True
    if first.kinds[0] != "subtract" or len(first.kinds) < 2:
        return False
    spans = np.ptp(ends, axis=1)
    means, deviations = -ends.min(axis=1) / spans, 1 / spans
    return bool(
        means.min() >= 0.1
        and means.max() <= 0.9
        and deviations.min() >= 0.1
        and deviations.max() <= 0.5
    )


def _of_signed(first: FirstOperators, ends: NDArray[np.float64]) -> bool:
    del first
    return any(
        np.allclose(ends, (0.0, most), rtol=0, atol=_NEARLY * most) for most in (1.0, _PIXELS)
    )


def _usual(ends: NDArray[np.float64]) -> Sequence[float] | None:
    """Return the means of the usual scaling that makes pixels so, but for the plain ranges; else None."""
    for (numerator, denominator), mean, std in USUAL_SCALINGS:
        for turn in (1, -1):
            means, deviations = np.resize(mean[::turn], 3), np.resize(std[::turn], 3)
            white = _PIXELS * numerator / denominator
            usual = np.stack([-means / deviations, (white - means) / deviations], axis=1)
            is_plain = not any(mean) and (numerator, denominator) != (1.0, 1.0)
            if not is_plain and np.allclose(ends, usual, rtol=0, atol=_NEARLY * np.ptp(usual)):
                return tuple(map(float, means))
    return None


def _is_bgr(first: FirstOperators, options: InputOptions) -> bool:
    """Whether the means are those of a usual scaling, blue first."""
    means = _usual(first.made_of(options))
    if means is None or len(set(means)) < 3:
        return False
    return any(
        np.allclose(means, mean[::-1]) for _, mean, _ in USUAL_SCALINGS if len(set(mean)) == 3
    )

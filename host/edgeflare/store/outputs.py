"""How a model's answer is stored: its numbers as bytes, and what else it consists of as JSON."""

import zlib
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias, get_args, overload

import numpy as np
from numpy.typing import NDArray

from edgeflare.metrics import is_scores
from edgeflare.types import (
    DetectionRules,
    Detections,
    Output,
    Transcript,
    ValueMeasure,
    ValueRules,
    Values,
)

Pieces: TypeAlias = Sequence[str] | Mapping[str, Any] | None
"""What an answer consists of beside numbers: nothing of class scores, the texts of a transcript, an
object with the labels and the rules of detections, or with the shape and the rules of values."""

_MOST_BYTES = 1 << 30


def is_answer(output: Output) -> bool:
    """Whether this is an answer: no scores mean that the device failed."""
    return not is_scores(output) or output.size > 0


@overload
def output_from(data: bytes, pieces: Pieces) -> Output: ...


@overload
def output_from(data: bytes | None, pieces: Pieces) -> Output | None: ...


def output_from(data: bytes | None, pieces: Pieces) -> Output | None:
    """Return the answer that `output_columns` was given, by its two columns.

    Raises ValueError, KeyError and TypeError for other columns.
    """
    if data is None:
        return None
    if isinstance(pieces, Mapping):
        return _values(data, pieces) if "shape" in pieces else _detections(data, pieces)
    scores = np.frombuffer(data, dtype="<f8").astype(np.float64)
    return scores if pieces is None else Transcript(tuple(pieces), scores.reshape(-1, 2))


def output_columns(name: str, output: Output | None) -> dict[str, Any]:
    """Return an answer as two columns: its numbers, and what else it consists of.

    Numbers are little-endian float64: scores; of detections the scores and boxes, [n, 5]. Those of
    values are compressed by zlib, as float32 where that loses nothing.
    """
    data, pieces = (None, None) if output is None else _stored(output)
    return {name: data, f"{name}_pieces": pieces}


def check_same_kind(original: Output, deployed: Output) -> None:
    """Raise ValueError where two answers to one sample are of two kinds, or of two lengths."""
    if (
        type(original) is not type(deployed)
        or (is_scores(original) and is_scores(deployed) and original.size != deployed.size)
        or (
            isinstance(original, Values)
            and isinstance(deployed, Values)
            and original.array.size not in (0, deployed.array.size)
            and deployed.array.size > 0
        )
    ):
        raise ValueError("the two models' answers are of two kinds")


def _stored(output: Output) -> tuple[bytes, Pieces]:
    if isinstance(output, Transcript):
        return _bytes(output.scores), list(output.pieces)
    if isinstance(output, Detections):
        numbers = np.concatenate([output.scores[:, None], output.boxes], axis=1)
        return _bytes(numbers), {"labels": output.labels.tolist(), "rules": [*output.rules]}
    if isinstance(output, Values):
        with np.errstate(over="ignore"):
            single = output.array.astype("<f4")
        exact = np.array_equal(single, output.array, equal_nan=True)
        array = single if exact else np.asarray(output.array, "<f8")
        about = {"shape": list(array.shape), "dtype": array.dtype.str, "rules": [*output.rules]}
        return zlib.compress(array.tobytes(), 1), about
    return _bytes(output), None


def _bytes(numbers: NDArray[Any]) -> bytes:
    return np.asarray(numbers, dtype="<f8").tobytes()


def _detections(data: bytes, about: Mapping[str, Any]) -> Detections:
    numbers = np.frombuffer(data, dtype="<f8").astype(np.float64).reshape(-1, 5)
    labels = np.array(about["labels"], np.int64)
    if labels.shape != numbers.shape[:1]:
        raise ValueError("labels and boxes differ in number")
    rules = DetectionRules(*about["rules"])
    shares = rules.confidence, rules.match_iou, rules.shift_iou
    if not all(_is_number(one) and 0 <= one <= 1 for one in shares) or type(rules[3]) is not bool:
        raise ValueError(f"{str(about['rules'])[:99]} are no rules of detections")
    return Detections(numbers[:, 1:].copy(), labels, numbers[:, 0].copy(), rules)


def _values(data: bytes, about: Mapping[str, Any]) -> Values:
    dtypes: dict[str, np.dtype[Any]] = {"<f4": np.dtype("<f4"), "<f8": np.dtype("<f8")}
    dtype = dtypes[about["dtype"]]
    try:
        unpacked = zlib.decompressobj().decompress(data, _MOST_BYTES)
    except zlib.error as error:
        raise ValueError("the values of an answer are damaged") from error
    array = np.frombuffer(unpacked, dtype).astype(np.float64).reshape(about["shape"])
    measure, threshold, axis, tolerances = about["rules"]
    if not (
        measure in get_args(ValueMeasure)
        and _is_number(threshold)
        and (axis is None or (type(axis) is int and -array.ndim <= axis < max(array.ndim, 1)))
        and all(_is_number(one) and one > 0 for one in tolerances)
        and len(tolerances) in (0, array.size)
    ):
        raise ValueError(f"{str(about['rules'])[:99]} are no rules of values {list(array.shape)}")
    return Values(array, ValueRules(measure, threshold, axis, tuple(tolerances)))


def _is_number(value: object) -> bool:
    return type(value) in (int, float)

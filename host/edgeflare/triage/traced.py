"""Tensors of both models on the same seeds, compared by value: no names are needed.

At most 4,096 values of a tensor and seed are kept, so that memory is bounded by the number of tensors:
four orders of axes of four seeds, 0.5 MB a tensor. While they are read, ONNX files hold 256 MB of one seed at
once, PyTorch those that are still to be read, TFLite and Keras all of one seed.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edgeflare.models.tensors.graph import ModelStructure
from edgeflare.triage.agreement import decibels

_KEPT = 4096
_FLOOR = 1e-2
"""Channels are divided by their spread, at least this share of the widest one's: else wide channels
would hide narrow ones, as those of squeeze-and-excite."""
_BALANCED = 8
_TINY = 1e-30
_STILL = 1e-12
MOST = 120.0
WORST = -99.0
Flat = NDArray[np.float64]


@dataclass
class Traced:
    """One tensor on several seeds: some of its values in several orders of its axes."""

    size: int
    orders: list[list[Flat]] = field(default_factory=list)
    """By order of axes, then by seed."""
    channels: list[NDArray[np.int64]] = field(default_factory=list)
    """The channel of each kept value, by order of axes."""
    bounds: tuple[float, float] = (np.inf, -np.inf)
    shapes: set[tuple[int, ...]] = field(default_factory=set)

    @property
    def moves(self) -> bool:
        """Whether it changes between seeds; one that doesn't is a constant."""
        first, *rest = self.orders[0]
        return not rest or any(not np.array_equal(first, values) for values in rest)


def traced(
    structure: ModelStructure, inputs: Sequence[Sequence[NDArray[Any]]], *, ordered: bool
) -> dict[str, Traced]:
    """Return the tensors of floats of a model on several inputs, those whose shape stays.

    `ordered`: in the orders of axes that another framework may use, too. Raises ModelError.
    """
    floats: dict[str, Traced] = {}
    for name, value in structure.trace_several(inputs):
        if value.dtype.kind == "f" and value.size > 1:
            _add(floats.setdefault(name, Traced(value.size)), value, structure, ordered=ordered)
    seeds = len(inputs)
    return {
        name: tensor
        for name, tensor in floats.items()
        if len(tensor.shapes) == 1 and len(tensor.orders[0]) == seeds
    }


def _add(tensor: Traced, value: NDArray[Any], structure: ModelStructure, *, ordered: bool) -> None:
    is_new = not tensor.shapes
    tensor.shapes.add(value.shape)
    if len(tensor.shapes) > 1:
        return
    with np.errstate(all="ignore"):
        tensor.bounds = (
            min(tensor.bounds[0], float(value.min())),
            max(tensor.bounds[1], float(value.max())),
        )
    axis = value.ndim - 1 if structure.channels_last or value.ndim != 4 else 1
    for place, axes in enumerate(_orders(value.ndim) if ordered else [tuple(range(value.ndim))]):
        if is_new:
            tensor.orders.append([])
            index = np.arange(value.shape[axis]).reshape(
                [-1 if at == axis else 1 for at in range(value.ndim)]
            )
            tensor.channels.append(_kept(np.broadcast_to(index, value.shape).transpose(axes)))
        tensor.orders[place].append(_kept(value.transpose(axes)).astype(np.float64))


def _orders(axes: int) -> Iterator[tuple[int, ...]]:
    yield tuple(range(axes))
    if axes == 4:
        yield from ((0, 2, 3, 1), (0, 3, 1, 2))
    if axes == 3:
        yield (0, 2, 1)
    if axes >= 3:
        yield (1, 0, *range(2, axes))


def _kept(values: NDArray[Any]) -> NDArray[Any]:
    """Return some values, evenly spread over the tensor; those places alone are read."""
    if values.size <= _KEPT:
        return values.ravel()
    places = np.linspace(0, values.size - 1, _KEPT).astype(int)
    return np.asarray(values[np.unravel_index(places, values.shape)])


def best_matches(
    original: Mapping[str, Traced], deployed: Mapping[str, Traced], *, balanced: bool
) -> dict[str, tuple[float, str]]:
    """Return how well each deployed tensor agrees with the original's best one of its size, in dB.

    `balanced`: values are divided by the spread of their channel in the original, for integers.
    """
    by_size: dict[int, list[tuple[str, Flat, Flat, float]]] = {}
    for name, tensor in original.items():
        for values, channels in zip(tensor.orders, tensor.channels, strict=True):
            joined = np.concatenate(values)
            weights = _weights(joined, np.tile(channels, len(values)), balanced=balanced)
            signal = float((((joined - joined.mean()) * weights) ** 2).mean())
            if balanced and (weights != 1).any():  # of divided channels the signal is 1 by itself
                signal = min(signal, 1.0)
            if np.isfinite(signal) and signal >= _STILL:
                by_size.setdefault(tensor.size, []).append((name, joined, weights, signal))
    matches = {}
    for name, tensor in deployed.items():
        own = np.concatenate(tensor.orders[0])
        if tensor.size in by_size and np.isfinite(own).all() and own.std() >= _STILL:
            matches[name] = _best(own, by_size[tensor.size])
    return matches


def _weights(values: Flat, channels: NDArray[np.int64], *, balanced: bool) -> Flat:
    counts = np.bincount(channels).clip(1)
    if not balanced or not 1 < len(counts) <= len(values) // _BALANCED:
        return np.ones_like(values)
    means = np.bincount(channels, values) / counts
    spread = np.sqrt(np.bincount(channels, (values - means[channels]) ** 2) / counts)
    return np.asarray(1 / np.maximum(spread, _FLOOR * spread.max() + _TINY)[channels])


def _best(values: Flat, candidates: Sequence[tuple[str, Flat, Flat, float]]) -> tuple[float, str]:
    best = WORST, ""
    for name, original, weights, signal in candidates:
        error = float((((original - values) * weights) ** 2).mean())
        agreement = decibels(10 * np.log10((signal + _TINY) / (error + _TINY)))
        if agreement > best[0]:
            best = agreement, name
    return float(np.clip(best[0], 0, MOST)), best[1] or candidates[0][0]

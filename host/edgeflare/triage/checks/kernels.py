"""Weights of both files, matched by size and correlation over the orders of their axes."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import permutations
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from edgeflare.models.tensors.graph import ModelStructure
from edgeflare.triage.cause import ANOTHER_MODEL, COARSE, CONSTANT, LOCATED, WEAK, Cause, CauseKind
from edgeflare.triage.pair import Pair

_FEWEST_VALUES, _MOST_VALUES = 32, 4_000_000
_LIKE, _PARTNER, _SURE, _CHANNEL = 0.8, 0.95, 0.9999, 0.5
_COARSE, _COARSER = 20.0, 10.0
_CERTAIN = 64
"""A kernel of so many values fits none by chance."""
_LOST = 0.9
"""In another model's file so large a part of the weights has no partner."""
_EMPTY = (0.03, 0.5)
_FEWEST_CHANNELS, _FEWEST_BIASES = 8, 4
_SMALL_CHANNEL = 0.05
"""Channels below this share of the median count as equal: an STFT's row of sines 0 is empty by nature."""
_SAME_NUMBERS = 0.02
_SHOWN = 3
_RECURRENT = ("gru", "lstm", "rnn")
Weights = NDArray[np.float32]


class Partner(NamedTuple):
    """A kernel's best one of the original: median correlation of channels, its name, that of each."""

    correlation: float
    name: str | None
    channels: NDArray[np.float64]


def kernels(pair: Pair) -> Iterator[Cause]:
    """Yield what differs in the weights: another model's, empty channels, coarse ones, another bias."""
    first, second = (model.structure for model in pair.models)
    if first is None or second is None or pair.original.number_format == "int8":
        return
    originals, deployed = _kernels_of(first), _kernels_of(second)
    partners = {name: _partner(name, weights, originals) for name, weights in deployed.items()}
    sizes = {weights.size for weights in originals.values()}
    sized = [name for name, weights in deployed.items() if weights.size in sizes]
    lost = [name for name in sized if partners[name].correlation < _LIKE]
    same = [name for name in lost if _holder(deployed[name], originals) is not None]
    # small kernels have partners by chance
    values = sum(deployed[name].size for name in sized)
    fits = any(
        partners[name].correlation >= _PARTNER and deployed[name].size >= _CERTAIN for name in sized
    )
    is_lost = sum(deployed[name].size for name in lost) >= _LOST * values and not fits
    is_other = is_lost and not same and (bool(sized) or len(originals) > 1)
    if len(deployed) > 1 and is_other:
        recurrent = any(
            part in operator.kind.lower() for operator in first.operators for part in _RECURRENT
        )  # whose gates may be reordered, and kept in tensors of other sizes
        if len(sized) > 1 or not recurrent:
            evidence = {"kernels": len(deployed), "sized": len(sized), "lost": len(lost)}
            yield Cause(
                *("another-model", "no-kernel-fits", "read", ANOTHER_MODEL),
                evidence=evidence,
                gain=8,
            )
    else:
        for name in lost[:_SHOWN]:
            holder = _holder(deployed[name], originals)
            yield _read(
                "conversion",
                "kernel-without-partner" if holder is None else "kernel-reordered",
                WEAK if holder is not None else 2.3,
                name,
                {"of": holder, "correlation": partners[name].correlation},
            )
    yield from _coarse(pair, partners)
    yield from _empty(partners)
    yield from _biases(first, second, partners, originals, deployed)


def _read(
    kind: CauseKind, what: str, strength: float, name: str, evidence: Mapping[str, object]
) -> Cause:
    return Cause(kind, what, "read", strength, names=(name,), evidence=evidence, gain=8)


def _kernels_of(structure: ModelStructure) -> dict[str, Weights]:
    return {
        name: weights
        for name, weights in structure.constants.items()
        if weights.ndim >= 2 and weights.size >= _FEWEST_VALUES and float(weights.std()) > 0
    }


def _partner(called: str, weights: Weights, originals: Mapping[str, Weights]) -> Partner:
    best = Partner(0.0, None, np.zeros(0))
    sizes = tuple(n for n in weights.shape if n != 1)
    for name in sorted(originals, key=lambda name: name != called):  # most keep their names
        original = originals[name]
        if original.size != weights.size or original.size > _MOST_VALUES:
            continue
        if (
            best.correlation >= _SURE
        ):  # none fits better, and there are many of one size in a transformer
            break
        for axes in permutations(range(original.ndim)):
            turned = original.transpose(axes)
            if tuple(n for n in turned.shape if n != 1) != sizes:
                continue
            for axis in range(weights.ndim):  # each channel's scale is free: a folded BatchNorm
                if weights.shape[axis] < 2 and axis:
                    continue
                channels = _correlations(turned.reshape(weights.shape), weights, axis)
                median = float(np.median(channels))
                if median > best.correlation:
                    best = Partner(median, name, channels)
    return best


def _correlations(first: Weights, second: Weights, axis: int) -> NDArray[np.float64]:
    rows = [
        np.moveaxis(weights, axis, 0).reshape(weights.shape[axis], -1)
        for weights in (first, second)
    ]
    original, deployed = (row.astype(np.float64) for row in rows)
    lengths = np.linalg.norm(original, axis=1)
    products = (original * deployed).sum(axis=1)
    correlations = products / (lengths * np.linalg.norm(deployed, axis=1) + 1e-20)
    return np.where(lengths < _SMALL_CHANNEL * np.median(lengths), 1.0, correlations)


def _holder(weights: Weights, originals: Mapping[str, Weights]) -> str | None:
    """Return the kernel of the original with the same numbers in another order."""
    ordered, size = np.sort(weights.ravel()), float(np.abs(weights).max())
    for name, original in originals.items():
        if original.size == weights.size:
            apart = float(np.abs(np.sort(original.ravel()) - ordered).max())
            if apart < _SAME_NUMBERS * size:
                return name
    return None


def _coarse(pair: Pair, partners: Mapping[str, Partner]) -> Iterator[Cause]:
    """Yield the kernel that is much coarser than the others, or only roughly that of the original."""
    near = {
        name: partner
        for name, partner in partners.items()
        if partner.name and partner.correlation >= _LIKE
    }
    if pair.number_format != "float32":
        ratios = {
            name: 10 * float(np.log10(1 / max(1e-7, 1 - min(1.0, partner.correlation) ** 2)))
            for name, partner in near.items()
        }
        if ratios:
            name = min(ratios, key=lambda kernel: ratios[kernel])
            median = float(np.median(list(ratios.values())))
            if ratios[name] < min(_COARSE, median - _COARSER):
                evidence = {"ratio": ratios[name], "median": median}
                yield _read("compression", "coarse-kernel", COARSE, name, evidence)
    least = _SURE if pair.number_format == "float32" else 0.99
    rough = sorted(
        (partner.correlation, name) for name, partner in near.items() if partner.correlation < least
    )
    if rough and pair.number_format != "float16":
        correlation, name = rough[0]
        is_float = pair.number_format == "float32"
        kind: CauseKind = "conversion" if is_float else "compression"
        evidence = {"correlation": correlation}
        yield _read(kind, "rough-kernel", 2.1 if is_float else WEAK, name, evidence)


def _empty(partners: Mapping[str, Partner]) -> Iterator[Cause]:
    for name, partner in partners.items():
        unlike = partner.channels < _CHANNEL
        if (
            partner.name
            and partner.correlation > _PARTNER
            and len(unlike) >= _FEWEST_CHANNELS
            and _EMPTY[0] < unlike.mean() < _EMPTY[1]
        ):
            evidence = {"channels": int(unlike.sum()), "of": len(unlike), "partner": partner.name}
            yield _read("conversion", "channels-differ", CONSTANT, name, evidence)


def _biases(
    first: ModelStructure,
    second: ModelStructure,
    partners: Mapping[str, Partner],
    originals: Mapping[str, Weights],
    deployed: Mapping[str, Weights],
) -> Iterator[Cause]:
    """Yield an operator whose kernel fits and whose bias is empty, or another one."""
    readers = [
        {name: operator for operator in structure.operators for name in operator.inputs}
        for structure in (first, second)
    ]
    for name, partner in partners.items():
        if partner.name is None or partner.correlation < _PARTNER:
            continue
        operators = readers[0].get(partner.name), readers[1].get(name)
        if operators[0] is None or operators[1] is None:
            continue
        biases = [
            _biases_of(structure, inputs)
            for structure, inputs in (
                (first, operators[0].inputs),
                (second, operators[1].inputs),
            )
        ]
        if not all(biases) or biases[0][-1].size != biases[1][-1].size:
            continue
        own, there = biases[0][-1].astype(np.float64), biases[1][-1].astype(np.float64)
        size = float((own**2).mean())
        scaled = abs(float(deployed[name].std() / originals[partner.name].std()) - 1) < 0.02
        if size**0.5 <= 1e-3 or not scaled:
            continue
        ratio = 10 * float(np.log10(size / (float(((own - there) ** 2).mean()) + 1e-20)))
        if ratio < 1:
            is_empty = not there.any()
            strength = LOCATED + 0.05 if is_empty else COARSE
            evidence = {"empty": is_empty, "ratio": ratio, "partner": operators[0].name}
            yield _read("conversion", "bias-differs", strength, operators[1].name, evidence)


def _biases_of(structure: ModelStructure, names: Sequence[str]) -> list[Weights]:
    constants = (structure.constants.get(name) for name in names)
    return [
        bias
        for bias in constants
        if bias is not None and bias.ndim == 1 and bias.size >= _FEWEST_BIASES
    ]

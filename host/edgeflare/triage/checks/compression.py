"""What int8 costs this model, by a fresh int8 copy of the original; and outputs whose one scale is too coarse."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from edgeflare.errors import EdgeFlareError
from edgeflare.models.quantized import (
    Recipe,
    calibration_inputs,
    check_quantizable,
    make_quantized,
)
from edgeflare.triage.agreement import MARGIN, Values, by_seed, in_shape_of, least_agreement
from edgeflare.triage.cause import BLUNT, LIKELY, OUTPUT_SCALE, REFERENCE, Cause
from edgeflare.triage.model import HostModel
from edgeflare.triage.pair import LOSSY_CLASSES, Pair

_MOST_BYTES = 6 << 20
_CALIBRATED_ON = 40


def is_below_reference(pair: Pair) -> bool:
    """Whether an int8 pair is more than `MARGIN` below a fresh int8 copy of its original, if one was made."""
    return pair.reference is not None and pair.agreement < pair.reference - MARGIN


def fresh_copy(pair: Pair) -> Iterator[Cause]:
    """Measure what a fresh int8 copy of the original reaches; it is no cause."""
    _measure(pair)
    yield from ()


def reference(pair: Pair) -> Iterator[Cause]:
    """Yield whether the loss is what int8 costs this model, or whether it doesn't bear int8 at all."""
    _measure(pair)
    level = pair.reference
    if level is None:
        return
    evidence = {
        "reference": level,
        "agreement": pair.agreement,
        "per_channel": _is_per_channel(pair),
        "same_class": (pair.reference_same_class, pair.same_class),
    }
    same = pair.reference_same_class
    if level < pair.expected or (same is not None and same < LOSSY_CLASSES):
        what, strength, gain = "int8-breaks-it", REFERENCE, 10.0
    elif pair.agreement >= level - MARGIN:
        what, strength, gain = "as-int8-costs", LIKELY + 0.2, 6.0
    else:
        pair.ruled_out["reference"] = evidence
        what, strength, gain = "more-than-int8-costs", BLUNT + 0.05, 1.0
    yield Cause("compression", what, "indicated", strength, evidence=evidence, gain=gain)


def _is_per_channel(pair: Pair) -> bool:
    structure = pair.deployed.structure
    return structure is not None and structure.is_per_channel


def _measure(pair: Pair) -> None:
    """Set what a fresh copy reaches, once; None where none can be made."""
    file, structure = pair.original.file, pair.original.structure
    is_float = pair.original.number_format == "float32"
    if pair.has_reference or pair.number_format != "int8" or structure is None or not is_float:
        return
    pair.has_reference = True
    if file.path.stat().st_size > _MOST_BYTES:
        pair.ruled_out["reference"] = {"bytes": file.path.stat().st_size}
        return
    recipe = Recipe("reference", per_channel=_is_per_channel(pair))
    problems: list[str] = []
    try:
        check_quantizable(file.path)
        inputs = calibration_inputs(pair.seeds.samples[:_CALIBRATED_ON], pair.original.spec)
        with TemporaryDirectory(prefix="edgeflare-") as folder:
            copies = make_quantized(
                file.path,
                [recipe],
                inputs,
                Path(folder),
                lambda _, problem: problems.append(problem),
            )
            if not copies:
                pair.ruled_out["reference"] = {"problem": problems[0]}
                return
            copy = HostModel(replace(file, path=copies[recipe.name], runtime="onnx", options={}))
            answers = pair.answers(copy)
    except EdgeFlareError as error:
        pair.ruled_out["reference"] = {"problem": str(error)}
        return
    if answers is None:
        return
    original, classes = pair.both[0], pair.classes_at
    pair.reference = least_agreement(original, answers)
    if classes is not None and pair.same_class is not None:
        tops = [by_seed(outputs[classes]).argmax(axis=1) for outputs in (original, answers)]
        pair.reference_same_class = float((tops[0] == tops[1]).mean())


_MOST_LEVELS, _FINER, _STEP, _STEPS = 8, 20, 0.25, 2.0
_FINEST = 1 / 128
"""8 bits of a probability are as fine: classes that no seed shows have one value there."""
_CHANNELS = (2, 128)
_SHARE = 1 / 3
"""So many channels are coarse: a healthy detector has 19 of 85, of rare classes; faults 10 of 14, 52 of 85."""
_DIGITS = 7


def output_scale(pair: Pair) -> Iterator[Cause]:
    """Yield outputs of which a third of the channels take at most 8 values, wide apart."""
    first, second = pair.both
    second, order = pair.exchanged_outputs or second, pair.output_order
    for place, (original, stored) in enumerate(zip(first, second, strict=False)):
        deployed = in_shape_of(stored, original)
        if original.shape != deployed.shape or original.ndim < 3:
            continue
        # which axis has the channels isn't known: it is the shortest, and rows of another one have all
        # channels' levels, or are anchors of which many are never sure of anything
        shortest = min(size for size in (*original.shape[1:], _CHANNELS[1]) if size > 1)
        for axis in range(1, original.ndim):
            if original.shape[axis] > shortest:
                continue
            if _CHANNELS[0] <= original.shape[axis] <= _CHANNELS[1]:
                name = pair.deployed.outputs[place if order is None else order[place]].name
                evidence = _coarse_channels(original, deployed, axis, _step_of(pair, name))
                if evidence is not None:
                    yield Cause(
                        *("output-scale", "one-scale", "located", OUTPUT_SCALE),
                        names=(name,),
                        evidence=evidence,
                        gain=20,
                    )
                    break


def _step_of(pair: Pair, name: str) -> float:
    """Return how far the values of an output's integers are apart; 0: it has none."""
    structure = pair.deployed.structure
    grid = None if structure is None else structure.grids.get(name)
    return 0.0 if grid is None else grid.scale


def _coarse_channels(
    original: Values, deployed: Values, axis: int, scale: float
) -> dict[str, Any] | None:
    """Return which channels of an axis are too coarse, where that is a third of them.

    `scale`: the step of the output's integers; a channel may lie between two of them altogether.
    """
    count = original.shape[axis]
    rows = [np.moveaxis(output, axis, 0).reshape(count, -1) for output in (original, deployed)]
    coarse = []
    for channel, (fine, coarsely) in enumerate(zip(*rows, strict=True)):
        levels, finer = np.unique(coarsely), len(np.unique(np.round(fine, _DIGITS)))
        # a channel that is constant in the original has few values as well, and is no fault
        if 0 < scale <= _FINEST or len(levels) > _MOST_LEVELS or finer <= _FINER * len(levels):
            continue
        # where the integers aren't known, few values of a rare class look like it, unless many channels do
        step = scale or float(np.diff(levels).min(initial=0))
        width = float(np.ptp(fine))
        is_rounding = float(np.abs(coarsely - fine).max()) <= _STEPS * step
        if is_rounding and step >= _STEP * width > 0:
            coarse.append((channel, len(levels), step))
    if len(coarse) < _SHARE * count:
        return None
    channels = [channel for channel, _, _ in coarse]
    return {
        "channels": channels,
        "of": count,
        "levels": max(levels for _, levels, _ in coarse),
        "step": coarse[0][2],
        "reach": float(rows[1][channels].max()),
        "original_reach": float(rows[0][channels].max()),
        "largest": float(np.abs(rows[0]).max()),
    }

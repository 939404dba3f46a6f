"""The first operator whose inputs agree with the original and whose output doesn't, found by values."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from edgeflare.errors import ModelError
from edgeflare.models.tensors.graph import ACTIVATIONS, ROUNDING, Grid, ModelStructure, Operator
from edgeflare.triage.agreement import by_seed
from edgeflare.triage.cause import BLUNT, CUT_OFF, LOCATED, REMARK, Cause
from edgeflare.triage.checks.weights import compared_weights, weights_fit
from edgeflare.triage.pair import Pair
from edgeflare.triage.traced import WORST, Traced, best_matches, traced

_SEEDS, _WORST_SEEDS = 4, 2
_CAPS = {"float32": 100.0, "float16": 60.0}
_CAP = 40.0
"""More than this is rounding alone: a fall from there to there is none."""
_FLOAT_AGREES, _FLOAT_FALL, _FLOAT_LARGEST = 45.0, 20.0, 15.0
_FALL, _BELOW, _SHARP, _SHARP_BELOW, _HARD, _HARD_FROM = 8.0, 25.0, 15.0, 12.0, 3.0, 15.0
"""Of 26 healthy int8 pairs the first convolution falls by 4 to 14 dB, others by at most 8."""
_RECOVERED = 6.0
_SAME_INPUT = {"float32": 50.0}
_SAME_INPUT_ELSE = 10.0
_CUT, _CUT_WHERE_LOST = 0.02, 0.001
_MAY_CUT_OFF = 12.0
"""Quantisers that cut off 3 % of an input's values left healthy int8 pairs 14 to 18 dB, 40 without."""
_USED = 0.12
"""Where what the original has takes a smaller part of the integers, three of their bits are lost."""
_UNLIKE = (
    "argmax",
    "softmax",
    "max",
    "argmin",
    "min",
    "relu",
    "clip",
    "mean",
    "average",
    "sum",
    "instancenorm",
    "batchnorm",
    "sigmoid",
)
"""Parts of the names of operators none of which does what another does."""
_OTHERWISE = ("differ", "other-order", "unrelated")
_ADDED = ("instancenorm", "min")
"""What no converter adds by itself, whatever the original has there."""
_CLIPPING = {"Clip", "Relu"}
_SAME = {"average": "mean", "avg": "mean", "clip": "relu"}
_NEUTRAL = {"pads": 0, "strides": 1, "dilations": 1, "output_padding": 0}
_DEPTH = 5
_SHOWN = 3
HEAVY = (
    *("conv", "matmul", "gemm", "fully", "pool", "softmax", "reduce", "mean", "gru", "lstm", "rnn"),
    *("resize", "upsample", "argmax", "topk", "concat", "gather", "addmm", "linear", "bmm"),
)
"""Parts of the names of operators that are no mere scaling or moving: behind them nothing is excused."""
_JOINING = ("Add", "Concat", "Mul", "ADD", "CONCATENATION", "MUL")
_MOVING = (
    *("reshape", "flatten", "transpose", "squeeze", "quantize", "identity", "dropout", "cast"),
    *("pad", "getitem", "permute", "view"),
)
_OF_CONSTANTS = ("Constant", "Shape", "Size", "SHAPE")


class Fall(NamedTuple):
    """How well an operator's inputs and its output agree with the original, in dB."""

    operator: Operator
    before: float
    behind: float
    fall: float


@dataclass(frozen=True)
class Layers:
    """The tensors of both models compared: the falls in order, and the original's partners."""

    falls: Sequence[Fall]
    matches: Mapping[str, tuple[float, str]]
    sources: Mapping[str, str | None]
    original: Mapping[str, Traced]
    first: float | None
    """How well the two inputs agree."""


def layers(pair: Pair) -> Iterator[Cause]:
    """Yield the operator of the deployed model behind which its tensors part from the original's."""
    structures = [model.structure for model in pair.models]
    first, second = structures
    if first is None or second is None:
        missing = [model.unread for model in pair.models if model.structure is None]
        pair.ruled_out["layers"] = {"unread": missing}
        return
    try:
        compared = compare(pair, first, second)
    except (ModelError, MemoryError) as error:
        pair.ruled_out["layers"] = {"unread": [str(error)]}
        return
    limit = _SAME_INPUT.get(pair.number_format, _SAME_INPUT_ELSE)
    if not compared.falls or (compared.first is not None and compared.first < limit):
        pair.ruled_out["layers"] = {"inputs": compared.first, "compared": len(compared.falls)}
        return
    hit, is_sharp, is_hard = _culprit(compared.falls, pair.number_format)
    if hit is None and pair.loses_much:
        # so much is lost that a blunt fall tells more than none, where integers cut off
        largest = max(compared.falls, key=lambda drop: drop.fall)
        if largest.fall >= _FALL and _unlike_range(
            first, second, compared, largest.operator, _CUT_WHERE_LOST
        ):
            hit = largest
    if hit is None:
        largest = max(compared.falls, key=lambda drop: drop.fall)
        pair.ruled_out["layers"] = {"largest": largest.fall, "at": largest.operator.name}
        return
    pair.sharp_layer = _place(second, hit.operator) if is_sharp else None
    yield _cause(pair, first, second, compared, hit, is_sharp=is_sharp, is_hard=is_hard)


def compare(pair: Pair, first: ModelStructure, second: ModelStructure) -> Layers:
    """Return the agreement of both models' tensors on four seeds. Raises ModelError."""
    places = _traced_places(pair)
    inputs = [[pair.tensors(model, place) for place in places] for model in pair.models]
    original = traced(first, inputs[0], ordered=True)
    deployed = traced(second, inputs[1], ordered=False)
    still = {name for name, tensor in deployed.items() if not tensor.moves}
    # as a gate that is shut for all of these seeds: the original has a tensor of that size that is still, too
    sizes = {tensor.size for tensor in original.values() if not tensor.moves}
    unmoved = frozenset(name for name in still if deployed[name].size in sizes)
    original = {name: tensor for name, tensor in original.items() if tensor.moves}
    deployed = {name: tensor for name, tensor in deployed.items() if tensor.moves}
    balanced = pair.number_format in ("int8", "int16")
    matches = best_matches(original, deployed, balanced=balanced)
    cap = _CAPS.get(pair.number_format, _CAP)
    falls, sources = _falls(second, matches, deployed, still, unmoved, cap)
    entry = next((name for name in second.inputs if name in matches), None)
    at_entry = None if entry is None else matches[entry][0]
    return Layers(falls, matches, sources, original, at_entry)


def _traced_places(pair: Pair) -> list[int]:
    """Return the seeds that are traced: those whose answers are furthest apart, then the first ones."""
    errors = np.zeros(len(pair.places))
    for first, second in zip(*pair.both, strict=False):
        if first.shape == second.shape:
            apart = by_seed((first - second) ** 2).sum(axis=1) / (float(first.var()) + 1e-30)
            errors += np.nan_to_num(apart)
    worst = [place for place in np.argsort(-errors, kind="stable")[:_WORST_SEEDS] if errors[place]]
    chosen = [pair.places[place] for place in worst]
    return [*chosen, *(place for place in pair.places if place not in chosen)][:_SEEDS]


def _falls(
    structure: ModelStructure,
    matches: Mapping[str, tuple[float, str]],
    tensors: Mapping[str, Traced],
    still: Collection[str],
    unmoved: frozenset[str],
    cap: float,
) -> tuple[list[Fall], dict[str, str | None]]:
    readers: dict[str, list[Operator]] = {}
    for reader in structure.operators:
        for name in reader.inputs:
            readers.setdefault(name, []).append(reader)

    @cache
    def excused(name: str, depth: int = _DEPTH) -> float:
        """The agreement of a tensor, or a better one behind it through light operators with one moving
        input. An excuse through an addition hid a dead channel."""
        best = matches[name][0] if name in matches else WORST
        for reader in readers.get(name, ()) if depth else ():
            moving = sum(source in tensors and source not in still for source in reader.inputs)
            if not is_heavy(reader) and moving <= 1:
                best = max([best, *(excused(output, depth - 1) for output in reader.outputs)])
        return best

    def behind(operator: Operator) -> float:
        """The best agreement anywhere behind: where only scales between layers changed, it recovers."""
        seen: set[str] = set()
        names = list(operator.outputs)
        while names:
            for reader in readers.get(names.pop(), ()):
                new = [name for name in reader.outputs if name not in seen]
                seen.update(new)
                names += new
        return max((matches[name][0] for name in seen if name in matches), default=WORST)

    level = {
        name: min(cap, matches[name][0] if name in matches else cap) for name in structure.inputs
    }
    sources: dict[str, str | None] = {}
    falls = []
    for operator in structure.operators:
        entering = [name for name in operator.inputs if name in level]
        leaving = [name for name in operator.outputs if name not in still]
        if not entering or operator.kind in _OF_CONSTANTS:
            continue
        before = min(level[name] for name in entering)
        if not leaving:  # what it is given changes from seed to seed, and what it makes doesn't
            if not unmoved.issuperset(operator.outputs) and behind(operator) < before - _RECOVERED:
                falls.append(Fall(operator, before, 0.0, before))
            continue
        for name in leaving:
            if name in matches:
                sources[name], level[name] = name, min(cap, excused(name))
            else:  # no partner of its size (padding, codes): passed through
                sources[name] = next((sources.get(source, source) for source in entering), None)
                level[name] = before
        matched = [level[name] for name in leaving if name in matches]
        if matched:
            fall = before - max(matched)
            if fall >= _FALL and behind(operator) >= before - _RECOVERED:
                fall = 0.0
            falls.append(Fall(operator, before, max(matched), fall))
    return falls, sources


def is_heavy(operator: Operator) -> bool:
    """Whether an operator does more than scale or move its one input."""
    return any(part in operator.kind.lower() for part in HEAVY)


def _culprit(falls: Sequence[Fall], number_format: str) -> tuple[Fall | None, bool, bool]:
    """Return the operator, whether the fall is sharp, and whether it is too deep for rounding."""
    largest = max(falls, key=lambda drop: drop.fall)
    if number_format in _CAPS:
        agrees = _CAPS[number_format] - _FLOAT_AGREES
        hit = next(
            (drop for drop in falls if drop.before >= agrees and drop.fall >= _FLOAT_FALL), None
        )
        if hit is None and largest.fall >= _FLOAT_LARGEST:
            hit = largest
        return hit, hit is not None and hit.fall >= _FLOAT_FALL, False
    if largest.fall < _FALL or largest.behind >= _BELOW:
        return None, False, False
    sharp = largest.fall >= _SHARP and largest.behind < _SHARP_BELOW
    is_hard = sharp and largest.behind < _HARD and largest.before > _HARD_FROM
    return largest, sharp, is_hard and is_heavy(largest.operator)


def _place(structure: ModelStructure, operator: Operator) -> int:
    """Return how many operators that compute stand between the inputs and this one."""
    passing = {"Constant", "Reshape", "Transpose"} | ROUNDING
    makers = {name: step for step in structure.operators for name in step.outputs}
    before: dict[str, Operator] = {}
    steps = [operator]
    while steps:
        step = steps.pop()
        makes = [makers[name] for name in step.inputs if name in makers]
        steps += [maker for maker in makes if maker.name not in before]
        before |= {maker.name: maker for maker in makes}
    return sum(step.kind not in passing for step in before.values())


def _cause(
    pair: Pair,
    first: ModelStructure,
    second: ModelStructure,
    compared: Layers,
    hit: Fall,
    *,
    is_sharp: bool,
    is_hard: bool,
) -> Cause:
    operator = hit.operator
    evidence: dict[str, Any] = {
        "operator": operator.kind,
        "before": hit.before,
        "behind": hit.behind,
    }
    there = _original_there(pair, first, second, compared, hit)
    is_conversion = _is_conversion(
        pair.number_format, operator, there, is_sharp=is_sharp, is_hard=is_hard
    )
    # integers are calibrated on what the faulty operator computes: they don't hold the original's values
    is_otherwise = is_conversion and _is_otherwise(operator, there)
    share = _CUT_WHERE_LOST if pair.loses_much else _CUT
    cut = None if is_otherwise else _unlike_range(first, second, compared, operator, share)
    evidence |= there if cut is None else cut
    if there.get("weights") == "unrelated" and is_conversion:
        kind, strength = "another-model", LOCATED
    elif cut is not None:
        kind, strength = "calibration", CUT_OFF
    elif is_sharp and operator.kind in ROUNDING and there.get("original") in _JOINING:
        # rounding alone costs less, where the range fits: what the original joins isn't joined here
        kind, strength = "conversion", LOCATED
    elif is_conversion:
        kind, strength = "conversion", LOCATED if is_sharp else BLUNT
    else:
        kind, strength = "compression", LOCATED if is_sharp else BLUNT
    # healthy by itself: what rounding may cost is told apart from a fault
    slight = pair.is_slightly_off or (
        pair.number_format == "int8"
        and not pair.is_off
        and not is_sharp
        and pair.agreement >= _MAY_CUT_OFF
    )
    return Cause(
        kind if not slight or kind != "conversion" else "compression",  # type: ignore[arg-type]
        "slight" if slight else "layer",
        "located",
        REMARK + 0.02 if slight else strength,
        names=_names(first, second, operator, evidence),
        evidence=evidence,
        gain=1 if slight else hit.fall,
        is_remark=slight,
    )


def _names(
    first: ModelStructure,
    second: ModelStructure,
    operator: Operator,
    evidence: Mapping[str, Any],
) -> tuple[str, ...]:
    """Return the operator's name; with the original's where a converter gave it one of its own.

    Of another operator than the original has there, that before it tells the place as well.
    """
    named = {name for step in first.operators for name in (step.name, *step.outputs)}
    names = [operator.name]
    if operator.name not in named and "original_name" in evidence:
        names.append(evidence["original_name"])
    if evidence.get("original", operator.kind) != operator.kind:
        before = (step.name for step in second.operators if {*step.outputs} & {*operator.inputs})
        names += [name for name in before if name in named][:1]
    return tuple(dict.fromkeys(names))


def _is_conversion(
    number_format: str,
    operator: Operator,
    evidence: Mapping[str, Any],
    *,
    is_sharp: bool,
    is_hard: bool,
) -> bool:
    """Whether a fall is more than the rounding of numbers explains."""
    if operator.kind in ROUNDING:
        return False
    if number_format in _CAPS:  # half precision rounds to 60 dB
        return number_format == "float32" or is_sharp
    if _is_otherwise(operator, evidence):
        return is_sharp
    return is_hard and evidence.get("weights") != "rounded"


def _is_otherwise(operator: Operator, evidence: Mapping[str, Any]) -> bool:
    """Whether the operator has other attributes or weights than the original's, or is another one."""
    if evidence.get("attributes") or evidence.get("weights") in _OTHERWISE:
        return True
    kinds = operator.kind, evidence.get("original", "")
    if kinds[0] != kinds[1] and ACTIVATIONS.issuperset(kinds) and set(kinds) != _CLIPPING:
        return True
    does = [_what_it_does(kind) for kind in kinds]
    is_told = all(does) or (does[0] in _ADDED and "original" in evidence)
    return is_told and does[0] != does[1]


def _what_it_does(kind: str) -> str:
    plain = kind.lower().replace("_", "")
    part = next((part for part in (*_UNLIKE, *_SAME) if part in plain), "")
    return _SAME.get(part, part)


def _unlike_range(
    first: ModelStructure,
    second: ModelStructure,
    compared: Layers,
    operator: Operator,
    least_share: float = _CUT,
) -> dict[str, Any] | None:
    """Return that the integers of a tensor there can't hold what the original has, or few of them do."""
    for name in (*operator.outputs, *operator.inputs):
        grid = _grid_of(second, name)
        source = name if name in compared.matches else compared.sources.get(name) or name
        partner = compared.matches[source][1] if source in compared.matches else None
        if grid is None or partner is None or partner not in compared.original:
            continue
        least, largest = grid.range
        values = np.concatenate(compared.original[partner].orders[0])
        if least >= -grid.scale:  # a ReLU may live in the range
            above = values[values > 0]
            share = float((above > largest + grid.scale).mean()) if above.size else 0.0
        else:
            outside = (values < least - grid.scale) | (values > largest + grid.scale)
            share = float(outside.mean())
        low, high = compared.original[partner].bounds
        evidence = {"range": (least, largest), "original_range": (low, high)}
        is_bounded = _is_bounded(first, compared, partner, largest + grid.scale)
        if share > least_share and not is_bounded:
            return {**evidence, "cut_off": share}
        used = (max(high, 0.0) - min(low, 0.0)) / (largest - least)
        # an operator of which nothing moves any more was not lost by rounding
        is_dead = operator.kind not in ROUNDING and not any(
            output in compared.matches for output in operator.outputs
        )
        if used < _USED and not is_dead:
            return {**evidence, "used": used}
    return None


def _grid_of(structure: ModelStructure, name: str) -> Grid | None:
    """Return the integers that an operator's tensor is held in; of ONNX what quantises it next."""
    quantising = (
        step
        for step in structure.operators
        if step.kind == "QuantizeLinear" and step.inputs[0] == name
    )
    held = next((step.outputs[0] for step in quantising), name)
    makers = (step.kind for step in structure.operators if name in step.outputs)
    if held == name and next(makers, "") == "DequantizeLinear":
        return None
    return structure.grids.get(held)


def _is_bounded(first: ModelStructure, compared: Layers, partner: str, largest: float) -> bool:
    """Whether the original itself bounds the tensor's values, as by ReLU6 behind it: then it is no fault."""
    near = {partner}
    for step in first.operators:
        moving = sum(name in compared.original for name in step.inputs)
        if near & set(step.inputs) and not is_heavy(step) and moving == 1:
            near |= set(step.outputs)
    return any(
        name in compared.original and compared.original[name].bounds[1] <= largest for name in near
    )


def _original_there(
    pair: Pair, first: ModelStructure, second: ModelStructure, compared: Layers, hit: Fall
) -> dict[str, Any]:
    """Return what the original does at the place: its operator, unequal attributes, and weights."""
    operator = hit.operator
    partner = None
    for name in operator.inputs:
        source = compared.sources.get(name) or name
        if source in compared.matches and compared.matches[source][0] >= hit.before - 3:
            partner = compared.matches[source][1]
            break
    near, following = set() if partner is None else {partner}, []
    for candidate in first.operators:
        if near & set(candidate.inputs):
            if (
                any(part in candidate.kind.lower() for part in _MOVING)
                and "pool" not in candidate.kind.lower()
            ):
                near |= set(candidate.outputs)
            else:
                following.append(candidate)
    following.sort(key=lambda candidate: -weights_fit(first, second, candidate, operator))
    alike = [
        candidate for candidate in following if _family(candidate.kind) == _family(operator.kind)
    ]
    named = [step for step in first.operators if step.name == operator.name]
    there = next(iter([*alike, *following, *named]), None)
    if there is None:
        return {}
    evidence: dict[str, Any] = {"original": there.kind, "original_name": there.name}
    if there.kind == operator.kind:
        names = sorted({*there.attributes, *operator.attributes} - {"value"})
        unequal = {
            name: (there.attributes.get(name), operator.attributes.get(name))
            for name in names
            if not _are_equal(name, there.attributes.get(name), operator.attributes.get(name))
        }
        evidence["attributes"] = dict(list(unequal.items())[:_SHOWN])
    return evidence | compared_weights(pair, first, second, there, operator)


def _are_equal(name: str, first: Any, second: Any) -> bool:
    """Whether an attribute says the same; of ONNX's lists one that is left out says what changes nothing."""
    if (
        first is None or second is None
    ):  # or one that the operator has only in another version of the format
        stated = first if second is None else second
        values = stated if isinstance(stated, list) else [stated]
        return name not in _NEUTRAL or set(values) <= {_NEUTRAL[name]}
    return bool(first == second)


def _family(kind: str) -> str:
    plain = kind.lower().rstrip("d").replace("_", "").replace("average", "avg")
    return plain[:6]

"""Whether the answers of both models can be used: what stands in the files, their values, and repeats."""

from collections.abc import Iterator, Sequence
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from edgeflare.errors import EdgeFlareError
from edgeflare.models.tensors.graph import DRAWING, KEEPING_STATE, Operator
from edgeflare.triage.agreement import HEALTHY, Outputs, Values, agreement, by_seed, stacked
from edgeflare.triage.cause import (
    CONSTANT,
    REMARK,
    TRAINING_MODE,
    UNUSABLE,
    Cause,
)
from edgeflare.triage.model import HostModel
from edgeflare.triage.pair import Pair

_MOST_SHOWN = 3
_STILL = 1e-6
_REPEATED = 8
_AT_ONCE, _FEWEST_AT_ONCE = 4, 2
_HALF_ENDS = 65504.0


def training_mode(pair: Pair) -> Iterator[Cause]:
    """Yield that the deployed file normalises by its input, as in training."""
    structure = pair.deployed.structure
    operators = (
        []
        if structure is None
        else [operator for operator in structure.operators if operator.is_in_training_mode]
    )
    if operators:
        yield Cause(
            "conversion",
            "training-mode",
            "read",
            TRAINING_MODE,
            names=tuple(operator.name for operator in operators[:_MOST_SHOWN]),
            evidence={"operators": len(operators), "operator": operators[0].kind},
            gain=20,
        )


def drawing_operators(model: HostModel) -> list[Operator]:
    """Return the operators that draw random numbers."""
    operators = () if model.structure is None else model.structure.operators
    return [operator for operator in operators if operator.kind in DRAWING][:_MOST_SHOWN]


def unusable_values(pair: Pair) -> Iterator[Cause]:
    """Yield answers that aren't finite, outputs that are the same for all seeds, and other first axes."""
    for model, outputs in zip(pair.models, (pair.of_original, pair.of_deployed), strict=True):
        if outputs is None:
            pair.ruled_out.setdefault("changing-shapes", []).append(model.side)
            pair.is_unusable = True
            continue
        yield from _not_finite(pair, model, outputs)
        yield from _constant(model, outputs)


def _not_finite(pair: Pair, model: HostModel, outputs: Outputs) -> Iterator[Cause]:
    bad = broken(outputs)
    if not bad.any():
        return
    pair.is_unusable = True
    evidence = {"seeds": int(bad.sum()), "of": len(bad)}
    place = pair.places[int(bad.argmax())]
    names, first = _first_not_finite(pair, model, place)
    yield Cause(
        "non-finite",
        "not-finite",
        "located" if names else "read",
        UNUSABLE,
        side="original" if model.side == "original" else "deployed",
        names=names,
        evidence=evidence | first,
        gain=60,
    )


def broken(outputs: Outputs) -> NDArray[np.bool_]:
    """Return of each seed whether an output isn't finite."""
    finite = np.array([np.isfinite(by_seed(output)).all(axis=1) for output in outputs])
    return np.asarray(~finite.all(axis=0))


def _before(pair: Pair, model: HostModel, operator: Operator) -> list[str]:
    """Return what stands before an operator and in the original as well, where it has not that operator.

    Converters name what they add as they like: the original's name tells the place.
    """
    structures = [each.structure for each in pair.models]
    if model is pair.original or structures[0] is None or structures[1] is None:
        return []
    original, deployed = structures[0].operators, structures[1].operators
    named = {name for step in original for name in (step.name, *step.inputs, *step.outputs) if name}
    makers = {name: step for step in deployed for name in step.outputs}
    step = operator
    while step.name not in named:
        makes = [makers[name] for name in step.inputs if name in makers]
        known = [name for name in step.inputs if name in named]
        if known or not makes:
            return known[:1]
        step = makes[0]
    return [] if step is operator else [step.name]


def _first_not_finite(
    pair: Pair, model: HostModel, place: int
) -> tuple[tuple[str, ...], dict[str, object]]:
    """Return the first operator with an output that isn't finite, and the largest of its inputs."""
    structure = model.structure
    if structure is None:
        return (), {}
    broken_tensors: set[str] = set()
    largest_values: dict[str, float] = {}
    try:  # one tensor after the other: all of a large model don't fit into memory
        for tensor, values in structure.trace(pair.tensors(model, place)):
            if values.dtype.kind == "f" and not np.isfinite(values).all():
                broken_tensors.add(tensor)
            if values.size:
                largest_values[tensor] = float(np.abs(values).max())
    except EdgeFlareError:
        return (), {}
    for operator in structure.operators:
        if broken_tensors.isdisjoint(operator.outputs):
            continue
        sizes = [largest_values[name] for name in operator.inputs if name in largest_values]
        constants = [structure.constants.get(name) for name in operator.inputs]
        broken = any(value is not None and not np.isfinite(value).all() for value in constants)
        largest = max(sizes, default=0.0)
        return (operator.name, *_before(pair, model, operator)), {
            "operator": operator.kind,
            "largest_input": largest,
            "beyond_half": largest > _HALF_ENDS / 6,
            "constant": broken,
        }
    return (), {"only_in_runtime": True}


def _constant(model: HostModel, outputs: Outputs) -> Iterator[Cause]:
    for info, values in zip(model.outputs, outputs, strict=True):
        if not np.isfinite(values).any():  # told as such
            continue
        usable = np.where(np.isfinite(values), values, 0)
        if len(usable) <= _MOST_SHOWN or usable[0].size < 2:
            continue
        if float(np.ptp(usable, axis=0).max()) <= _STILL * (float(np.abs(usable).max()) + 1e-12):
            yield Cause(
                "constant",
                "same-for-all",
                "read",
                CONSTANT,
                side="original" if model.side == "original" else "deployed",
                names=(info.name,),
                evidence={"seeds": len(usable)},
                gain=50,
            )


def repeats(pair: Pair) -> Iterator[Cause]:
    """Yield models that answer otherwise to the same input, and those that keep a state."""
    for model, outputs in zip(pair.models, (pair.of_original, pair.of_deployed), strict=True):
        if outputs is None or not model.file.runtime:
            continue
        places = pair.places[:_REPEATED]
        changed = _answered_otherwise(pair, model, outputs, places)
        if changed:
            pair.is_unusable = True
            drawing = drawing_operators(model)
            yield Cause(
                "not-repeatable",
                "answers-change",
                "located" if drawing else "read",
                UNUSABLE,
                side="original" if model.side == "original" else "deployed",
                names=(
                    *(operator.name for operator in drawing),
                    *dict.fromkeys(
                        name for operator in drawing for name in _before(pair, model, operator)
                    ),
                ),
                evidence={"seeds": changed, "of": len(places), "drawing": len(drawing)},
                gain=60,
            )
            continue
        yield from _state(pair, model, outputs)


def _answered_otherwise(
    pair: Pair, model: HostModel, outputs: Outputs, places: Sequence[int]
) -> int:
    """Return on how many seeds a model answers otherwise: in two new sessions, then in one."""
    first = pair.tensors(model, places[0])
    model.forget()
    once = model.run(first)
    model.forget()
    if not _equal(once, model.run(first)):
        return 1
    return sum(
        not _equal([output[row] for output in outputs], model.run(pair.tensors(model, place)))
        for row, place in enumerate(places)
    )


def _equal(first: Sequence[Values], second: Sequence[Values]) -> bool:
    return all(np.array_equal(before, after) for before, after in zip(first, second, strict=True))


def _state(pair: Pair, model: HostModel, outputs: Outputs) -> Iterator[Cause]:
    """Yield as a remark that answers are others where nothing resets the state between inputs."""
    structure = model.structure
    operators = () if structure is None else structure.operators
    keeping = list(
        dict.fromkeys(operator.kind for operator in operators if operator.kind in KEEPING_STATE)
    )
    if not keeping:
        return
    tensors = (pair.tensors(model, place) for place in pair.places)
    following = model.without_reset(list(tensors))
    if following is None:
        return
    changed = [
        not close([output[row] for output in outputs], answers)
        for row, answers in enumerate(following)
    ]
    if not any(changed):
        return
    classes = pair.classes_at
    if classes is not None:
        changed = [
            bool(outputs[classes][row].argmax() != answers[classes].argmax())
            for row, answers in enumerate(following)
        ]
    yield Cause(
        "state",
        "kept-between-calls",
        "corrected",
        REMARK + 0.2,
        side="original" if model.side == "original" else "deployed",
        names=tuple(islice(keeping, _MOST_SHOWN)),
        evidence={"changed": sum(changed), "of": len(changed)},
        gain=30,
        is_remark=True,
    )


def batch_rows(pair: Pair) -> Iterator[Cause]:
    """Yield as a remark that answers are others where several inputs are given at once.

    Rounding alone, as of integers whose scale comes of the whole batch, is none.
    """
    places = pair.places[:_AT_ONCE]
    for model, outputs in zip(pair.models, pair.both, strict=True):
        if not model.file.runtime or len(places) < _FEWEST_AT_ONCE:
            continue
        answers = model.at_once([pair.tensors(model, place) for place in places])
        if answers is None:
            continue
        alone = tuple(output[: len(places)] for output in outputs)
        batched = stacked(answers)
        names = [
            info.name
            for info, first, second in zip(model.outputs, alone, batched or alone, strict=True)
            if agreement(first, second) < HEALTHY[model.number_format]
        ]
        if names:
            rows = [
                row
                for row, answer in enumerate(answers)
                if not close([output[row] for output in alone], answer)
            ]
            yield Cause(
                *("batch", "rows-differ", "corrected", REMARK + 0.15),
                side="original" if model.side == "original" else "deployed",
                names=tuple(names),
                evidence={"rows": rows, "of": len(places)},
                is_remark=True,
            )


def close(first: Sequence[Values], second: Sequence[Values]) -> bool:
    """Whether two answers are the same but for rounding."""
    return all(
        values.shape == candidate.shape
        and np.allclose(
            values, candidate, rtol=1e-3, atol=1e-5 * (float(np.abs(values).max()) + 1e-9)
        )
        for values, candidate in zip(first, second, strict=True)
    )

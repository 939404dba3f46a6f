"""The step that a cause's first line advises, carried out: whether the pair then agrees.

"mended": it does. "proved": what was said was shown to hold by an experiment of its own. "not": neither. "": the
cause advises nothing that a script could do.
"""

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np

from edgeflare._internal import extras
from edgeflare.triage.cause import Cause
from edgeflare.triage.model import HostModel
from edgeflare.triage.ways import Way
from edgeflare_bench.everyday.catalogue import Faulty
from edgeflare_bench.everyday.evaluation import (
    DEVICE_SEEDS,
    accuracy,
    answers_of,
    answers_of_device,
    error_between,
    files_of,
    without_witness,
)
from edgeflare_bench.everyday.records import EverydayPair, input_spec

Outcome: TypeAlias = Literal["mended", "proved", "not", ""]
Step: TypeAlias = Callable[[Faulty, Cause, Path], Outcome]

_ALIKE = 0.35
"""So far, in deviations, the device's answers may be from those that a way of feeding explains."""
_REGAINED = 0.1


def carried_out(fault: Faulty, cause: Cause, folder: Path) -> Outcome:
    """Return what came of a cause's next step on a faulty pair; files are written to `folder`."""
    step = _STEPS.get(cause.kind)
    if step is None:
        return ""
    try:
        return step(fault, cause, folder)
    except Exception:  # noqa: BLE001 - of a runtime, which raises anything: the step doesn't hold
        return "not"


def _is_mended(fault: Faulty, pair: EverydayPair) -> bool:
    """Whether the fault can't be seen in this pair any more."""
    return bool(without_witness(pair, fault.sound, fault.sound.labels))


def _outcome(is_mended: bool) -> Outcome:
    return "mended" if is_mended else "not"


# Inputs


def _stated(before: Mapping[str, str], options: Mapping[str, str | None]) -> dict[str, str]:
    changed = {**before, **{name: one for name, one in options.items() if one is not None}}
    return {name: one for name, one in changed.items() if options.get(name, one) is not None}


def _restate(fault: Faulty, cause: Cause, folder: Path) -> Outcome:
    del folder
    pair = fault.pair
    options = cause.evidence.get("options") or cause.change
    if cause.side == "device":
        return _as_the_device(pair, cause, options)
    if not options:
        return ""
    first, second = pair.original_input, pair.deployed_input
    if cause.side in ("original", "both"):
        first = _stated(first, options)
    if cause.side in ("deployed", "both"):
        second = _stated(second, options)
    return _outcome(_is_mended(fault, replace(pair, original_input=first, deployed_input=second)))


def _as_the_device(pair: EverydayPair, cause: Cause, options: Mapping[str, str | None]) -> Outcome:
    """Feed the file on this machine as the device is said to feed it: whether the answers are alike."""
    file = files_of(pair)[1]
    way = cause.evidence.get("way") or {}
    spec = file.spec
    if options:
        model = HostModel(file)
        tensor = model._fixed.tensor
        spec = input_spec(tensor, _stated(pair.deployed_input, options))
    parts = {name: way[name] for name in ("picture", "codes", "factor") if way.get(name)}
    samples = pair.samples[:DEVICE_SEEDS]
    here = HostModel(file).answers(samples, Way(spec, **parts), [0] * len(samples))
    if here is None:
        return "not"
    return "proved" if error_between(here, answers_of_device(pair).outputs) <= _ALIKE else "not"


# Outputs and labels


def _renumber(fault: Faulty, cause: Cause, folder: Path) -> Outcome:
    """Renumber the labels as the cause says."""
    del folder
    pair = fault.pair
    order = cause.evidence.get("classes") or cause.evidence.get("order")
    if not order or not pair.labels:
        return ""
    numbers = {int(key): int(one) for key, one in _pairs(order)}
    labels = [numbers.get(one, one) for one in pair.labels]
    answers = answers_of(files_of(pair)[0], pair.samples)
    right = accuracy(answers, fault.sound.labels), accuracy(answers, labels)
    return _outcome(right[0] - right[1] <= _REGAINED)


def _pairs(order: Any) -> Iterator[tuple[Any, Any]]:
    yield from order.items() if isinstance(order, Mapping) else enumerate(order)


# Files


def _grafted(names: Collection[str], faulty: Any, sound: Any) -> Any | None:
    """Return a file in which what makes the named tensors, or has these names, is the other file's.

    What it is given stays the faulty file's, but for what stands in the file. None where no name is
    in both.
    """
    onnx = extras.onnx()
    made = onnx.ModelProto.FromString(faulty.SerializeToString())
    held = {one.name: one for one in sound.graph.initializer}
    makers = {name: node for node in sound.graph.node for name in node.output}
    by_name = {node.name: node for node in sound.graph.node if node.name}
    given = {one.name for one in sound.graph.input}
    own = {name for node in made.graph.node for name in node.output}

    def is_constant(name: str) -> bool:
        if name in given:
            return False
        return name in held or name not in makers or all(map(is_constant, makers[name].input))

    wanted = [by_name.get(name) or makers.get(name) for name in names]
    wanted += [_reading(sound, name) for name in names if name in held]
    chosen = {
        node.output[0]: node for node in wanted if node is not None and set(node.output) <= own
    }
    added: dict[str, Any] = {}

    def take(node: Any) -> None:
        copy = onnx.NodeProto.FromString(node.SerializeToString())
        for name in copy.input:
            if name in held:
                added[f"sound__{name}"] = held[name]
            elif name and name not in given and is_constant(name):
                take(makers[name])
        copy.input[:] = [f"sound__{one}" if one and is_constant(one) else one for one in copy.input]
        if node.output[0] not in chosen:
            copy.output[:] = [f"sound__{one}" for one in copy.output]
            copy.name = f"sound__{copy.name}"
        if copy.output[0] not in {one.output[0] for one in made.graph.node}:
            made.graph.node.append(copy)

    if not chosen:
        return None
    kept = [one for one in made.graph.node if not set(one.output) & set(chosen)]
    del made.graph.node[:]
    made.graph.node.extend(kept)
    for node in chosen.values():
        take(node)
    for name, tensor in added.items():
        made.graph.initializer.add().CopyFrom(tensor)
        made.graph.initializer[-1].name = name
    del made.graph.value_info[:]
    from edgeflare_bench.faults.graph_edit import GraphEdit

    return GraphEdit(made).finish()


def _reading(model: Any, name: str) -> Any:
    return next((one for one in model.graph.node if name in one.input), None)


def _with_healthy_part(fault: Faulty, cause: Cause, folder: Path) -> Outcome:
    """Put the healthy version of what is named into the deployed file, else the original's."""
    onnx = extras.onnx()
    pair = fault.pair
    if "file" in pair.device:
        return ""
    faulty = onnx.load_model(pair.deployed)
    for source in dict.fromkeys((fault.sound.deployed, pair.original)):
        made = _grafted(cause.names, faulty, onnx.load_model(source))
        if made is None:
            continue
        path = folder / f"{pair.name.replace('/', '-')}-mended.onnx"
        onnx.save_model(made, path)
        try:
            if _is_mended(fault, replace(pair, deployed=path)):
                return "mended"
        except Exception:  # noqa: BLE001, S112 - a file that can't be run mends nothing
            continue
    return "not"


def _quantised_again(fault: Faulty, cause: Cause, folder: Path) -> Outcome:
    """Quantise again, calibrated with natural inputs; a fault before the quantiser stays."""
    is_quantisers = {"calibration", "compression"} & set(fault.kind.expected)
    if not is_quantisers:
        return _with_healthy_part(fault, cause, folder) if cause.names else "not"
    return _outcome(_is_mended(fault, fault.sound))


def _repeated(fault: Faulty, cause: Cause, folder: Path) -> Outcome:
    """Ask again: whether the answers are others."""
    if fault.pair.device:
        return "proved" if fault.pair.device.get("noise") else "not"
    samples = fault.pair.samples[:DEVICE_SEEDS]
    file = files_of(fault.pair)[1]
    again = error_between(answers_of(file, samples), answers_of(file, samples))
    if again > 0:
        mended = _with_healthy_part(fault, cause, folder)
        return mended if mended == "mended" else "proved"
    return "not"


def _looked_at(fault: Faulty, cause: Cause, folder: Path) -> Outcome:
    """Look at the answers of the side that is said to be unusable, and mend what is named."""
    samples = fault.pair.samples[:DEVICE_SEEDS]
    answers = answers_of(files_of(fault.pair)[cause.side != "original"], samples)
    if cause.kind == "constant":
        holds = any(float(np.ptp(one, axis=0).max()) <= 1e-6 * np.abs(one).max() for one in answers)
    else:
        holds = not all(np.isfinite(one).all() for one in answers)
    mended = _with_healthy_part(fault, cause, folder) if cause.names else "not"
    return mended if mended == "mended" else ("proved" if holds else "not")


def _recorded(fault: Faulty, cause: Cause, folder: Path) -> Outcome:
    """Give the file on this machine what the device was given: whether the answers still differ."""
    del cause, folder
    if "input" in fault.pair.device or "picture" in fault.pair.device:
        return "not"  # the recorded tensor would have told the feed
    samples = fault.pair.samples[:DEVICE_SEEDS]
    here = answers_of(files_of(fault.pair)[1], samples)
    return (
        "proved"
        if error_between(here, answers_of_device(fault.pair).outputs) > _REGAINED
        else "not"
    )


def _other_state(fault: Faulty, cause: Cause, folder: Path) -> Outcome:
    """Export the right training state."""
    del cause, folder
    return _outcome("another-model" in fault.kind.expected and _is_mended(fault, fault.sound))


_STEPS: Mapping[str, Step] = {
    "preprocessing": _restate,
    "exif": _restate,
    "resize-rule": _restate,
    "labels": _renumber,
    "conversion": _with_healthy_part,
    "compression": _with_healthy_part,
    "output-scale": _with_healthy_part,
    "calibration": _quantised_again,
    "not-repeatable": _repeated,
    "non-finite": _looked_at,
    "constant": _looked_at,
    "device": _recorded,
    "kernels": _recorded,
    "another-model": _other_state,
}

"""What to do next about a cause: a step that mends it, or one experiment that tells more.

The user's own values stand in it; `Cause.change` has the same for programs.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from edgeflare._internal.text import capitalized, names_text
from edgeflare.triage.cause import Cause, Triage
from edgeflare.words.triage import headline, sentence, way_words

_MANY = 8
_FLAGS = {"original": "--original-input", "deployed": "--deployed-input", "both": "--input"}
_LABELS = "label thirty seeds or more"
_RECORD = (
    "record one input tensor on the device, and give it to the file on this machine, with reference "
    "kernels too"
)
_SEARCH = (
    "a fault that none of these inputs shows takes a search: edgeflare run, with the same flags"
)
_OTHER_LABELS = "give the labels that the original was trained with, or none, and run again"
_UNKNOWN = "record one input tensor and the outputs on the device, or give labelled seeds"


def next_step(found: Triage) -> str:
    """Return one step that mends the first cause, or one experiment that tells more."""
    if found.causes:
        return step_for(found.causes[0])
    if not found.is_healthy:
        return _UNKNOWN
    if "seeds" in found.ruled_out:
        return f"give {found.ruled_out['seeds']['needed']} different inputs or more, and run again"
    return _OTHER_LABELS if "labels" in found.ruled_out else _SEARCH


def in_one_sentence(found: Triage) -> str:
    """Return what a run says of its pair: the headline, the first cause, and the next step."""
    told = f": {with_step(found.causes[0])}" if found.causes else f"; next: {next_step(found)}"
    return capitalized(headline(found)) + told


def with_step(cause: Cause) -> str:
    """Return a cause with its proof, and what to do next about it."""
    return f"{sentence(cause)}; next: {step_for(cause)}"


def step_for(cause: Cause) -> str:
    """Return one step that mends a cause, or one experiment that tells more."""
    step = _STEPS.get(f"{cause.kind}/{cause.what}") or _STEPS.get(cause.kind) or _UNKNOWN
    return step if isinstance(step, str) else step(cause, cause.change)


def _stated(cause: Cause) -> str:
    """Return the flags that state a change of a preprocessing; "" where none does."""
    if not {*cause.change}.isdisjoint(("picture", "codes", "factor")):
        return ""
    flag = _FLAGS.get(cause.side, _FLAGS["deployed"])
    return " ".join(f"{flag} {name}={value}" for name, value in cause.change.items() if value)


def _fed(cause: Cause, change: Mapping[str, Any]) -> str:
    flags = _stated(cause)
    whose = {"both": "both models", "device": "the model on the device"}.get(
        cause.side, f"the {cause.side} model"
    )
    if cause.evidence.get("classes") or "renumbered" in cause.evidence:
        return f"look at the list of classes that was trained with; where it holds, state {flags}"
    if cause.evidence.get("also"):
        where = "on the device" if cause.side == "device" else "in the application"
        text = f"record one input tensor {where}: that tells which of these ways it is"
        return text + (f"; or try {flags}" if flags else "")
    if not flags:
        if not change:
            return "state the same input for both models, and run again"
        return f"make the application feed {whose} {way_words(change)}, or mend it"
    return f"state {flags}, or mend what feeds {whose}, and run again"


def _fed_as_original(cause: Cause, change: Mapping[str, Any]) -> str:
    if {*change} == {"color"}:  # exchanging colours twice leaves them
        return _fed(cause, change)
    return (
        "look at what feeds the deployed model, and at what its file does before its first layer: the "
        f"original answers so when it is fed {way_words(change)}"
    )


def _without(_: object, change: Mapping[str, Any]) -> str:
    return (
        f"run it on the device without {change['without']} (--runtime-option), and compare; "
        "edgeflare explain does so for each finding"
    )


def _kept_in_float(cause: Cause, _: object) -> str:
    if cause.names:
        return (
            f"keep {names_text(cause.names)} in float or 16 bits, or quantise per channel, and look "
            "at the accuracy"
        )
    return (
        "edgeflare repair recipes CAMPAIGN: other ways to quantise it, judged by a search; or take "
        "float or 16 bits for some layers, and look at the accuracy"
    )


def _recalibrated(cause: Cause, change: Mapping[str, Any]) -> str:
    text = "quantise again, calibrated with inputs as the application makes them"
    if "range" not in change:
        return text
    least, largest = change["range"]
    return f"{text}: {names_text(cause.names)} must hold {least:.4g} to {largest:.4g}"


def _converted(cause: Cause, change: Mapping[str, Any]) -> str:
    where = names_text(cause.names)
    text = f"convert again with another version or option of the exporter, and look at {where}"
    values = [
        f"no {name}" if value is None else f"{name} = {value}"
        for name, value in change.get("attributes", {}).items()
    ]
    if values:
        return f"{text}: the original has {', '.join(values)}"
    owner = change.get("weights_of")
    if owner in (*cause.names, cause.evidence.get("original_name")):
        return f"{text}: its weights should be those that the original has there"
    if owner is not None:
        return f"{text}: its weights should be those of {owner}"
    return text


def _first(texts: Iterable[str]) -> str:
    """Return the first few of a list, and where the others stand."""
    listed = list(texts)
    more = ", ... (--json has all)" if len(listed) > _MANY else ""
    return ", ".join(listed[:_MANY]) + more


def _relabelled(_: object, change: Mapping[str, Any]) -> str:
    pairs = (f"{label} is class {number}" for label, number in change.get("classes", {}).items())
    return (
        "label the seeds by the list of classes that was trained with, and compare it with the "
        f"application's: label {_first(pairs)} in the models"
    )


def _renumbered(cause: Cause, change: Mapping[str, Any]) -> str:
    pairs = (f"{at} is {number}" for at, number in change.get("classes", {}).items())
    return (
        f"read output {names_text(cause.names)} of the deployed model by its own list of classes: "
        f"what the original has at {_first(pairs)} there"
        + (f" (along axis {change['axis']})" if "axis" in change else "")
    )


def _without_class(_: object, change: Mapping[str, Any]) -> str:
    return (
        f"leave the {change['without_class']} class of the {change['of']} model out where the "
        "application reads it"
    )


def _exchanged(cause: Cause, change: Mapping[str, Any]) -> str:
    order = ",".join(cause.names)
    if "input_name" in change:
        return f"state --deployed-input-name {change['input_name']}, or mend the application"
    return f"give the deployed model its inputs in the order {order}"


def _in_form(cause: Cause, change: Mapping[str, Any]) -> str:
    output, function = names_text(cause.names), change["function"]
    whose = "original" if function.startswith("original-") else "deployed"
    plain = function.removeprefix("original-")
    stated = {"softmax": "logits", "sigmoid": "sigmoid-logits"}.get(plain)
    text = f"apply {plain} to output {output} of the {whose} model in the application"
    return text + (f", and state --{whose}-output {stated}" if stated else "")


def _labelled(_: object, change: Mapping[str, Any]) -> str:
    return (
        f"label 200 images: they tell whether --resize {change['resize']} is right, and use that rule "
        "in the application"
    )


_Make = Callable[[Cause, Mapping[str, Any]], str]
_STEPS: Mapping[str, str | _Make] = {
    "preprocessing": _fed,
    "preprocessing/as-original": _fed_as_original,
    "preprocessing/inaccurate": "check the labels, or state how both models are fed (--input)",
    "calibration": _recalibrated,
    "input-range": _recalibrated,
    "conversion": _converted,
    "conversion/training-mode": lambda cause, _: (
        f"export it in inference mode, so that {names_text(cause.names)} takes stored statistics"
    ),
    "conversion/input-ignored": lambda cause, _: (
        f"convert again, and look what reads the input {names_text(cause.names)}"
    ),
    "compression": _kept_in_float,
    "output-scale": lambda cause, _: (
        f"quantise boxes and scores of {names_text(cause.names)} as two outputs, or leave the last "
        "operators in float"
    ),
    "non-finite": lambda cause, _: (
        f"keep {names_text(cause.names)} in float32, with what follows until the values are small again"
        if cause.names
        else "run the file in float32, and with reference kernels"
    ),
    "constant": "look at the model's last operators, and at how it is fed",
    "not-repeatable": lambda cause, _: (
        "export it in inference mode"
        + (f", without {names_text(cause.names)}" if cause.names else "")
        + "; until then no deviation can be counted"
    ),
    "interface/inputs-exchanged": _exchanged,
    "interface/outputs-exchanged": lambda _, change: (
        "read the deployed model's outputs so: "
        + ", ".join(f"{name} as {held}" for name, held in change["outputs"].items())
    ),
    "interface/classes-exchanged": _renumbered,
    "interface/one-class-more": _without_class,
    "interface/axes": lambda cause, change: (
        f"put the axes of output {names_text(cause.names)} in the order {change['axes']} (that of "
        "the batch is not counted) where the application reads it"
    ),
    "interface/form": _in_form,
    "interface/boxes": lambda cause, change: (
        f"convert the boxes of output {names_text(cause.names)} of the deployed model "
        f"({change['boxes'].replace('-', ' ')}) where the application reads it"
    ),
    "interface/units": lambda cause, change: (
        f"multiply output {names_text(cause.names)} of the deployed model in the application by "
        f"{_first(f'{factor:.4g}' for factor in change['factors'])}"
        + (f" along axis {change['axis']}" if len(change["factors"]) > 1 else "")
    ),
    "another-model": "check which training state was exported",
    "labels": _relabelled,
    "labels/missing": f"{_LABELS}: they tell whether both models are fed wrongly alike",
    "state": "reset the model before each input, by loading it anew where nothing else does",
    "exif": "turn images as their EXIF tag says before they are given to the model",
    "resize-rule": _labelled,
    "batch": "use a file with a batch of one",
    "device": _RECORD,
    "accelerator": _without,
    "kernels": "edgeflare explain CAMPAIGN: what each finding comes of, with the device's plain kernels too",
}

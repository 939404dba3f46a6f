"""What the findings of a campaign come of, in words."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from edgeflare._internal.records import as_json
from edgeflare._internal.text import NOTHING, counted, number_text
from edgeflare.document import Name
from edgeflare.explanation import (
    Explanation,
    FindingCause,
    FindingGroup,
    Layers,
    Remark,
    RemarkCode,
    ShrunkTo,
)
from edgeflare.triage.cause import CauseKind
from edgeflare.words.next_steps import step_for, with_step
from edgeflare.words.triage import NOT_LOOKED_FOR

CAUSE_WORDS: Mapping[FindingCause, str] = {
    "rounding": "rounding: the original decides otherwise by other kernels, too",
    "preprocessing": "preprocessing: the original decides otherwise with the deployed model's",
    "conversion": "conversion: the float model decides otherwise in the deployed format",
    "compression": "compression: the deployed file decides otherwise by the plainest kernels",
    "kernels": "kernels: only by the runtime's fast kernels",
    "accelerator": "accelerator: only on the delegate or provider",
    "hardware": "hardware: only on the device, by the plainest kernels or with exact products, too",
    "device": "device: only there, by its kernels or its hardware",
    "not-repeatable": "not repeatable: asked again, a model answers otherwise",
    "unanswered": "unanswered: a model can't answer it any more",
}

CAUSES_NOTE = (
    "Every finding was sent through configurations that lead from the original to the deployed "
    "model on its device. It is charged to the first one from which on all decide otherwise than "
    "the original; each doubt is told."
)
NEAREST_NOTE = (
    "Of each group the finding nearest to its seed: the seed input, the finding (as it was "
    "shrunk, where it was), and their difference. Cause and layer are those of the finding before "
    "it was shrunk."
)
_STEP_WORDS = {
    "control": "the original model by other kernels",
    "preprocessing": "the original model with the deployed model's preprocessing",
    "conversion": "the deployed model, plainest kernels, here",
    "compression": "the deployed model, plainest kernels, here",
    "kernels": "the deployed model, the runtime's fast kernels, here",
    "device": "the deployed model on the device",
    "device-plain": "the deployed model, plainest kernels, on the device",
    "device-cpu": "the deployed model on the device's CPU",
    "device-exact": "the deployed model on the device with exact 8-bit products",
}

_REMARKS: Mapping[RemarkCode, Callable[..., str]] = {
    "no control": "rounding isn't told from {cause}: {why}".format,
    "no runtime here": (
        "{file} can't be run on this machine ({why}): what compression, kernels and hardware change "
        "counts as compression"
    ).format,
    "no float model": (
        "what the conversion to another format changed counts as compression; to tell them apart name "
        "the float model in the deployed model's format with --float-model"
    ).format,
    "device is here": (
        "the device is this machine: what its hardware alone changes counts as {cause}, and what the "
        "runtime's faster kernels change on it as kernels"
    ).format,
    "repaired": "the deployed model is repaired: what that changes counts as {cause}".format,
    "out of range": (
        "the deployed model's preprocessing makes values from {made_from:.4g} to {made_to:.4g}, and its "
        "input holds {holds_from:.4g} to {holds_to:.4g}: its preprocessing may be wrong"
    ).format,
    "begun before": (
        "these are the findings that the explanation began with: delete {folder} to explain those found "
        "since, too, or as many as --device-queries allows now"
    ).format,
    "few queries": lambda queries, findings: (
        f"--device-queries {queries} allows no more than {counted(findings, 'finding')}"
    ),
    "another float model": lambda file, deviating, seeds: (
        f"{file} decides otherwise than the original on {deviating} of {counted(seeds, 'seed input')}: "
        "it may be another model than the one that was compressed"
    ),
    "preprocessing unknown": (
        "the two models' preprocessing differs, and it isn't known whether that changes decisions: with "
        "the deployed model's the original answers less like it than with its own, as where one model "
        "has its scaling built in"
    ).format,
    "another network": (
        "{deployed} is another network than {original}, most of whose tensors it lacks: a layer that is "
        "named stands for all before it that have no counterpart"
    ).format,
    "layers unknown": "what each layer contributes isn't known: {why}".format,
    "device layers unknown": "what each layer changes on {device} isn't known: {why}".format,
    "disturbed": lambda findings: (
        f"what each layer changes of {counted(findings, 'finding')} isn't known: the device answers "
        "otherwise when its tensors are read, or they aren't finite"
    ),
    "saturated": lambda findings: (
        f"with exact 8-bit products the device agrees on {counted(findings, 'finding')} charged to its "
        "hardware, which saturates them: state the runtime option exact_int8 = true, or quantise with "
        "reduce_range"
    ),
    "not triaged": NOT_LOOKED_FOR.format,
    "earlier deviates": "an earlier step deviates, too".format,
    "unanswered step": "a step has no answer".format,
    "more by another": "the margin changes more by {cause}".format,
    "varies": "answers to it vary by up to {by:.2g}".format,
    "hardware as well": (
        "this machine's fast kernels agree, so the hardware counts as well"
    ).format,
}


def remark_text(remark: Remark | str) -> str:
    """Return a remark in words; campaigns of older versions have stored texts."""
    return remark if isinstance(remark, str) else _REMARKS[remark.code](**remark.data)


def doubt_text(doubt: Iterable[Remark] | str) -> str:
    """Return why a cause may be another one, or tensors can't be read; "" where nothing says so."""
    return doubt if isinstance(doubt, str) else "; ".join(map(remark_text, doubt))


def step_text(name: str, file: str) -> str:
    """Return what was asked in a step of an explanation; `name` and `file` as of its `rungs`."""
    if name == "conversion" and file:
        return file if ", " in file else f"{file}, plainest kernels, here"
    return _STEP_WORDS.get(name, file or name)


_COUNTED_AS: Mapping[CauseKind, Sequence[FindingCause]] = {
    "preprocessing": ("preprocessing",),
    "conversion": ("conversion", "compression"),
    "calibration": (
        "compression",
        "preprocessing",
    ),  # an input that cuts off is a preprocessing, too
    "output-scale": ("compression",),
    "not-repeatable": ("not-repeatable",),
}
"""Kinds of findings in which a pair's cause has a part; others are in none."""


def pair_text(explanation: Explanation) -> str:
    """Return what the campaign's triage found, where explaining starts from something else; else ""."""
    cause = explanation.pair_cause
    if cause is None:
        return ""
    kinds = _COUNTED_AS.get(cause.kind, ())
    for figures in explanation.kinds:
        if figures.kind in kinds:
            return f"What the triage found counts as {figures.kind} here: {with_step(cause)}"
    return (
        "What the findings are charged to here misleads until another cause is mended, which the triage "
        f"found: {with_step(cause)}"
    )


def explanation_json(explanation: Explanation) -> dict[str, Any]:
    """Return a JSON object with the names of an explanation's fields, and all that is said in words.

    Of each group `nearest` is the id.
    """
    numbers = as_json(explanation)
    groups = map(as_json, explanation.groups)
    doubts = (doubt_text(finding.doubt) for finding in explanation.findings)
    worded = {
        "findings": [
            {**finding, "doubt": doubt}
            for finding, doubt in zip(numbers["findings"], doubts, strict=True)
        ],
        "rungs": [[name, cause, step_text(name, file)] for name, cause, file in explanation.rungs],
        "notices": [*map(remark_text, explanation.notices)],
        "device_unread": doubt_text(explanation.device_unread),
        "groups": [{**group, "nearest": group["nearest"]["id"]} for group in groups],
    }
    if (cause := explanation.pair_cause) is not None:
        said = {"text": pair_text(explanation), "next": step_for(cause)}
        worded["pair_cause"] = {**numbers["pair_cause"], **said}
    return {**numbers, **worded}


def layer_words(name: str) -> str:
    """Return a layer's name without the further names that converters join to it."""
    return ", ".join(part.split(";")[0] for part in name.split(", "))


def labels_words(pair: FindingGroup | ShrunkTo, name: Name) -> str:
    """Return both models' classes, such as ``4 -> 9``; a dash where there are none."""
    if pair.original_label is None or pair.deployed_label is None:
        return NOTHING
    return f"{name(pair.original_label)} -> {name(pair.deployed_label)}"


def nearest_words(group: FindingGroup, name: Name) -> str:
    """Return the seed of a group's nearest finding, and how near it is, before and after it was shrunk.

    Where the models decide for other classes then, with these.
    """
    nearest, shrunk = group.nearest, group.shrunk
    words = f"{nearest.seed_id}, L2 {number_text(nearest.l2)}"
    if shrunk is not None and shrunk.sample != nearest.sample:
        words += f", shrunk to {number_text(shrunk.l2)}"
        words += "" if shrunk.is_like(group) else f" (now {labels_words(shrunk, name)})"
    return words


def count_text(explanation: Explanation) -> str:
    """Return how many findings are explained, with how many queries, and how many are left out."""
    asked = counted(explanation.device_queries, "device query", "device queries")
    text = f"{counted(len(explanation.findings), 'finding')} explained with {asked}"
    if explanation.left_out:
        text += f"; {counted(explanation.left_out, 'more finding')} left out"
    return text


def left_out_text(layers: Layers, more: int) -> str:
    """Return what a table of layers leaves out: `more` of them, and unmatched tensors; "" for nothing."""
    rest = [f"{counted(more, 'layer')} that change{'s' * (more == 1)} it less"] if more > 0 else []
    if layers.unmatched:
        change = "it changes" if len(layers.unmatched) == 1 else "they change"
        rest.append(
            f"{counted(len(layers.unmatched), 'tensor')} of {layers.deployed} like none of "
            f"{layers.original}: what {change} counts for the next layer"
        )
    return f"Left out here: {'; '.join(rest)} (explain --json has them)" if rest else ""

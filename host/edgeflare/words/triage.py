"""What a triage found, in sentences: causes with their proof, remarks, what was ruled out, the next step."""

from collections.abc import Callable, Mapping
from typing import Any

from edgeflare._internal.text import counted, names_text
from edgeflare.triage.cause import Cause, Triage
from edgeflare.words.inputs import pixels_words, source_words

LOOKING = "why the models differ"
_Evidence = Mapping[str, Any]
_MANY = 5


def headline(found: Triage) -> str:
    """Return how the pair compares with healthy pairs of its number format."""
    if found.is_unusable:
        return "the answers of one model can't be used"
    wanted = f"{found.expected:.0f} expected of {found.number_format}"
    if found.agreement is None:
        return f"the outputs have other shapes ({wanted})"
    same = "" if found.same_class is None else f", the same class on {found.same_class:.0%}"
    reached = f"{found.agreement:.0f} dB{same}"
    if found.is_healthy and "seeds" in found.ruled_out:
        few = found.ruled_out["seeds"]
        return (
            f"the pair agrees on {counted(few['compared'], 'input')} ({reached}; {wanted}): "
            f"{few['needed']} different ones tell how well"
        )
    if found.is_healthy:
        return f"the pair agrees as well as healthy {found.number_format} pairs do ({reached})"
    if found.agreement >= found.expected:
        return f"the pair agrees ({reached}), but"
    if found.causes and found.causes[0].proof == "corrected":
        return f"the pair differs ({reached}; {wanted}), and one change makes it agree"
    return f"the pair differs more than healthy pairs do ({reached}; {wanted})"


def sentence(cause: Cause) -> str:
    """Return a cause with what was done to prove it, or a remark."""
    text = cause.text
    if not text:
        make = _SENTENCES.get((cause.kind, cause.what)) or _SENTENCES[("", cause.what)]
        text = make(cause, cause.evidence)
    return f"{_NOUNS.get(cause.kind, cause.kind)}: {text}"


_NOUNS = {
    "non-finite": "answers that aren't finite",
    "constant": "constant answers",
    "not-repeatable": "not repeatable",
    "another-model": "another model",
    "output-scale": "scale of an output",
    "input-range": "range of an input",
    "resize-rule": "resize rule",
    "exif": "EXIF orientation",
    "batch": "batch rows",
}


def _names(cause: Cause) -> str:
    return names_text(cause.names)


def _then(evidence: _Evidence) -> str:
    """The agreement after a change and before it."""
    return f"{_db(evidence['agreement'])}, {_db(evidence['stated'])} before"


def _db(agreement: float | None) -> str:
    return "outputs of other shapes" if agreement is None else f"{agreement:.0f} dB"


def way_words(change: Mapping[str, str]) -> str:
    """Return how a model is fed by a change of a preprocessing, such as ``color=BGR``."""
    for name in ("picture", "codes"):
        if name in change:
            return _WAYS[change[name]]
    if "factor" in change:
        return f"clips multiplied by {change['factor']}"
    return ", ".join(f"{name}={value}" if value else f"no {name}" for name, value in change.items())


def _way(evidence: _Evidence) -> str:
    """Return the way that fits, and those that fit as well."""
    also = " or ".join(map(way_words, evidence.get("also", ())))
    kernel = evidence.get("kernel")
    text = way_words(evidence["way"]) + (
        f" (or {also}: nothing here tells them apart)" * bool(also)
    )
    text += f" (its kernel {kernel} holds the original's numbers in another order)" * bool(kernel)
    return text + " (or with the classes renumbered)" * bool(evidence.get("classes"))


def _stated(options: Mapping[str, Any]) -> str:
    """Options of a runtime as `--runtime-option` takes them."""
    return ", ".join(f"{name}={str(value).lower()}" for name, value in options.items())


_WAYS = {
    "grey": "grey images",
    "grey-mean": "grey images (the mean of the colours)",
    "inverted": "inverted images",
    "planes-as-pixels": "channels first in a buffer that has them last",
    "pixels-as-planes": "channels last in a buffer that has them first",
    "letterbox": "letterboxed images",
    "center-crop": "images cut to their centre",
    "crop": "images cut to the model's size",
    "pixels": "pixels as they are in place of quantised values",
    "pixels-128": "pixels - 128 in place of quantised values",
    "values": "values that are not quantised",
    "shifted": "codes that are 128 off (uint8 taken for int8)",
}


def _not_finite(cause: Cause, evidence: _Evidence) -> str:
    text = (
        f"the {cause.side} model answers with NaN or infinity on {evidence['seeds']} of "
        f"{evidence['of']} seeds"
    )
    if cause.names:
        text += f"; first at {evidence['operator']} {cause.names[0]} (largest input "
        text += f"{evidence['largest_input']:,.4g}"
        text += "; half precision ends at 65,504)" if evidence["beyond_half"] else ")"
        text += ", whose constant isn't finite" if evidence["constant"] else ""
    elif evidence.get("only_in_runtime"):
        text += "; all tensors of the file are finite where each operator runs by itself"
    return text


def _changing(cause: Cause, evidence: _Evidence) -> str:
    text = (
        f"the {cause.side} model answers otherwise to the same input: on {evidence['seeds']} of "
        f"{evidence['of']} seeds"
    )
    drawing = cause.names[: evidence.get("drawing")]
    return text + (f"; {', '.join(drawing)} draws random numbers" if drawing else "")


def _fed_rightly(evidence: _Evidence) -> str:
    """Which of the two feeds the labels speak for."""
    if not evidence.get("right"):
        return ""
    own, others = evidence["right"]
    stated, as_deployed = evidence["margin"]
    text = (
        f"; the original is right on {own} labelled seeds as it is fed, on {others} as the deployed"
    )
    if (own < others) == (stated < as_deployed) and own != others:
        return text
    return (
        f"{text}, and its labelled class is {stated:.3g} deviations above the others as it is fed, "
        f"{as_deployed:.3g} as the deployed"
    )


def _layer(cause: Cause, evidence: _Evidence) -> str:
    name = cause.names[0]
    kind = evidence["operator"]
    where = name if name.startswith(kind) else f"{kind} {name}"
    before, behind = evidence["before"], evidence["behind"]
    if before >= _AGREES:
        text = f"up to {where} the tensors agree ({before:.0f} dB), behind it {behind:.0f} dB"
    else:
        text = f"the largest fall is at {where} ({before:.0f} dB before it, {behind:.0f} behind)"
    if "range" in evidence:
        least, largest = evidence["range"]
        low, high = evidence["original_range"]
        which = (
            f"{evidence['cut_off']:.0%} of the values are cut off"
            if "cut_off" in evidence
            else f"{evidence['used']:.1%} of the integers are used"
        )
        return (
            f"{text}: its integers hold {least:.3g} to {largest:.3g}, and the original has "
            f"{low:.3g} to {high:.3g} there ({which})"
        )
    if "original" in evidence:
        text += f"; the original has {evidence['original']} {evidence['original_name']} there"
    unequal = [
        f"{attribute} = {was}, the deployed one {now}"
        for attribute, (was, now) in evidence.get("attributes", {}).items()
    ]
    if unequal:
        text += f", with {'; '.join(unequal)}"
    return text + _WEIGHTS.get(evidence.get("weights", ""), "")


_AGREES = 10.0
_WEIGHTS = {
    "other-order": "; its weights are the same numbers in another order",
    "differ": "; its weights differ",
    "unrelated": "; its weights have nothing in common with the original's",
    "same": "; its weights are the same: the operator computes otherwise",
}


def _of_reference(cause: Cause, evidence: _Evidence) -> str:
    del cause
    copy = "per-channel" if evidence["per_channel"] else "per-tensor"
    text = f"a fresh {copy} int8 copy of the original reaches {evidence['reference']:.0f} dB"
    there, here = evidence["same_class"]
    text += "" if there is None else f" and {there:.0%} the same class"
    text += f", the deployed file {evidence['agreement']:.0f} dB"
    return text + ("" if here is None else f" and {here:.0%}")


_FUNCTIONS = {
    "softmax": "with the softmax of output {}",
    "sigmoid": "with the sigmoid of output {}",
    "exp": "with exp of output {}",
    "log": "with the logarithm of output {}",
    "normalised": "with output {} divided by its length",
    "original-normalised": "with the original's output {} divided by its length",
    "original-softmax": "with the softmax of the original's output {}",
    "log-softmax": "with the logarithm of the softmax of output {}",
    "original-log-softmax": "with the logarithm of the softmax of the original's output {}",
    "original-log": "with the logarithm of the original's output {}",
}

_Make = Callable[[Cause, _Evidence], str]
_SENTENCES: Mapping[tuple[str, str], _Make] = {
    ("non-finite", "not-finite"): _not_finite,
    ("non-finite", "on-device"): lambda _, e: (
        f"the device answers with NaN or infinity on {e['seeds']} of {e['of']} seeds, and the same "
        "file does not here: its kernels or number format"
    ),
    ("constant", "same-for-all"): lambda c, e: (
        f"output {_names(c)} of the {c.side} model is the same for all {e['seeds']} seeds"
    ),
    ("not-repeatable", "answers-change"): _changing,
    ("not-repeatable", "on-device"): lambda _, e: (
        f"the device answers otherwise when it is asked again: on {e['seeds']} of {e['of']} seeds"
    ),
    ("state", "kept-between-calls"): lambda c, e: (
        f"the {c.side} model keeps a state between calls ({_names(c)}): without a reset before "
        f"each input {e['changed']} of {e['of']} answers are others"
    ),
    ("batch", "rows-differ"): lambda c, e: (
        f"given {e['of']} inputs at once the {c.side} model answers otherwise than to each alone: "
        f"output {_names(c)}, {counted(len(e['rows']), 'row')} of {e['of']}"
    ),
    ("conversion", "training-mode"): lambda c, e: (
        f"the deployed file was exported in training mode: {e['operator']} {_names(c)} uses the "
        "statistics of the single input"
    ),
    ("conversion", "input-ignored"): lambda c, e: (
        f"the deployed model ignores its input {_names(c)}: no answer changes with it, "
        f"{e['changed']} of {e['of']} of the original do"
    ),
    ("conversion", "kernel-without-partner"): lambda c, e: (
        f"kernel {_names(c)} of the deployed file has no partner in the original (best "
        f"correlation {e['correlation']:.2f})"
    ),
    ("conversion", "kernel-reordered"): lambda c, e: (
        f"kernel {_names(c)} holds the numbers of {e['of']} in another order"
    ),
    ("conversion", "channels-differ"): lambda c, e: (
        f"kernel {_names(c)}: {e['channels']} of {e['of']} channels are empty or other than in "
        f"{e['partner']}"
    ),
    ("conversion", "bias-differs"): lambda c, e: (
        f"the bias of {_names(c)} is {'empty' if e['empty'] else 'another one'}, unlike that of "
        f"{e['partner']}"
    ),
    ("", "rough-kernel"): lambda c, e: (
        f"kernel {_names(c)} is only roughly that of the original (correlation {e['correlation']:.3f})"
    ),
    ("compression", "coarse-kernel"): lambda c, e: (
        f"kernel {_names(c)} is much coarser than the others ({e['ratio']:.0f} dB, median of all "
        f"{e['median']:.0f} dB)"
    ),
    ("another-model", "no-kernel-fits"): lambda _, e: (
        f"{e.get('lost', e['sized'])} of {counted(e['sized'], 'kernel')} of the deployed file that have "
        "the size of one of the original are like none: another training state, or another model"
    ),
    ("", "layer"): _layer,
    ("", "slight"): _layer,
    ("calibration", "input-cut-off"): lambda c, e: (
        f"input {_names(c)} of the deployed file holds {e['range'][0]:.4g} to {e['range'][1]:.4g}, and "
        f"is fed {e['fed'][0]:.4g} to {e['fed'][1]:.4g}: {e['cut_off']:.0%} of the values are cut off"
        + (
            f"; the original, cut off alike, answers as it does ({_then(e)})"
            if c.proof == "corrected"
            else ""
        )
    ),
    ("input-range", "few-codes"): lambda c, e: (
        f"input {_names(c)} of the deployed file holds {e['range'][0]:.4g} to {e['range'][1]:.4g}, and "
        f"is fed {e['fed'][0]:.4g} to {e['fed'][1]:.4g}: {e['used']:.0%} of the codes are used"
    ),
    ("output-scale", "one-scale"): lambda c, e: (
        f"output {_names(c)}: {len(e['channels'])} of {e['of']} channels take at most "
        f"{counted(e['levels'], 'value')}, {e['step']:.3g} apart, and reach {e['reach']:.3g} (the original's "
        f"{e['original_reach']:.3g}): they share a scale with channels up to {e['largest']:.3g}"
    ),
    ("preprocessing", "other-way"): lambda c, e: (
        f"fed {_way(e)} the file on this machine answers as the device does "
        f"({_db(e['agreement'])}; as stated {_db(e['stated'])})"
        if c.side == "device"
        else f"with the {c.side} model fed {_way(e)} the pair agrees "
        + "better " * (c.proof == "indicated")
        + f"({_then(e)})"
    ),
    ("preprocessing", "normalises-inside"): lambda c, e: (
        f"the {c.side} file normalises inside ({_names(c)}): it takes {pixels_words(e['told'])}, and is "
        f"stated to be fed {pixels_words(e['stated'])}"
    ),
    ("preprocessing", "contradicts-file"): lambda c, e: (
        f"the {c.side} model is stated to be fed {pixels_words(e['stated'])}, and takes "
        f"{pixels_words(e['told'])} ({source_words(e['source'], e['names'])})"
    ),
    ("preprocessing", "as-original"): lambda _, e: (
        f"fed {_way(e)} the original answers as the device does ({_then(e)}): the two are fed "
        "differently"
    ),
    ("preprocessing", "same-tensor"): lambda _, e: (
        f"the two are fed differently; given the same tensor they agree ({_then(e)})"
        + _fed_rightly(e)
        + "; so they do with the classes renumbered" * bool(e.get("classes"))
    ),
    ("preprocessing", "of-both"): lambda _, e: (
        f"the original itself is right on {e['right']:.0%} only as it is fed; fed {_way(e)} on "
        f"{e['right_then']:.0%} ({e['won']} won, {e['lost']} lost of {e['labelled']})"
        + (f"; with the classes renumbered on {e['renumbered']:.0%}" if "renumbered" in e else "")
    ),
    ("preprocessing", "inaccurate"): lambda _, e: (
        f"the original is right on {e['right']:.0%} of {counted(e['labelled'], 'labelled seed')}, and "
        f"none of {e['tried']} ways of feeding is clearly better: the feed or the labels of both "
        "are doubtful"
    ),
    ("labels", "missing"): lambda *_: (
        "no seed has a label: what is wrong with how both models are fed alike can't be seen"
    ),
    ("labels", "renumbered"): lambda _, e: (
        f"both models follow other class numbers than the labels: with the classes renumbered the "
        f"original is right on {e['renumbered']:.0%}, not on {e['right']:.0%}"
    ),
    ("interface", "inputs-exchanged"): lambda c, e: (
        f"with the inputs of the deployed model in the order {', '.join(c.names)} the pair agrees "
        f"({_then(e)})"
    ),
    ("interface", "outputs-exchanged"): lambda c, e: "; ".join(
        f"{name} holds what the original calls {other}"
        for name, other in zip(c.names, e["holds"], strict=True)
    ),
    ("interface", "classes-exchanged"): lambda _, e: (
        "the classes are numbered otherwise ("
        + ", ".join(f"{at} is {one} there" for at, one in list(e["classes"].items())[:_MANY])
        + f"); renumbered the pair agrees ({_db(e['agreement'])})"
    ),
    ("interface", "one-class-more"): lambda _, e: (
        f"the {e['side']} model has one class more, {e['which']} in order (a background?): without "
        f"it the pair agrees ({_then(e)})"
    ),
    ("interface", "axes"): lambda c, e: (
        f"with the axes of output {_names(c)} in the order {e['axes']} the pair agrees ({_then(e)})"
    ),
    ("interface", "form"): lambda c, e: (
        f"{_FUNCTIONS[e['function']].format(_names(c))} the pair agrees ({_then(e)})"
    ),
    ("interface", "boxes"): lambda c, e: (
        f"with the boxes of output {_names(c)} as {e['boxes'].replace('-', ' ')} the pair agrees "
        f"({_then(e)})"
    ),
    ("interface", "units"): lambda c, e: (
        f"output {_names(c)} has other units: times "
        f"{', '.join(f'{one:.3g}' for one in e['factors'][:_MANY])} the pair agrees ({_then(e)})"
    ),
    ("resize-rule", "answers-depend"): lambda _, e: (
        f"answers depend on how images are made smaller: with {e['rule']} in place of "
        f"{e['stated']} {e['changed']} of {e['of']} are others"
        + (f" ({e['right']} right, {e['right_stated']} as stated)" if "right" in e else "")
    ),
    ("exif", "turned"): lambda _, e: (
        f"{e['turned']} of {e['of']} seeds are turned by an EXIF tag; where a device ignores it, "
        f"{e['changed']} of these answers are others"
    ),
    ("", "answers-otherwise"): lambda _, e: (
        f"the same file answers otherwise on the device than here ({_db(e['stated'])}), and none "
        f"of {e['tried']} ways of feeding reproduces that (best {_db(e['best'])}), nor do other kernels: "
        + (f"{e['accelerator']}, " if e["accelerator"] else "its kernels, its delegate ")
        + "or an unknown feed"
    ),
    ("kernels", "other-kernels"): lambda _, e: (
        f"with {_stated(e['options'])} the file on this machine answers as the device does "
        f"({_db(e['agreement'])}; as it is run here {_db(e['stated'])})"
    ),
    ("compression", "int8-breaks-it"): lambda c, e: (
        f"the original itself does not bear int8: {_of_reference(c, e)}"
    ),
    ("compression", "as-int8-costs"): lambda c, e: (
        f"what is lost is what int8 costs this model: {_of_reference(c, e)}"
    ),
    ("compression", "more-than-int8-costs"): lambda c, e: (
        f"more is lost than int8 costs this model, and no layer or feed explains it: "
        f"{_of_reference(c, e)}"
    ),
}


ANOTHER_FILE = "it isn't the file that the campaign was run with"
NOT_LOOKED_FOR = "why the models differ wasn't looked for: {}"


def ruled_out(found: Triage) -> list[str]:
    """Return what was tried and doesn't fit, with counts."""
    lines = []
    file = found.ruled_out.get("file")
    if file is not None:
        lines.append(
            f"the deployed file {file['name']} can't be run here ({file['why']}), so that the device's recorded answers "
            "stand for it: with a file that can be, its layers, its ranges and ways of feeding it would be "
            "compared, too"
        )
    lines += [
        f"the outputs of the {side} model have another shape for each seed: nothing can be compared"
        for side in found.ruled_out.get("changing-shapes", ())
    ]
    feeds = found.ruled_out.get("feeds")
    # of a pair that agrees it goes without saying that no other way of feeding is needed
    if feeds is not None and not found.is_healthy:
        lines.append(
            f"none of {feeds['tried']} ways of feeding brings agreement (best {_db(feeds['best'])}, "
            f"{feeds['needed']:.0f} needed): what is stated is not refuted"
        )
    for name, noun in (
        ("forms", "other forms of the outputs"),
        ("input-orders", "orders of the inputs"),
    ):
        if name in found.ruled_out:
            tried = found.ruled_out[name]
            lines.append(
                f"none of {tried['tried']} {noun} brings agreement (best {_db(tried['best'])})"
            )
    accuracy = found.ruled_out.get("accuracy")
    if accuracy is not None and accuracy["original"] > accuracy["deployed"]:
        lines.append(
            f"accuracy {accuracy['original']:.1%} -> {accuracy['deployed']:.1%} on "
            f"{counted(accuracy['labelled'], 'labelled seed')}"
        )
    classes = found.ruled_out.get("labels", {})
    if "largest" in classes:
        lines.append(
            f"the labels fit no output: there is a class {classes['largest']}, and the models have "
            f"{classes['classes']} classes"
        )
    elif classes:
        lines.append(
            f"the labels fit nothing: the original is right on {classes['right']:.0%} of them, and no "
            "renumbering helps"
        )
    layers = found.ruled_out.get("layers", {})
    if "largest" in layers and not found.is_healthy:
        lines.append(
            f"no layer stands out: the largest fall is {layers['largest']:.0f} dB, at {layers['at']}"
        )
    elif "unread" in layers:
        lines.append("; ".join(["the layers can't be compared", *layers["unread"]]))
    lines += [
        f"{name.replace('_', ' ')} was not tried: {why}" for name, why in found.failed.items()
    ]
    return lines

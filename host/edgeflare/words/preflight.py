"""What a check before the search found, in words."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial

from edgeflare._internal.text import counted, duration
from edgeflare.types import Issue

MAY_BE_CHANCE = "{}; with only {} this may be chance"


def sentence(issue: Issue) -> str:
    """Return an issue in words, without a full stop; it begins in lower case."""
    return _SENTENCES[issue.code](**issue.data)


def _unusable(does: str, model: str, inputs: int, of: int, replica: str = "") -> str:
    name = "the deployed model" if model == "deployed" else "the original"
    where = f" on {replica}" if replica else ""
    share, was = f"{inputs:,} of {counted(of, 'input')}", "was" if of == 1 else "were"
    done = does.format(share=share, was=was, inputs=counted(of, "input"))
    return f"{name}{where} {done}: neither agreement nor deviations can be told by that"


def _disagreement(
    differing: int, seeds: int, examples: Sequence[Mapping[str, str]], **_: object
) -> str:
    shown = ", ".join(f"{one['seed']} ({one['difference']})" for one in examples)
    return (
        f"the two models disagree on {differing} of {seeds} seeds as they are, far more "
        f"than compression explains: {shown}"
    )


def _accuracy(model: str, right: int, labelled: int, classes: int, **_: object) -> str:
    return (
        f"the {model} model is right on only {right} of {labelled} labelled seeds, no better "
        f"than guessing among {classes} classes"
    )


def _one_class(labelled: int, label: int) -> str:
    return (
        f"all {labelled} labelled seeds are of class {label}, so that the accuracy on them "
        "tells nothing of the preprocessing; take seeds of several classes "
        "(--limit takes the first)"
    )


def _objects(seeds: int, median: float) -> str:
    seen = (
        f"{median:g} objects on the median seed"
        if median
        else f"nothing on any of {counted(seeds, 'seed')}"
    )
    return (
        f"the original detects {seen}: check the decoder (--decoder), the confidence "
        "(--confidence) and the preprocessing (--input)"
    )


def _slow(device_s: float, host_s: float, timeout_s: float, affordable: int) -> str:
    host = f" and {duration(host_s)} on the host" if host_s >= 0.01 * device_s else ""
    took = (
        f"one inference takes {duration(device_s)} on the device{host}, so the time budget of "
        f"{timeout_s:g} s"
    )
    if affordable < 1:
        return f"{took} ends a search after its first query: state a longer --timeout"
    return (
        f"{took} ends a search after about {affordable} queries; such an end depends on speed; for "
        f"repeatable results state --max-queries {affordable} or a longer --timeout"
    )


def _saturation(file: str, seeds: int, answers: int, decisions: int) -> str:
    return (
        f"{file} answers otherwise on {answers} of {counted(seeds, 'seed')}, and decides "
        f"otherwise on {decisions}, than with exact 8-bit products: onnxruntime saturates their sums on "
        "the device's processor (x86-64 without VNNI), and neither on processors with VNNI nor on "
        "arm64; what is found here may not be found there. Quantise with reduce_range=True, or "
        "state the runtime option exact_int8 = true"
    )


def _class_names(file: str, names: int, classes: int) -> str:
    return (
        f"--class-names {file} names {counted(names, 'class', 'classes')}, and "
        f"the models have {classes:,}: check that it is the file of these models, with their classes in order "
        "and none for the background"
    )


def _input_order(original: Sequence[str], deployed: Sequence[str]) -> str:
    return (
        f"the pictures beside each other are {', '.join(original)} for the original and "
        f"{', '.join(deployed)} for the deployed model, as --input-name states: check the order"
    )


def _same_file() -> str:
    return (
        "the deployed model is the original, the same file: only the device and its "
        "runtime can make a difference"
    )


def _ignored_labels(seeds: int) -> str:
    return f"the labels of {seeds} seeds are ignored: these models don't answer with one class"


def _most_promising(seeds: int, of: int, priority: str) -> str:
    return (
        f"the {counted(seeds, 'seed')} are the most promising of {of:,} by "
        f"{priority}: rates and means are about these, not about all"
    )


_SENTENCES: Mapping[str, Callable[..., str]] = {
    "not-repeatable": partial(
        _unusable,
        "answers otherwise to the same input ({share} that {was} sent again), and is not repeatable",
    ),
    "non-finite": partial(_unusable, "answers with NaN or infinity to {share}"),
    "constant": partial(_unusable, "gives the same answer to all of {inputs}"),
    "tied": partial(_unusable, "is without a decision on {share}, a tie of its best answers"),
    "disagreement": _disagreement,
    "accuracy-original": partial(_accuracy, "original"),
    "accuracy-deployed": partial(_accuracy, "deployed"),
    "one-class": _one_class,
    "objects": _objects,
    "slow": _slow,
    "saturation": _saturation,
    "class-names": _class_names,
    "input-order": _input_order,
    "same-file": _same_file,
    "ignored-labels": _ignored_labels,
    "most-promising": _most_promising,
}

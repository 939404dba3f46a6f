"""Checks of limits in words."""

import math

from edgeflare._internal.text import distinct_number, first_names
from edgeflare.analysis.limits import LimitCheck
from edgeflare.words.answers import apart_words

_WHAT_SEEDS_ARE = {"max_seed_deviation_rate": "answered", "max_confident_deviation": "surveyed"}
_UNTOLD = "can't be told, and counts as crossed: "


def limit_words(check: LimitCheck) -> str:
    """Return one sentence with the counts, and with the first few that cross the limit."""
    of = check.figures
    if not check.checked:
        why = (
            "this is no replay"
            if _key(check) == "max_new_triggers"
            else "a replay searches nothing"
        )
        return f"{check.name}: not checked, {why}"
    words = _compared(check) if check.reason in ("compared", "no-triggers") else _why(check)
    so_far = "" if of.finished else "so far "
    return f"{check.name}: {so_far}{words}{_names(check)}{_beside(check)}"


def _key(check: LimitCheck) -> str:
    return check.name.partition(".")[0]


def _names(check: LimitCheck) -> str:
    """Return the worst few that cross a limit by name, and how many more there are."""
    if not check.crossed or not check.figures.offenders:
        return ""
    names = [
        one.name if one.value is None else f"{one.name} ({_number(one.value, check)})"
        for one in check.figures.offenders
    ]
    return f": {first_names(names, check.figures.crossing)}"


def _number(value: float, check: LimitCheck) -> str:
    return str(value) if isinstance(value, int) else distinct_number(value, float(check.limit))


def _beside(check: LimitCheck) -> str:
    """Return what a figure leaves out, and what would narrow its bounds."""
    of = check.figures
    parts = [
        (of.deviating, f"{of.deviating} more deviate as they are"),
        (of.failed, f"a model could not answer on {of.failed}"),
        (of.nonfinite, f"{of.nonfinite} gave NaN or infinity"),
        (of.unsteady, f"{of.unsteady} gave no steady answer"),
    ]
    if check.undecided and check.reason == "compared" and of.soundness is None:
        more = "more inputs narrow the bounds (more seeds, or --survey-queries)"
        parts.append((1, "more seeds narrow the bounds" if of.rule else more))
    return "".join(f"; {words}" for count, words in parts if count)


def _why(check: LimitCheck) -> str:
    """Return why there is nothing that could be compared."""
    of, reason = check.figures, check.reason
    words = of.cause
    if reason == "no-seeds":
        done = _WHAT_SEEDS_ARE.get(_key(check), "searched")
        words = f"no seed {'was' if of.finished else 'is'} {done}"
    elif reason == "no-objects" and of.rule is not None:
        objects = _objects(check)
        if not of.finished:
            return f"the {of.rule.whose} has detected no {objects} yet"
        words = f"the {of.rule.whose} detects no {objects} on the seeds"
    elif reason == "no-reference":
        words = "no reference has answered"
    elif reason == "labels-only":
        words = "the device tells labels only"
    elif reason == "no-detections":
        words = "the models detect no objects"
    elif reason == "no-class":
        words = f"no class is named {check.name.partition('.')[2]!r} there"
    elif reason == "no-pairs":
        words = f"{of.kind.noun} have no {of.kind.lacks}"
    elif reason == "unsteady":
        words = f"none of {of.total} inputs gave a steady answer"
    elif of.unusable is not None:
        words = of.unusable.words
    if check.crossed:
        return _UNTOLD + words
    return f"can't be told: {words}" if check.undecided else words


def _objects(check: LimitCheck) -> str:
    _, _, class_ = check.name.partition(".")
    return f"objects of the class {class_}" if class_ else "objects"


def _percent(rate: float, other: float | None = None) -> str:
    """Return a share in per cent, in enough digits to differ from `other`."""
    return f"{100 * rate:g} %" if other is None else f"{distinct_number(100 * rate, 100 * other)} %"


def _compared(check: LimitCheck) -> str:
    of, limit = check.figures, check.limit
    if of.soundness is not None:
        return "; ".join((of.soundness.words, *of.soundness.evidence))
    if of.rule is not None:
        verb = f"that the {of.rule.whose} detects on the seeds"
        return f"{_rate(check, f'{_objects(check)} {verb}', of.rule.verb)}; at most {_percent(float(limit))} may"
    return _COMPARED[_key(check)](check)


def _rate(check: LimitCheck, what: str, do: str, *, bounds: bool = True) -> str:
    """Return a rate with its counts: so many of `what` `do`."""
    of, limit = check.figures, float(check.limit)
    rate = of.count / of.total
    within = (
        f", 95 % bounds {_percent(of.low, limit)} to {_percent(of.high, limit)}" if bounds else ""
    )
    return f"{of.count} of {of.total} {what} ({_percent(rate, limit)}) {do}{within}"


def _searched(check: LimitCheck) -> str:
    return "searches" if check.figures.each_device else "searched seeds"


def _max_deviation_rate(check: LimitCheck) -> str:
    words = _rate(check, _searched(check), "have a triggering input", bounds=False)
    return f"{words}, at most {_percent(float(check.limit))} are allowed"


def _max_seed_deviation_rate(check: LimitCheck) -> str:
    what = "answers to seeds" if check.figures.each_device else "answered seeds"
    words = _rate(check, what, "deviate as they are", bounds=False)
    return f"{words}, at most {_percent(float(check.limit))} are allowed"


def _max_confident_deviation(check: LimitCheck) -> str:
    words = _rate(check, "inputs far from the seeds", "deviate")
    return f"{words}; at most {_percent(float(check.limit))} are allowed"


def _min_median_queries(check: LimitCheck) -> str:
    of, median = check.figures, check.value or 0.0
    took = (
        "is without one"
        if math.isinf(median)
        else f"took {median:g} {'query' if median == 1 else 'queries'} to the first one"
    )
    return (
        f"of {of.total} {_searched(check)}, {of.count} of them with a triggering input, the "
        f"median {took}, at least {check.limit} are wanted"
    )


def _min_l2(check: LimitCheck) -> str:
    rule = f"none may be nearer than {check.limit:g}"
    if check.value is None:
        return f"no triggering input was found, {rule} to its seed"
    nearest = distinct_number(check.value, float(check.limit))
    return (
        f"the nearest of {check.figures.total} triggering inputs is L2 {nearest} from its seed, "
        f"{rule}{_crossing(check, 'nearer')}"
    )


def _max_severity(check: LimitCheck) -> str:
    rule = f"none may have one above {check.limit:g}"
    if check.value is None:
        return f"no triggering input was found, so no margin, {rule}"
    most = distinct_number(check.value, float(check.limit))
    return (
        f"the most severe of {check.figures.total} triggering inputs has a smaller margin of {most}, "
        f"{rule}{_crossing(check, 'above it')}"
    )


def _max_disagreement(check: LimitCheck) -> str:
    if check.value is None:
        return f"no triggering input was found, at most {_percent(float(check.limit))} may be"
    words = check.figures.kind.report_words
    apart, most = apart_words(words, check.value, float(check.limit))
    return (
        f"of {check.figures.total} triggering inputs the models' answers to the worst one {apart}, at "
        f"most {most} may be{_crossing(check, 'above it')}"
    )


def _crossing(check: LimitCheck, where: str) -> str:
    count = check.figures.crossing
    return f"; {count} {'is' if count == 1 else 'are'} {where}" if count else ""


def _new_pairs(check: LimitCheck) -> str:
    of = check.figures
    return (
        f"{of.count} of {of.total} deviating class pairs are not among the {of.known} of "
        f"{of.baseline}, none may be new"
    )


def _max_new_triggers(check: LimitCheck) -> str:
    of = check.figures
    return (
        f"{of.count} of {of.total} replayed inputs deviate now and did not before, at most "
        f"{check.limit} may"
    )


_COMPARED = {
    "max_deviation_rate": _max_deviation_rate,
    "max_seed_deviation_rate": _max_seed_deviation_rate,
    "min_median_queries": _min_median_queries,
    "min_l2": _min_l2,
    "max_severity": _max_severity,
    "max_disagreement": _max_disagreement,
    "max_confident_deviation": _max_confident_deviation,
    "new_pairs": _new_pairs,
    "max_new_triggers": _max_new_triggers,
}

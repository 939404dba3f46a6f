"""The verdict against healthy references, and what it rests on, in words."""

from collections.abc import Callable, Mapping

from edgeflare._internal.text import capitalized, counted, percent_text
from edgeflare.analysis.soundness import (
    FEWEST_SEEDS,
    EvidenceCode,
    OwnFigures,
    Soundness,
    SoundnessVerdict,
)
from edgeflare.words.preflight import sentence

_VERDICTS: Mapping[SoundnessVerdict, tuple[str, str, str]] = {
    "sound": (
        "",  # nothing is
        "the deployed model is sound: no worse than its healthy reference",
        "the deployed model is sound: no worse than healthy references",
    ),
    "worse": (
        "the deployed model is worse than its original on the seeds as they are",
        "the deployed model is worse than its healthy reference",
        "the deployed model is worse than every healthy reference",
    ),
    "cannot-tell": (
        "it can't be told whether the deployed model is worse: no healthy reference is left",
        "it can't be told whether the deployed model is worse than its healthy reference",
        "it can't be told whether the deployed model is worse than healthy references",
    ),
}
"""Each verdict: without a healthy reference, against one and against several."""


def soundness_words(found: Soundness) -> str:
    """Return the verdict, without what it rests on."""
    return _VERDICTS[found.verdict][min(len(found.references), 2)]


def soundness_sentence(found: Soundness) -> str:
    """Return the verdict in one sentence, with the numbers of inputs and references."""
    words = capitalized(soundness_words(found))
    if not found.references:
        seeds = 0 if found.own is None else found.own.inputs
        out = f", {counted(len(found.left_out), 'reference')} left out" if found.left_out else ""
        return f"{words} ({counted(seeds, 'seed')}{out})."
    each = f" for each of {found.devices} devices" if found.devices > 1 else ""
    return (
        f"{words} ({counted(found.inputs, 'input')} far from the seeds, "
        f"{counted(len(found.references), 'reference')}, {100 * found.confidence:g} % "
        f"confidence{each})."
    )


def evidence_words(found: Soundness) -> tuple[str, ...]:
    """Return what the verdict rests on, the most important first, without full stops."""
    device = f"{found.replica}: " if found.replica else ""
    return tuple(
        f"{'' if code in _OF_ALL_DEVICES else device}{_EVIDENCE[code](found)}"
        for code in found.reasons
    )


def evidence_sentences(found: Soundness) -> tuple[str, ...]:
    """Return what the verdict rests on, a sentence each."""
    return tuple(f"{capitalized(words)}." for words in evidence_words(found))


def drift_text(drift: float) -> str:
    """Return a drift or an excess drift, 0 to 1, in three digits."""
    return "below 0.001" if 0 < drift < 0.0005 else f"{drift:.3f}"


def _own(found: Soundness) -> str:
    own = found.own or OwnFigures()
    parts = []
    if own.labelled:
        shares = [percent_text(right / own.labelled) for right in (own.right, own.original_right)]
        parts.append(
            f"is right on {own.right:,} of {own.labelled:,} ({shares[0]}), the original on "
            f"{own.original_right:,} ({shares[1]}): {own.lost:,} lost, {own.won:,} won"
        )
    healthy = [
        one.flips for name, one in found.own_references.items() if name not in found.left_out
    ]
    against = ""
    if healthy:
        each = "the healthy reference" if len(healthy) == 1 else "a healthy reference"
        against = f" ({each} on {'' if len(healthy) == 1 else 'at most '}{max(healthy):,})"
    parts.append(f"decides otherwise on {own.flips:,} of {own.inputs:,}{against}")
    if own.failed:
        parts.append(f"has no answer on {own.failed:,}")
    return f"on the seeds as they are the deployed model {', '.join(parts)}"


def _left_out(found: Soundness) -> str:
    out = [f"{name} ({_fall(found.own_references[name])})" for name in found.left_out]
    are, their = ("is", "its") if len(out) == 1 else ("are", "their")
    has = "accuracy fell" if found.own and found.own.labelled else "decisions differ"
    return (
        f"{counted(len(out), 'reference')} {are} left out, since {their} own {has} there, too: "
        f"{', '.join(out)}"
    )


def _fall(own: OwnFigures) -> str:
    """Return from what the accuracy fell to what or, without labels, the flips."""
    if not own.labelled:
        return f"{own.flips:,} of {own.inputs:,}"
    return " to ".join(percent_text(one / own.labelled) for one in (own.original_right, own.right))


def _unhealthy(found: Soundness) -> str:
    return (
        f"of the references {', '.join(found.unhealthy)} was itself judged worse than its own "
        "references, and is no healthy one"
    )


def _poor_original(found: Soundness) -> str:
    own = found.own or OwnFigures()
    return (
        f"the original itself is right on only {own.original_right:,} of "
        f"{counted(own.labelled, 'labelled seed')}, so that agreeing with it is no merit: check the "
        "preprocessing of both models (edgeflare inputs) and the labels"
    )


def _many_flips(found: Soundness) -> str:
    least = percent_text((found.own or OwnFigures()).least_flips)
    return (
        f"it decides otherwise on at least {least} of inputs like the seeds, and so may its "
        "references: only labels tell whether that is harm (--labels)"
    )


def _more_flips(_: Soundness) -> str:
    return (
        "it decides otherwise on more than twice as many seeds as a healthy reference, though it is "
        "right as often"
    )


def _not_asked(_: Soundness) -> str:
    return (
        "the references weren't asked about the seeds as they are: an earlier version of edgeflare "
        "ran this campaign; run it again"
    )


def _unexplained(found: Soundness) -> str:
    verb = "deviates" if found.unexplained == 1 else "deviate"
    several = len(found.references) > 1
    others = "a reference against the others" if several else "the reference"
    return (
        f"{found.unexplained:,} of {counted(found.inputs, 'sure input')} {verb} where "
        f"{'every' if several else 'the'} healthy reference agrees with the original (at most "
        f"{percent_text(found.unexplained_high)} of all such inputs, by a one-sided "
        f"{100 * found.confidence:g} % bound); of {others} "
        f"{'at most ' if several else ''}{found.reference_unexplained:,}"
    )


def _excess(found: Soundness) -> str:
    kind = "healthy" if found.static == len(found.references) else "static"
    worst = (
        f"the {kind} reference"
        if found.static == 1
        else f"the worst of {found.static} {kind} references"
    )
    excess, low, high, reference, allowed = (
        drift_text(drift or 0.0)
        for drift in (
            found.excess,
            found.excess_low,
            found.excess_high,
            found.reference_excess,
            found.allowed_excess,
        )
    )
    return (
        f"excess drift {excess} on {counted(found.inputs, 'sure input')} (one-sided "
        f"{100 * found.confidence:g} % bounds {low} and {high}); {worst} has {reference}, {allowed} "
        "is allowed"
    )


def _more_inputs(found: Soundness) -> str:
    if found.more_inputs is None:
        return "more inputs of this kind would hardly tell: it lies at the limit of what is allowed"
    more = counted(found.more_inputs, "more sure input")
    return f"about {more} might tell: raise --survey-queries, or add seeds"


def _too_few(found: Soundness) -> str:
    return (
        f"{counted(found.inputs, 'sure input')} from {counted(found.seeds, 'seed')} tell nothing: "
        f"{FEWEST_SEEDS} seeds at least are needed"
    )


_EVIDENCE: Mapping[EvidenceCode, Callable[[Soundness], str]] = {
    "unusable": lambda found: found.unusable.words if found.unusable else "",
    "unhealthy": _unhealthy,
    "own": _own,
    "left-out": _left_out,
    "disagreement": lambda found: sentence(found.disagreement) if found.disagreement else "",
    "poor-original": _poor_original,
    "many-flips": _many_flips,
    "more-flips": _more_flips,
    "not-asked": _not_asked,
    "unexplained": _unexplained,
    "excess": _excess,
    "parts": lambda found: f"worse within {', '.join(found.parts)}",
    "more-inputs": _more_inputs,
    "too-few": _too_few,
}
_OF_ALL_DEVICES = ("unusable", "unhealthy")
"""Evidence that is not of the device that was judged."""

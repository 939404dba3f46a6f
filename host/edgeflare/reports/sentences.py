"""What is said of one trigger, or of one input of a replay, in a line."""

from collections.abc import Callable

from edgeflare._internal.text import margin_text
from edgeflare.analysis.outcome_stats import tolerance_of
from edgeflare.campaign.replay.results import ReplayedInput
from edgeflare.metrics import text_of
from edgeflare.reports.text_reports import ReportData
from edgeflare.store import OutcomeRecord
from edgeflare.types import Status

STEPS_SHOWN = 5
"""So many steps of a search a report tells of; the others are counted."""


def found_words(material: ReportData, one: OutcomeRecord) -> str:
    """Return a trigger in words, like ``4 -> 9 at L2 1.31 after 2 queries (margins 0.010, 0.050)``.

    Of audio the signal-to-noise ratio stands behind L2.
    """
    where = "on the seed itself"
    if one.status is not Status.SEED_DEVIATES:
        count = one.search_queries
        at = "" if one.l2 is None else f"at L2 {one.l2:.3g} "
        if one.snr_db is not None:
            at += f"(SNR {one.snr_db:.1f} dB) "
        where = f"{at}after {count:,} {'query' if count == 1 else 'queries'}"
    margins = ", ".join(
        "none" if margin is None else margin_text(margin)
        for margin in (one.original_margin, one.deployed_margin)
    )
    return f"{said_words(material, one)} {where} (margins {margins})"


def replayed_words(name: Callable[[int | None], str], one: ReplayedInput) -> str:
    """Return in words what became of an input, its state first: ``still deviates: 4 -> 9, was 4 -> 7``.

    `name` tells a class's name.
    """
    now = _said(
        name, (one.original_label, one.deployed_label), (one.original_text, one.deployed_text)
    )
    same = one.original_text is None and one.original_label == one.deployed_label
    if same and one.state in ("new", "still"):  # where a tolerance decides
        now = f"{name(one.original_label)} by both"
    labels_before = (one.original_label_before, one.deployed_label_before)
    texts_before = (one.original_text_before, one.deployed_text_before)
    before = _said(name, labels_before, texts_before)
    said = {
        "new": f"new: {now}",
        "still": f"still deviates: {now}",
        "fixed": f"fixed: {now}",
        "agrees": f"agrees as before: {now}",
        "unstable": "a deviation that did not repeat",
        "nonfinite": "NaN or infinity in an output",
        "failed": "a model can't answer",
    }[one.state]
    if one.narrow:
        said += ", narrowly"
    changed = one.state in ("new", "fixed") or one.elsewhere
    known = any(before is not None for before in (*labels_before, *texts_before))
    return f"{said}, was {before}" if changed and known else said


def said_words(material: ReportData, one: OutcomeRecord) -> str:
    """Return what both models say of a finding: classes as ``4 -> 9``, texts as ``"no" -> "go"``.

    Where a tolerance decides, how far the scores are apart stands behind it: ``4 by both, scores 0.12 apart``.
    """
    labels = (one.original_label, one.deployed_label)
    said = _said(material.name, labels, (text_of(one.original), text_of(one.deployed)))
    if tolerance_of(material.summary.search) is None or one.disagreement is None:
        return said
    both = f"{material.name(labels[0])} by both" if labels[0] == labels[1] else said
    return f"{both}, scores {margin_text(one.disagreement)} apart"


def _said(
    name: Callable[[int | None], str],
    labels: tuple[int | None, int | None],
    texts: tuple[str | None, str | None],
) -> str:
    both = zip(labels, texts, strict=True)
    return " -> ".join(name(label) if text is None else f'"{text}"' for label, text in both)

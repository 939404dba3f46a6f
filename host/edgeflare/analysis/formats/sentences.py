"""What is said of one trigger, or of one input of a replay, in a line."""

from edgeflare.analysis.formats.material import Material
from edgeflare.analysis.words import margin_text
from edgeflare.campaign.replay_states import ReplayedInput
from edgeflare.store import OutcomeRecord
from edgeflare.types import Status


def found_words(material: Material, one: OutcomeRecord) -> str:
    """Return a trigger in words, like ``4 -> 9 at L2 1.31 after 2 queries (margins 0.010, 0.050)``."""
    where = "on the seed itself"
    if one.status is not Status.SEED_DEVIATES:
        count = one.search_queries
        at = "" if one.l2 is None else f"at L2 {one.l2:.3g} "
        where = f"{at}after {count:,} {'query' if count == 1 else 'queries'}"
    margins = ", ".join(
        "none" if margin is None else margin_text(margin)
        for margin in (one.original_margin, one.deployed_margin)
    )
    return f"{label_words(material, one.original_label, one.deployed_label)} {where} (margins {margins})"


def replayed_words(material: Material, one: ReplayedInput) -> str:
    """Return in words what became of an input, like ``still deviates: 4 -> 9, was 4 -> 7``."""
    now = label_words(material, one.original_label, one.deployed_label)
    before = label_words(material, one.original_label_before, one.deployed_label_before)
    said = {
        "new": f"deviates and did not before: {now}",
        "still": f"still deviates: {now}",
        "fixed": f"fixed: {now}",
        "agrees": f"agrees as before: {now}",
        "unstable": "a deviation that did not repeat",
        "nonfinite": "NaN or infinity in an output",
        "failed": "the device can't answer",
    }[one.state]
    if one.narrow:
        said += ", narrowly"
    changed = one.state in ("new", "fixed") or one.elsewhere
    return f"{said}, was {before}" if changed and before != "- -> -" else said


def label_words(material: Material, original: int | None, deployed: int | None) -> str:
    """Return what the original says and what the deployed model says."""
    return f"{material.name(original)} -> {material.name(deployed)}"

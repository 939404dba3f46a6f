"""What the findings of a campaign come of, in tables."""

from collections.abc import Mapping
from statistics import median

from edgeflare._internal.text import NOTHING, counted, number_text, percent_text
from edgeflare.explanation import Explanation, FindingCause, FindingGroup
from edgeflare.reports.document import (
    Block,
    Column,
    Heading,
    Item,
    Listing,
    Name,
    Table,
    Text,
    table_of,
)

CAUSE_WORDS: Mapping[FindingCause, str] = {
    "rounding": "rounding: the original decides otherwise by other kernels, too",
    "preprocessing": "preprocessing: the original decides otherwise with the deployed model's",
    "conversion": "conversion: the float model decides otherwise in the deployed format",
    "compression": "compression: the deployed file decides otherwise by the plainest kernels",
    "kernels": "kernels: only by the runtime's fast kernels",
    "instruction set": "instruction set: only where 8-bit products saturate",
    "accelerator": "accelerator: only on the delegate or provider",
    "hardware": "hardware: only on the device, by the plainest kernels, too",
    "not repeatable": "not repeatable: asked again, a model answers otherwise",
    "unanswered": "unanswered: a model can't answer it any more",
}
GROUPS_SHOWN = 10


def explanation_document(found: Explanation) -> list[Block]:
    """Return what the findings come of, without a heading."""
    return explanation_blocks(found)[1:]


def explanation_blocks(found: Explanation | None, name: Name = str) -> list[Block]:
    """Return how many findings come of each cause, by labels, and what is unclear.

    `name` returns a class's name. Nothing where a campaign was not explained.
    """
    if found is None:
        return []
    total = len(found.findings)
    rows = []
    for cause, count in found.counts.items():
        doubtful = sum(bool(one.doubt) for one in found.findings if one.cause == cause)
        share = percent_text(count / total)
        rows.append([CAUSE_WORDS[cause], f"{count:,}", share, f"{doubtful:,}"])
    asked = counted(found.device_queries, "device query", "device queries")
    text = f"{counted(total, 'finding')} explained with {asked}"
    if found.left_out:
        text += f"; {counted(found.left_out, 'more finding')} left out, see --device-queries"
    return [
        Heading("Causes"),
        Text(text),
        table_of(["what decides", "findings", "share", "doubtful"], rows),
        *_contributions(found),
        *_groups(found, name),
        *([Listing(tuple(Item(one) for one in found.notices))] if found.notices else []),
    ]


def _contributions(found: Explanation) -> list[Block]:
    """Return what each rung changes of the margin, over the findings whose margins are known."""
    known = [one.contributions for one in found.findings if one.contributions]
    rows = []
    for rung, _, what in found.rungs:
        changes = [one[rung] for one in known if rung in one]
        if changes:
            rows.append([what, f"{median(changes):+.3f}", f"{max(changes):+.3f}"])
    if not rows:
        return []
    return [
        Heading("What each step changes", 4),
        Text(
            "The margin is the probability of the deployed model's class less that of the original's: "
            "below 0 for the original, above 0 on the device"
        ),
        table_of(["step", "median", "largest"], rows),
    ]


def _groups(found: Explanation, name: Name) -> list[Block]:
    columns = (
        Column("cause", 0, lambda one: one.cause, text=True),
        Column("original -> deployed", 0, lambda one: labels_words(one, name), text=True),
        Column("findings", 0, lambda one: f"{one.count:,}"),
        Column(
            "doubtful", 0, lambda one: f"{one.doubtful:,}" if one.doubtful else "", optional=True
        ),
        Column("nearest to its seed", 0, lambda one: one.nearest.seed_id, text=True),
        Column("L2", 0, lambda one: number_text(one.nearest.l2)),
    )
    more = len(found.groups) - GROUPS_SHOWN
    rest: list[Block] = [Text(f"Left out here: {counted(more, 'more group')}")]
    return [
        Heading("Groups", 4),
        Table(columns, found.groups[:GROUPS_SHOWN]),
        *(rest if more > 0 else []),
    ]


def labels_words(group: FindingGroup, name: Name) -> str:
    """Return both models' classes, such as ``4 -> 9``; a dash where there are none."""
    if group.original_label is None or group.deployed_label is None:
        return NOTHING
    return f"{name(group.original_label)} -> {name(group.deployed_label)}"

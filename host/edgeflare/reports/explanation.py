"""What the findings of a campaign come of, in tables."""

from collections.abc import Mapping
from statistics import median

from edgeflare._internal.text import counted, percent_text
from edgeflare.explanation import Explanation
from edgeflare.explanation.charge import FindingCause
from edgeflare.reports.document import Block, Heading, Item, Listing, Text, table_of

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


def explanation_document(found: Explanation) -> list[Block]:
    """Return how many findings come of each cause, what each rung changes, and what is unclear."""
    total = len(found.findings)
    rows = []
    for cause, count in found.counts.items():
        some = [one for one in found.findings if one.cause == cause]
        rows.append(
            [
                CAUSE_WORDS[cause],
                f"{count:,}",
                percent_text(count / total),
                f"{sum(bool(one.doubt) for one in some):,}",
            ]
        )
    asked = counted(found.device_queries, "device query", "device queries")
    text = f"{counted(total, 'finding')} explained with {asked}"
    if found.left_out:
        text += f"; {counted(found.left_out, 'more')} left out, see --device-queries"
    blocks: list[Block] = [
        Text(text),
        table_of(["what decides", "findings", "share", "doubtful"], rows),
        *_contributions(found),
    ]
    if found.notices:
        blocks.append(Listing(tuple(Item(one) for one in found.notices)))
    return blocks


def _contributions(found: Explanation) -> list[Block]:
    """Return what each rung changes of the margin, over the findings whose margins are known."""
    known = [one.contributions for one in found.findings if one.contributions]
    if not known:
        return []
    rows = []
    for name, _, what in found.rungs:
        changes = [one[name] for one in known if name in one]
        if changes:
            rows.append([what, f"{median(changes):+.3f}", f"{max(changes):+.3f}"])
    return [
        Heading("What each step changes of the margin"),
        Text(
            "Probability of the deployed model's class less that of the original's: from below 0 at "
            "the original to above 0 on the device"
        ),
        table_of(["step", "median change", "largest"], rows),
    ]

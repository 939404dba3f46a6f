"""What a page says first: a sentence that a person can act on, and how far the campaign is."""

from collections.abc import Callable
from typing import NamedTuple

from edgeflare.analysis.kinds import tolerance_of
from edgeflare.analysis.page.collected import Collected, Worst
from edgeflare.analysis.summary import Summary
from edgeflare.analysis.verdict import Tone, Verdict, guidance, progress
from edgeflare.campaign.live import CampaignStatus
from edgeflare.text import counted, margin_text
from edgeflare.transcripts import excerpts
from edgeflare.types import Transcript


class Headline(NamedTuple):
    """The first sentence, what it means for the reader, and the sentences below it.

    `progress` says that the campaign isn't finished, "" where it is.
    """

    sentence: str
    tone: Tone
    more: tuple[str, ...]
    progress: str


def headline(
    said: Verdict,
    summary: Summary,
    collected: Collected,
    status: CampaignStatus,
    name: Callable[[int | None], str],
) -> Headline:
    """Return what came out of a campaign, a replay or a control; `name` tells a class's name."""
    more = [said.found] if said.found else []
    if summary.replay is None:
        more += _more(summary, collected, name)
    more += guidance(said, summary)
    return Headline(said.sentence, said.tone, tuple(more), progress(summary, status))


def _more(summary: Summary, collected: Collected, name: Callable[[int | None], str]) -> list[str]:
    more = []
    itself = summary.by_status.get("seed-deviates", 0)
    if itself:
        more.append(
            f"{counted(itself, 'trigger is a seed', 'triggers are seeds')} as "
            f"{'it is' if itself == 1 else 'they are'}, without any search."
        )
    worst = collected.worst
    if worst is not None and worst.severity >= 0:
        outcome = worst.finding.outcome
        if tolerance_of(summary.search) is not None:
            return [*more, _furthest(worst, name)]
        verb = "says"
        said = [name(outcome.original_label), name(outcome.deployed_label)]
        if isinstance(outcome.original, Transcript) and isinstance(outcome.deployed, Transcript):
            verb, said = (
                "hears",
                [f"“{text}”" for text in excerpts(outcome.original.text, outcome.deployed.text)],
            )
        more.append(
            f"The severest: the original {verb} {said[0]}, the deployed model {said[1]}, with margins of "
            f"{margin_text(outcome.original_margin)} and {margin_text(outcome.deployed_margin)} (from "
            f"{worst.finding.seed.id})."
        )
    return more


def _furthest(worst: Worst, name: Callable[[int | None], str]) -> str:
    outcome = worst.finding.outcome
    ours, theirs = outcome.original_label, outcome.deployed_label
    said = f"the original says {name(ours)}, the deployed model {name(theirs)}"
    if ours == theirs:
        said = f"both models say {name(ours)}"
    return (
        f"The severest: scores {margin_text(worst.severity)} apart, where {said} (from "
        f"{worst.finding.seed.id})."
    )

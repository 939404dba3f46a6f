"""What a page says first: a sentence that a person can act on, and how far the campaign is."""

import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Literal, NamedTuple

from edgeflare.analysis.page.collected import Collected
from edgeflare.analysis.replayed import ReplaySummary
from edgeflare.analysis.summary import Summary
from edgeflare.analysis.words import margin_text, percent_text
from edgeflare.campaign.control import CONTROL_NAME
from edgeflare.campaign.live import CampaignStatus
from edgeflare.campaign.replay_states import ReplayState
from edgeflare.store.database import DATABASE_NAME

Tone = Literal["bad", "warn", "good"]

_OTHER_STATES: tuple[tuple[ReplayState, str], ...] = (
    ("agrees", "in agreement as before"),
    ("unstable", "unstable"),
    ("nonfinite", "with NaN or infinity"),
    ("failed", "failed"),
)


class Headline(NamedTuple):
    """The first sentence, what it means for the reader, and the sentences below it.

    `progress` says that the campaign isn't finished, "" where it is.
    """

    sentence: str
    tone: Tone
    more: tuple[str, ...]
    progress: str


def headline(
    summary: Summary,
    collected: Collected,
    replay: ReplaySummary | None,
    status: CampaignStatus,
    name: Callable[[int | None], str],
) -> Headline:
    """Return what came out of a campaign, a replay or a control; `name` tells a class's name."""
    if replay is not None:
        found, tone = _replayed(replay)
    elif is_control(Path(summary.folder)):
        found, tone = _false_alarms(collected)
    else:
        found, tone = _found(summary, collected)
    more = [] if replay is not None else _more(summary, collected, name)
    checked = [one for one in summary.limits if one.checked]
    if summary.limits_crossed:
        sentence = f"Limits crossed: {', '.join(summary.limits_crossed)}."
        return Headline(sentence, "bad", (found, *more), _progress(summary, status))
    if checked:
        so_far = "" if status.state == "finished" else " so far"
        kept = "The limit is" if len(checked) == 1 else f"All {len(checked)} limits are"
        return Headline(f"{kept} kept{so_far}.", "good", (found, *more), _progress(summary, status))
    return Headline(found, tone, tuple(more), _progress(summary, status))


def is_control(folder: Path) -> bool:
    """Whether a campaign's folder is that of another one's control."""
    folder = folder.absolute()
    return folder.name == CONTROL_NAME and (folder.parent / DATABASE_NAME).is_file()


def _found(summary: Summary, collected: Collected) -> tuple[str, Tone]:
    finished = collected.finished
    if not finished:
        return "No seed has been searched from yet.", "warn"
    where = " on at least one of the devices" if len(summary.replicas) > 1 else ""
    if not collected.deviating:
        seeds = "the one seed" if finished == 1 else f"any of {finished:,} seeds"
        return (
            f"From {seeds} no input was found on which the deployed model decides differently.",
            "good",
        )
    share = percent_text(collected.deviating / finished)
    words = (
        f"{collected.deviating:,} of {_count(finished, 'seed')} ({share}) "
        f"{'leads' if collected.deviating == 1 else 'lead'} to an input on which the deployed model decides "
        f"differently{where}."
    )
    return words, "warn"


def _false_alarms(collected: Collected) -> tuple[str, Tone]:
    searches = _count(collected.finished, "search", "searches")
    if not collected.triggers:
        words = f"No false alarm: in {searches} the original was never taken for another model."
        return words, "good"
    alarms = _count(collected.triggers, "false alarm")
    words = f"{alarms} in {searches}: the original was taken for another model by rounding alone."
    return words, "warn"


def _replayed(replay: ReplaySummary) -> tuple[str, Tone]:
    counts = replay.counts
    if not replay.inputs:
        return "No input has been replayed yet.", "warn"
    deviating = counts["new"] + counts["still"]
    told = [f"{counts['fixed']:,} fixed", f"{counts['still']:,} still", f"{counts['new']:,} new"]
    told += [f"{counts[state]:,} {words}" for state, words in _OTHER_STATES if counts[state]]
    inputs = _count(len(replay.inputs), "replayed input")
    words = (
        f"On {deviating:,} of {inputs} the deployed model decides differently: {', '.join(told)}."
    )
    if counts["new"] or counts["nonfinite"]:
        return words, "bad"
    return words, "warn" if deviating else "good"


def _more(summary: Summary, collected: Collected, name: Callable[[int | None], str]) -> list[str]:
    more = []
    itself = summary.by_status.get("seed-deviates", 0)
    if itself:
        more.append(
            f"{_count(itself, 'trigger is a seed', 'triggers are seeds')} as "
            f"{'it is' if itself == 1 else 'they are'}, without any search."
        )
    worst = collected.worst
    if worst is not None and worst.severity >= 0:
        outcome = worst.finding.outcome
        more.append(
            f"The severest is {name(outcome.original_label)} taken for {name(outcome.deployed_label)}: margins of "
            f"{margin_text(outcome.original_margin)} (original) and "
            f"{margin_text(outcome.deployed_margin)} (deployed), from {worst.finding.seed.id}."
        )
    return more


def _progress(summary: Summary, status: CampaignStatus) -> str:
    if status.state == "finished":
        return ""
    done = summary.finished
    total = done + summary.unfinished
    told = f"{done:,} of {_count(total, 'search', 'searches')} {'is' if total == 1 else 'are'} done"
    if status.state == "running":
        return f"The campaign is still running: {told}. Write the report again once it has ended."
    why = f" ({status.message})" if status.message else ""
    words = {"paused": "is paused", "failed": "failed"}.get(status.state, "was interrupted")
    resume = shlex.join(["edgeflare", "resume", summary.folder])
    return f"The campaign {words}{why}: {told}. Go on with: {resume}"


def _count(count: int, one: str, many: str = "") -> str:
    return f"{count:,} {one if count == 1 else many or one + 's'}"

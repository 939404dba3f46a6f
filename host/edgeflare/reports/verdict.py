"""The result of a campaign, a replay or a control: the first sentences of every report."""

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

from edgeflare._internal.text import capitalized, counted, number_text, percent_text
from edgeflare.analysis.summary import Summary
from edgeflare.answers.oracles import traits_in
from edgeflare.campaign.pair.health import UnusableAnswers
from edgeflare.campaign.status import CONTROL_NAME, CampaignStatus, count_alarms
from edgeflare.reports.devices import NO_SEARCH
from edgeflare.reports.survey.document import (
    TONES,
    evidence_sentences,
    rate_words,
    soundness_sentence,
)
from edgeflare.reports.survey.faults import fault_title
from edgeflare.store import Store, is_address
from edgeflare.store.location import is_campaign
from edgeflare.types import TRIGGERS

if TYPE_CHECKING:
    from edgeflare.analysis.limits import LimitCheck
    from edgeflare.analysis.replay import ReplaySummary
    from edgeflare.campaign.replay.results import ReplayState

Tone: TypeAlias = Literal["bad", "warn", "good", "neutral"]

_OTHER_STATES: "tuple[tuple[ReplayState, str], ...]" = (
    ("agrees", "in agreement as before"),
    ("unstable", "unstable"),
    ("nonfinite", "with NaN or infinity"),
    ("failed", "failed"),
)


class Verdict(NamedTuple):
    """The first sentence, its tone, and what was found if that sentence is about limits.

    "neutral": neither good nor bad for the deployed model; `guidance` says how to find out.
    """

    sentence: str
    tone: Tone
    found: str = ""

    @property
    def text(self) -> str:
        """All of it in one line."""
        return f"{self.sentence} {self.found}".rstrip()


def verdict(
    store: Store,
    summary: Summary,
    limits: "Sequence[LimitCheck]" = (),
    replay: "ReplaySummary | None" = None,
) -> Verdict:
    """Return whether the campaign is within its limits, if it has any, and how much was found.

    `summary` and `replay` are those of the store. Raises StoreError.
    """
    first: list[str] = []
    if replay is not None:
        found, tone = _replayed(replay, summary)
    elif is_control(store.folder):
        found, tone = _false_alarms(store, summary)
    else:
        first = _survey_sentences(summary)
        words, tone = _found(store, summary)
        found = f"Near the seeds: {words}" if first else capitalized(words)
        if first and not _searches(summary) and not _triggers(summary):
            found = ""
        if summary.soundness is not None:
            tone = TONES[summary.soundness.verdict]
    if summary.unusable:
        first, tone = unusable_sentences(summary.unusable), "bad"
        found = _still_found(found, summary)
    checked = sum(limit.checked for limit in limits)
    crossed = [limit.name for limit in limits if limit.crossed]
    undecided = [limit.name for limit in limits if limit.undecided]
    if crossed:
        first.append(_crossed_words(crossed, checked))
        tone = "bad"
    elif undecided:
        which = "the limit is" if checked == 1 else "all limits are"
        first.append(f"It can't be told whether {which} kept: {', '.join(undecided)}.")
        tone = "warn"
    elif checked:
        which = "The limit is" if checked == 1 else f"All {checked} limits are"
        first.append(f"{which} kept{'' if store.state.finished else ' so far'}.")
        worse = summary.soundness is not None and summary.soundness.verdict == "worse"
        unknown = tone == "neutral" and not _triggers(summary)
        tone = "warn" if worse else "neutral" if unknown else "good"
    return Verdict(" ".join(first), tone, found) if first else Verdict(found, tone)


def _crossed_words(crossed: Sequence[str], checked: int) -> str:
    names = ", ".join(crossed)
    if checked == 1:
        return f"The limit is crossed: {names}."
    are = "is" if len(crossed) == 1 else "are"
    return f"{len(crossed)} of {checked} limits {are} crossed: {names}."


def unusable_sentences(unusable: Sequence[UnusableAnswers]) -> list[str]:
    """Return what makes answers unusable: nothing that was counted by them stands before it."""
    return [f"{capitalized(one.words)}." for one in unusable]


def _still_found(found: str, summary: Summary) -> str:
    """Return the sentence on what was found, "" where it is agreement, or didn't repeat."""
    repeatable = all(one.kind != "not-repeatable" for one in summary.unusable)
    return found if repeatable and _triggers(summary) and summary.replay is None else ""


def _survey_sentences(summary: Summary) -> list[str]:
    """Return the verdict against references, or else the survey's rate, and the first fault.

    Nothing without a survey.
    """
    rate = None if summary.survey is None else summary.survey.overall
    if summary.soundness is not None:
        first = soundness_sentence(summary.soundness)
    elif rate is not None:
        words = summary.kind.report_words
        first = (
            f"Far from the seeds the models decide {words.deviate} on {rate.deviations:,} of "
            f"{counted(rate.inputs, 'input')}{words.where_sure} ({rate_words(rate)})."
        )
    else:
        return []
    faults = () if summary.faults is None else summary.faults.faults[:1]
    return [first, *(f"{capitalized(fault_title(fault))}: {fault.words}." for fault in faults)]


def guidance(result: Verdict, summary: Summary) -> tuple[str, ...]:
    """Return the evidence, what a neutral result leaves open, and what to do next."""
    return (*evidence(summary), *_of_search(result, summary))


def evidence(summary: Summary) -> tuple[str, ...]:
    """Return the evidence of the verdict against references, or how to get one."""
    if summary.soundness is not None:
        told = unusable_sentences(summary.unusable)
        return tuple(text for text in evidence_sentences(summary.soundness) if text not in told)
    if summary.unusable or summary.survey is None or summary.survey.overall is None:
        return ()
    if summary.replay is not None:
        return ()
    words = (
        "Whether healthy deployments of the original do as much: compare with them, "
        "--reference int8 (made on the host from an ONNX original) or --reference CAMPAIGN."
    )
    return (words,)


def _of_search(result: Verdict, summary: Summary) -> tuple[str, ...]:
    """Return what a neutral result of a search leaves open."""
    if result.tone != "neutral":
        return ()
    if not _triggers(summary):
        return _covered(summary)
    itself, searches = summary.by_status.get("seed-deviates", 0), summary.finished
    far = "" if summary.l2 is None else f" (here a median L2 of {number_text(summary.l2)})"
    words = summary.kind.report_words
    severity = words.severity.format(margin=words.margin)
    stated = (summary.search.get("options") or {}).get("device_budget")
    severer = "" if stated or not words.severer else f"{words.severer}, "
    meaning = (
        f"From nearly every seed there is such an input for a good model, too, {words.beside}. "
        "What tells a good model from a bad one: how many seeds deviate as they are "
        f"(here {itself:,} of {searches:,}), {severity}, and how far the triggers are from their "
        f"seeds{far}."
    )
    next_steps = (
        f"What to do next: set limits, such as {words.limit}, {severer}or rank models with "
        "edgeflare compare."
    )
    return meaning, next_steps


def _covered(summary: Summary) -> tuple[str, ...]:
    """Return what a boundary search that found nothing covered, and what not; else nothing."""
    if not _near_boundary(summary):
        return ()
    searches = summary.coverage.words
    covered = (
        f"Covered: {counted(summary.seeds, 'seed')} as "
        f"{'it is' if summary.seeds == 1 else 'they are'}"
    )
    covered += (
        f", and inputs beside the original's decision boundary near them; {searches}."
        if searches
        else "."
    )
    if summary.survey is not None and (rate := summary.survey.overall) is not None:
        missed = (
            "Not covered: what no family of the survey makes, and a fault on so few inputs far "
            f"from the seeds that {counted(rate.inputs, 'input')} can miss it."
        )
        return covered, missed
    missed = (
        "Not covered: inputs away from that boundary, so that this says neither good nor bad of "
        "the deployed model. A fault of a deployment (an overflow on dark images, a kernel wrong "
        "at the image's edge) can lie where there is no seed and no boundary."
    )
    further = "" if summary.sample_rate else ", search with --strategy dflare, too"
    return covered, missed, f"What to do next: take more seeds of other kinds{further}."


def _near_boundary(summary: Summary) -> bool:
    return bool(summary.search.get("strategy") == "boundary")


def _searches(summary: Summary) -> bool:
    """Whether anything is searched, not only the seeds compared as they are."""
    return bool(summary.search.get("strategy") != NO_SEARCH)


def _counted_outcomes(summary: Summary, count: int) -> str:
    """Return a number of searches or, without any search, of seeds."""
    return counted(count, *(("search", "searches") if _searches(summary) else ("seed",)))


def progress(summary: Summary, status: CampaignStatus) -> str:
    """Return how far a campaign is that isn't finished, and how to go on; "" for a finished one."""
    if status.state == "finished":
        return ""
    done = summary.finished
    total = done + summary.unfinished
    count = f"{done:,} of {_counted_outcomes(summary, total)} {'is' if total == 1 else 'are'} done"
    if status.state == "running":
        return f"The campaign is still running: {count}. Write the report again once it has ended."
    why = f" ({status.message})" if status.message else ""
    words = {"paused": "is paused", "failed": "failed"}.get(status.state, "was interrupted")
    name = summary.folder
    name = name if is_address(name) else str(Path(name).resolve())
    resume = shlex.join(["edgeflare", "resume", name])
    return f"The campaign {words}{why}: {count}. Go on with: {resume}"


def is_control(folder: Path) -> bool:
    """Whether a campaign's folder is that of another one's control."""
    folder = folder.absolute()
    return folder.name == CONTROL_NAME and is_campaign(folder.parent)


def _found(store: Store, summary: Summary) -> tuple[str, Tone]:
    """Return a sentence that begins in lower case, and its tone."""
    finished, deviating = _seeds(store, summary)
    searches = _searches(summary)
    if not finished:
        return f"no seed has been {'searched from' if searches else 'compared'} yet.", "warn"
    unclear, so_far = _unclear(summary), _so_far(store, summary)
    where = " on at least one of the devices" if len(summary.replicas) > 1 else ""
    if not deviating:
        if not searches:
            seeds = "the one seed" if finished == 1 else f"none of {finished:,} seeds"
            words = f"{seeds} is {'no' if finished == 1 else 'an'} input on which "
        elif finished == 1:
            words = "from the one seed no input was found on which "
        else:
            words = f"from none of {finished:,} seeds was an input found on which "
        tone: Tone = "neutral" if so_far or _near_boundary(summary) else "good"
        tone = "warn" if unclear else tone
        return f"{so_far}{words}{_deviating(summary)}{unclear}.", tone
    if searches:
        verb = "leads to an input" if deviating == 1 else "lead to an input"
    else:
        verb = "is an input" if deviating == 1 else "are inputs"
    words = (
        f"{so_far}{deviating:,} of {counted(finished, 'seed')} "
        f"({percent_text(deviating / finished)}) {verb} on which {_deviating(summary)}"
        f"{where}{unclear}."
    )
    return words, "neutral" if _near_boundary(summary) and not unclear else "warn"


def _deviating(summary: Summary) -> str:
    """Return what both models do on an input that deviates."""
    return traits_in(summary.search).deviation.format_map(summary.search)


def _so_far(store: Store, summary: Summary) -> str:
    """Return how a sentence on a campaign that isn't finished begins."""
    if not summary.unfinished or store.state.finished:
        return ""
    total = summary.finished + summary.unfinished
    return f"so far, after {summary.finished:,} of {_counted_outcomes(summary, total)}, "


def _seeds(store: Store, summary: Summary) -> tuple[int, int]:
    """Return the number of seeds with an outcome, and of those with a trigger."""
    if len(summary.replicas) <= 1:
        return summary.finished, _triggers(summary)
    rows = store.columns.outcomes()
    deviating = rows.seed[rows.status.among(*TRIGGERS)]
    return len({*rows.seed.tolist()}), len({*deviating.tolist()})


def _triggers(summary: Summary) -> int:
    return sum(summary.by_status.get(status.value, 0) for status in TRIGGERS)


def _unclear(summary: Summary) -> str:
    """Return how many searches gave no answer on the deployed model, and why."""
    failed, infinite = (summary.by_status.get(name, 0) for name in ("failed", "nonfinite"))
    text = ""
    if failed:
        where = "in" if _searches(summary) else "on"
        text += f"; a model could not answer {where} {_counted_outcomes(summary, failed)}"
    if infinite:
        text += f"; {_counted_outcomes(summary, infinite)} met NaN or infinity"
    return text


def _false_alarms(store: Store, summary: Summary) -> tuple[str, Tone]:
    if not summary.finished:
        return "The control has not searched from any seed yet.", "warn"
    counts = count_alarms(store)
    searches = f"{counted(counts.searches, 'search', 'searches')} that asked the device"
    triggers = _triggers(summary)
    if not triggers:
        words = f"No false alarm: in {searches} the original was never taken for another model"
        unclear = _unclear(summary)
        if counts.unasked:
            unclear += f"; {counted(counts.unasked, 'search', 'searches')} never asked it"
        return f"{words}{unclear}.", "warn" if unclear else "good"
    alarms = counted(triggers, "false alarm")
    words = (
        f"{alarms} in {searches}: the original was taken for another model by other arithmetic "
        "alone."
    )
    return words, "warn"


def _replayed(replay: "ReplaySummary", summary: Summary) -> tuple[str, Tone]:
    counts = replay.counts
    if not replay.inputs:
        return "No input has been replayed yet.", "warn"
    deviating = counts["new"] + counts["still"]
    parts = [f"{counts['fixed']:,} fixed", f"{counts['still']:,} still", f"{counts['new']:,} new"]
    parts += [f"{counts[state]:,} {words}" for state, words in _OTHER_STATES if counts[state]]
    if replay.unfinished:
        parts.append(f"{replay.unfinished:,} still to be asked about")
    inputs = counted(len(replay.inputs), "replayed input")
    words = f"On {deviating:,} of {inputs} {_deviating(summary)}: {', '.join(parts)}."
    if counts["new"] or counts["nonfinite"]:
        return words, "bad"
    return words, "warn" if deviating or counts["failed"] or counts["unstable"] else "good"

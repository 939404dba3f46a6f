"""The result of a campaign, a replay or a control: the first sentences of every report."""

import shlex
from collections.abc import Sequence
from pathlib import Path

from edgeflare._internal.text import capitalized, counted, number_text, percent_text
from edgeflare.analysis.campaign_verdict import Verdict
from edgeflare.analysis.summary import Summary
from edgeflare.answers.oracles import traits_in
from edgeflare.campaign.pair.health import UnusableAnswers
from edgeflare.campaign.replay.results import ReplayState
from edgeflare.campaign.status import CampaignStatus
from edgeflare.store import is_address
from edgeflare.words.faults import coverage_words, fault_title, rate_words
from edgeflare.words.inputs import units_of
from edgeflare.words.soundness import evidence_sentences, soundness_sentence

_OTHER_STATES: tuple[tuple[ReplayState, str], ...] = (
    ("agrees", "in agreement as before"),
    ("unstable", "unstable"),
    ("nonfinite", "with NaN or infinity"),
    ("failed", "failed"),
)


def verdict_text(verdict: Verdict) -> str:
    """Return all that is said first, in one line."""
    return " ".join(filter(None, verdict_words(verdict)))


def verdict_words(verdict: Verdict) -> tuple[str, str]:
    """Return what is said first, and what was found; "" where the first says that."""
    summary = verdict.summary
    first: list[str] = []
    if verdict.replay is not None:
        found = _replayed(verdict)
    elif verdict.alarms is not None:
        found = _false_alarms(verdict)
    else:
        first = _survey_sentences(summary)
        words = _found(verdict)
        found = f"Near the seeds: {words}" if first else capitalized(words)
        if first and not summary.has_searches and not summary.triggers_found:
            found = ""
    if summary.unusable:
        first = unusable_sentences(summary.unusable)
        found = _still_found(found, summary)
    first += _limits(verdict)
    return (" ".join(first), found) if first else (found, "")


def _limits(verdict: Verdict) -> list[str]:
    """Return whether the limits are kept; nothing without any."""
    checked, crossed, undecided = verdict.checked, verdict.crossed, verdict.undecided
    if crossed:
        names = ", ".join(crossed)
        if checked == 1:
            return [f"The limit is crossed: {names}."]
        are = "is" if len(crossed) == 1 else "are"
        return [f"{len(crossed)} of {checked} limits {are} crossed: {names}."]
    if undecided:
        which = "the limit is" if checked == 1 else "all limits are"
        return [f"It can't be told whether {which} kept: {', '.join(undecided)}."]
    which = "The limit is" if checked == 1 else f"All {checked} limits are"
    return [f"{which} kept{'' if verdict.finished else ' so far'}."] if checked else []


def unusable_sentences(unusable: Sequence[UnusableAnswers]) -> list[str]:
    """Return what makes answers unusable: nothing that was counted by them stands before it."""
    return [f"{capitalized(one.words)}." for one in unusable]


def _still_found(found: str, summary: Summary) -> str:
    """Return the sentence on what was found, "" where it is agreement, or didn't repeat."""
    repeatable = all(one.kind != "not-repeatable" for one in summary.unusable)
    return found if repeatable and summary.triggers_found and summary.replay is None else ""


def _survey_sentences(summary: Summary) -> list[str]:
    """Return the verdict against references, or else the survey's rate, and the first fault.

    Nothing without a survey.
    """
    if summary.soundness is not None:
        first = soundness_sentence(summary.soundness)
    elif summary.survey is not None and (rate := summary.survey.overall) is not None:
        words = summary.kind.report_words
        first = (
            f"Far from the seeds the models decide {words.deviate} on {rate.deviations:,} of "
            f"{counted(rate.inputs, 'input')}{words.where_sure} ({rate_words(rate)})."
        )
    else:
        return []
    faults = () if summary.faults is None else summary.faults.faults[:1]
    return [first, *(f"{capitalized(fault_title(fault))}: {fault.words}." for fault in faults)]


def guidance(verdict: Verdict) -> tuple[str, ...]:
    """Return the evidence, what a neutral result leaves open, and what to do next."""
    return (*evidence(verdict.summary), *_of_search(verdict))


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


def _of_search(verdict: Verdict) -> tuple[str, ...]:
    """Return what a neutral result of a search leaves open."""
    summary = verdict.summary
    if verdict.tone != "neutral":
        return ()
    if not summary.triggers_found:
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
    if summary.search.get("strategy") != "boundary":
        return ()
    searches = coverage_words(summary.coverage)
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
    farther = units_of(summary.sample_rate).farther
    further = farther and f", search with --strategy {farther}, too"
    return covered, missed, f"What to do next: take more seeds of other kinds{further}."


def _counted_outcomes(summary: Summary, count: int) -> str:
    """Return a number of searches or, without any search, of seeds."""
    return counted(count, *(("search", "searches") if summary.has_searches else ("seed",)))


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


def _found(verdict: Verdict) -> str:
    """Return a sentence on what was found, which begins in lower case."""
    summary, seeds, deviating = verdict.summary, verdict.seeds, verdict.deviating
    if not seeds:
        return f"no seed has been {'searched from' if summary.has_searches else 'compared'} yet."
    so_far = ""
    if verdict.is_so_far:
        total = summary.finished + summary.unfinished
        so_far = f"so far, after {summary.finished:,} of {_counted_outcomes(summary, total)}, "
    if not deviating:
        words = _nothing_found(seeds, has_searches=summary.has_searches)
        return f"{so_far}{words}{_deviating(summary)}{_unclear(summary)}."
    if summary.has_searches:
        verb = "leads to an input" if deviating == 1 else "lead to an input"
    else:
        verb = "is an input" if deviating == 1 else "are inputs"
    where = " on at least one of the devices" if summary.of_each_device else ""
    return (
        f"{so_far}{deviating:,} of {counted(seeds, 'seed')} ({percent_text(deviating / seeds)}) "
        f"{verb} on which {_deviating(summary)}{where}{_unclear(summary)}."
    )


def _nothing_found(seeds: int, *, has_searches: bool) -> str:
    if not has_searches:
        none = "the one seed" if seeds == 1 else f"none of {seeds:,} seeds"
        return f"{none} is {'no' if seeds == 1 else 'an'} input on which "
    if seeds == 1:
        return "from the one seed no input was found on which "
    return f"from none of {seeds:,} seeds was an input found on which "


def _deviating(summary: Summary) -> str:
    """Return what both models do on an input that deviates."""
    return traits_in(summary.search).deviation.format_map(summary.search)


def _unclear(summary: Summary) -> str:
    """Return how many searches gave no answer on the deployed model, and why."""
    failed, infinite = (summary.by_status.get(name, 0) for name in ("failed", "nonfinite"))
    text = ""
    if failed:
        where = "in" if summary.has_searches else "on"
        text += f"; a model could not answer {where} {_counted_outcomes(summary, failed)}"
    if infinite:
        text += f"; {_counted_outcomes(summary, infinite)} met NaN or infinity"
    return text


def _false_alarms(verdict: Verdict) -> str:
    summary, alarms = verdict.summary, verdict.alarms
    if not summary.finished or alarms is None:
        return "The control has not searched from any seed yet."
    searches = f"{counted(alarms.searches, 'search', 'searches')} that asked the device"
    if not summary.triggers_found:
        words = f"No false alarm: in {searches} the original was never taken for another model"
        unclear = _unclear(summary)
        if alarms.unasked:
            unclear += f"; {counted(alarms.unasked, 'search', 'searches')} never asked it"
        return f"{words}{unclear}."
    return (
        f"{counted(summary.triggers_found, 'false alarm')} in {searches}: the original was taken "
        "for another model by other arithmetic alone."
    )


def _replayed(verdict: Verdict) -> str:
    replay = verdict.replay
    if replay is None or not replay.inputs:
        return "No input has been replayed yet."
    counts = replay.counts
    deviating = counts["new"] + counts["still"]
    parts = [f"{counts['fixed']:,} fixed", f"{counts['still']:,} still", f"{counts['new']:,} new"]
    parts += [f"{counts[state]:,} {words}" for state, words in _OTHER_STATES if counts[state]]
    if replay.unfinished:
        parts.append(f"{replay.unfinished:,} still to be asked about")
    inputs = counted(len(replay.inputs), "replayed input")
    does = _deviating(verdict.summary)
    return f"On {deviating:,} of {inputs} {does}: {', '.join(parts)}."

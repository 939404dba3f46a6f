"""What each limit of a campaign comes to, by its name."""

import math
from collections.abc import Callable, Mapping
from typing import NamedTuple

from edgeflare.analysis.kinds import transcribes
from edgeflare.analysis.limit_counts import (
    LimitCounts,
    Offenders,
    answered,
    known_pairs,
    number,
    pair_words,
    percent,
)
from edgeflare.campaign.limits import LimitsConfig
from edgeflare.campaign.replay_states import REPLAY, replayed_inputs
from edgeflare.errors import UsageError
from edgeflare.store import Store
from edgeflare.types import Status


class Seen:
    """What the limits are held against. `own`: they are the campaign's own, and not others."""

    def __init__(self, store: Store, limits: LimitsConfig, *, own: bool) -> None:
        self.store = store
        self.limits = limits
        self.own = own
        self.is_replay = store.fact(REPLAY) is not None
        self.finished = bool(store.fact("finished"))
        self.each_device = store.fact("replicas") not in (None, [""])
        self.counts = LimitCounts(limits)
        for outcome in () if self.is_replay else store.outcomes():
            self.counts.add(outcome)


class Verdict(NamedTuple):
    """What a limit comes to: see `LimitCheck`. `names` are told where it is crossed, `aside` always."""

    value: float | None
    crossed: bool
    words: str
    names: str = ""
    aside: str = ""


def _max_deviation_rate(seen: Seen) -> Verdict:
    counts, limit = seen.counts, seen.limits.max_deviation_rate or 0.0
    if not counts.searched:
        return _nothing(seen, "searched")
    rate = counts.found.count / counts.searched
    words = (
        f"{counts.found.count} of {_searched(seen)} ({percent(rate, limit)}) have a triggering input, "
        f"at most {percent(limit)} are allowed"
    )
    return Verdict(rate, rate > limit, words, counts.found.words, _aside(counts))


def _max_seed_deviation_rate(seen: Seen) -> Verdict:
    these, limit = seen.counts.seeds, seen.limits.max_seed_deviation_rate or 0.0
    known = answered(seen.store)
    if not known:
        return _nothing(seen, "answered")
    rate = these.count / known
    what = "answers to seeds" if seen.each_device else "answered seeds"
    words = (
        f"{these.count} of {known} {what} ({percent(rate, limit)}) deviate as they are, "
        f"at most {percent(limit)} are allowed"
    )
    return Verdict(rate, rate > limit, words, these.words, _failures(seen.counts))


def _min_median_queries(seen: Seen) -> Verdict:
    counts, limit = seen.counts, seen.limits.min_median_queries or 0
    if not counts.searched:
        return _nothing(seen, "searched")
    median = counts.median
    took = (
        "is without one"
        if math.isinf(median)
        else f"took {median:g} {'query' if median == 1 else 'queries'} to the first one"
    )
    words = (
        f"of {_searched(seen)}, {counts.found.count} of them with a triggering input, the median {took}, "
        f"at least {limit} are wanted"
    )
    return Verdict(
        median, median < limit, words, counts.crossing["min_median_queries"].words, _aside(counts)
    )


def _min_l2(seen: Seen) -> Verdict:
    counts, limit = seen.counts, seen.limits.min_l2 or 0.0
    rule = f"none may be nearer than {limit:g}"
    if not counts.found.count:
        return Verdict(None, False, f"no triggering input was found, {rule} to its seed")
    nearest = counts.worst["min_l2"]
    words = (
        f"the nearest of {counts.found.count} triggering inputs is L2 {number(nearest, limit)} from "
        f"its seed, {rule}"
    )
    return _with_offenders(nearest, counts.crossing["min_l2"], words, "nearer")


def _max_severity(seen: Seen) -> Verdict:
    counts, limit = seen.counts, seen.limits.max_severity or 0.0
    found = counts.found.count + counts.seeds.count
    rule = f"none may have one above {limit:g}"
    if not found:
        return Verdict(None, False, f"no triggering input was found, so no margin, {rule}")
    worst = counts.worst["max_severity"]
    most = number(worst, limit)
    words = f"the most severe of {found} triggering inputs has a smaller margin of {most}, {rule}"
    return _with_offenders(worst, counts.crossing["max_severity"], words, "above it")


def _max_disagreement(seen: Seen) -> Verdict:
    counts, limit = seen.counts, seen.limits.max_disagreement or 0.0
    found = counts.found.count + counts.seeds.count
    rule = f"at most {percent(limit)} may be"
    if not found:
        return Verdict(None, False, f"no triggering input was found, {rule}")
    if seen.store.models.get("deployed", {}).get("output", {}).get("kind") == "label":
        return Verdict(
            None, True, "can't be told, and counts as crossed: the device tells labels only"
        )
    worst = counts.worst["max_disagreement"]
    most = percent(worst, limit)
    apart = f"put {most} of the probability on different classes"
    if transcribes(seen.store):
        apart = f"differ in {most} of the words"
    words = f"of {found} triggering inputs the models' answers to the worst one {apart}, {rule}"
    return _with_offenders(worst, counts.crossing["max_disagreement"], words, "above it")


def _with_offenders(value: float, these: Offenders, words: str, where: str) -> Verdict:
    if these.count:
        words += f"; {these.count} {'is' if these.count == 1 else 'are'} {where}"
    return Verdict(value, these.count > 0, words, these.words)


def _new_pairs(seen: Seen) -> Verdict:
    if transcribes(seen.store):
        return Verdict(
            None, True, "can't be told, and counts as crossed: transcripts have no classes"
        )
    pairs = seen.counts.pairs
    try:
        known = known_pairs(seen.store, seen.limits, own=seen.own)
    except UsageError as error:
        if not seen.own:
            raise
        return Verdict(None, True, f"can't be told, and counts as crossed: {error}")
    new = {pair: count for pair, count in pairs.items() if pair not in known}
    words = (
        f"{len(new)} of {len(pairs)} deviating class pairs are not among the {len(known)} of "
        f"{seen.limits.baseline}, none may be new"
    )
    return Verdict(len(new), bool(new), words, pair_words(new))


def _max_new_triggers(seen: Seen) -> Verdict:
    new, total, limit = Offenders(), 0, seen.limits.max_new_triggers or 0
    unclear = 0
    for one in replayed_inputs(seen.store):
        total += 1
        unclear += one.state in ("unstable", "nonfinite", "failed")
        if one.state == "new":
            new.add(f"{one.id} on {one.device}" if seen.each_device else one.id)
    words = (
        f"{new.count} of {total} replayed inputs deviate now and did not before, "
        f"at most {limit} may"
    )
    if total and unclear == total and seen.finished:
        words = f"can't be told, and counts as crossed: none of {total} inputs gave a steady answer"
        return Verdict(None, True, words)
    aside = f"; {unclear} gave no steady answer" if unclear else ""
    return Verdict(new.count, new.count > limit, words, new.words, aside)


def _nothing(seen: Seen, done: str) -> Verdict:
    """Return that there is nothing to tell a limit by: of a finished campaign that is no good sign."""
    if not seen.finished:
        return Verdict(None, False, f"no seed is {done}")
    words = f"can't be told, and counts as crossed: no seed was {done}"
    return Verdict(None, True, words, aside=_aside(seen.counts))


def _searched(seen: Seen) -> str:
    return f"{seen.counts.searched} {'searches' if seen.each_device else 'searched seeds'}"


def _aside(counts: LimitCounts) -> str:
    """Return which seeds a rate of those searched says nothing of."""
    deviate = counts.seeds.count
    text = f"; {deviate} more deviate as they are" if deviate else ""
    return text + _failures(counts)


def _failures(counts: LimitCounts) -> str:
    text = ""
    if failed := counts.statuses[Status.FAILED]:
        text += f"; a model could not answer on {failed}"
    if infinite := counts.statuses[Status.NONFINITE]:
        text += f"; {infinite} gave NaN or infinity"
    return text


FOR_REPLAYS = ("max_new_triggers",)
"""The limits of replays; the others are of campaigns that search."""
VERDICTS: Mapping[str, Callable[[Seen], Verdict]] = {
    "max_deviation_rate": _max_deviation_rate,
    "max_seed_deviation_rate": _max_seed_deviation_rate,
    "min_median_queries": _min_median_queries,
    "min_l2": _min_l2,
    "max_severity": _max_severity,
    "max_disagreement": _max_disagreement,
    "new_pairs": _new_pairs,
    "max_new_triggers": _max_new_triggers,
}

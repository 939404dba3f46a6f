"""Whether a campaign is within its limits: a sentence for each one."""

import math
import re
from array import array
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from edgeflare._internal.text import distinct_number, first_names, names_text
from edgeflare.analysis.campaign_verdict import campaign_soundness
from edgeflare.analysis.class_names import known_class_names
from edgeflare.analysis.findings import jsonable
from edgeflare.analysis.outcome_stats import kind_rate
from edgeflare.analysis.soundness import Soundness
from edgeflare.analysis.survey import SurveyFigures, survey_figures
from edgeflare.answers.parts import LimitRule
from edgeflare.campaign.pair.health import UnusableAnswers, unusable_answers
from edgeflare.campaign.replay.results import replayed_inputs
from edgeflare.campaign.settings.baseline import Pair, baseline_pairs
from edgeflare.campaign.settings.limits import LimitsConfig, class_number
from edgeflare.campaign.status import replica_names
from edgeflare.errors import UsageError
from edgeflare.store import OutcomeRecord, Store, open_store
from edgeflare.store.database import decoding
from edgeflare.types import TRIGGERS, Status


@dataclass(frozen=True)
class LimitCheck:
    """One limit, compared with what a campaign found.

    `name` and `limit` are as in `LimitsConfig`, of a limit for one class with the class as in
    ``max_lost.person``; `value` is what the limit is about: a share, a
    number of queries (infinite where the median seed has no triggering input), a distance, a margin
    or a count; None where there is none. `crossed`: the limit doesn't hold, or a finished campaign
    can't be judged by it. `words` is one sentence with the counts and the first few that cross it.
    `checked` is False for a limit that does not apply to such a campaign. `undecided`: too little
    is known to say whether the limit holds; it is neither kept nor crossed then.
    """

    name: str
    limit: float | bool | str
    value: float | None
    crossed: bool
    words: str
    checked: bool = True
    undecided: bool = False

    def to_json(self) -> dict[str, Any]:
        """Return a JSON object with the same names; an infinite value is the text "inf"."""
        plain: dict[str, Any] = jsonable(asdict(self))
        return plain


def check_limits(
    campaign: Store | Path, limits: "LimitsConfig | None" = None
) -> tuple[LimitCheck, ...]:
    """Compare what a campaign found so far with limits, by default its own.

    There is one check for each limit that is set, in the order of `LimitsConfig`; none for a
    campaign without limits. Of a replay the new triggering inputs are counted, of any other
    campaign the rest; a limit that does not apply to it is not checked. Raises StoreError where the
    campaign's folder can't be used, UsageError where the baseline of given limits can't.
    """
    with open_store(campaign) as store:
        return LimitContext(store, limits).checks()


def _check(
    context: "LimitContext", name: str, limit: float | bool | str, class_: str | None = None
) -> LimitCheck:
    """Return the check of a limit, of one class where it is stated for that."""
    key, name = name, name if class_ is None else f"{name}.{class_}"
    if context.is_replay != (key in _FOR_REPLAYS):
        why = "a replay searches nothing" if context.is_replay else "this is no replay"
        return LimitCheck(name, limit, None, False, f"{name}: not checked, {why}", checked=False)
    rules = {rule.key: rule for rule in context.store.kind.checks()}
    if key in rules:
        verdict = _object_verdict(context, rules[key], float(limit), class_)
    elif key in _CHECKS:
        verdict = _CHECKS[key](context)
    else:
        words = "can't be told, and counts as crossed: the models detect no objects"
        verdict = LimitVerdict(None, True, words)
    if not verdict.crossed:
        verdict = _usable(context, verdict)
    names = f": {verdict.names}" if verdict.crossed and verdict.names else ""
    so_far = "" if context.finished else "so far "
    words = f"{name}: {so_far}{verdict.words}{names}{verdict.aside}"
    return LimitCheck(
        name, limit, verdict.value, verdict.crossed, words, undecided=verdict.undecided
    )


def _usable(context: "LimitContext", verdict: "LimitVerdict") -> "LimitVerdict":
    """Return the result of a limit, or that answers which can't be used keep none.

    They cross it: a constant or tied answer is never another class, so that it would keep most
    limits, and a job that passes would ship such a model.
    """
    if not context.unusable:
        return verdict
    words = f"can't be told, and counts as crossed: {context.unusable[0].words}"
    return LimitVerdict(None, True, words)


_NAMED = 3
"""Number of outcomes that cross a limit which are shown by name."""


class Offender(NamedTuple):
    """An outcome that crosses a limit; `Offenders` sorts by rank, then by name."""

    rank: float
    by_name: tuple[str | int, ...]
    name: str


class Offenders:
    """Counts the outcomes that cross a limit, and has the worst few by name."""

    def __init__(self) -> None:
        self.count = 0
        self._worst: list[Offender] = []

    def add(self, name: str, rank: float = 0.0) -> None:
        """Add one; those of the same rank sort by name, numbers in it by their value."""
        self.count += 1
        parts = re.split(r"([0-9]+)", name)  # each second one is a number
        by_name = (int(part) if place % 2 else part for place, part in enumerate(parts))
        self._worst.append(Offender(rank, tuple(by_name), name))
        self._worst.sort()
        del self._worst[_NAMED:]

    @property
    def words(self) -> str:
        """The worst few by name, and how many more there are."""
        return first_names([one.name for one in self._worst], self.count)


class Rule(NamedTuple):
    """A limit that a single outcome can cross: `figure` of it is below the limit, or above.

    A lower limit holds for triggers that were searched for, an upper one for seeds that deviate,
    too.
    """

    name: str
    figure: Callable[[OutcomeRecord], float | None]
    below: bool

    def crossed_by(self, value: float, limit: float) -> bool:
        """Whether a value crosses the limit."""
        return value < limit if self.below else value > limit


_RULES = (
    Rule("min_median_queries", lambda one: one.first_queries, below=True),
    Rule("min_l2", lambda one: one.l2, below=True),
    Rule("max_severity", lambda one: one.severity, below=False),
    Rule("max_disagreement", lambda one: one.disagreement, below=False),
)


def applicable_rules(
    one: OutcomeRecord, limits: Mapping[str, float]
) -> Iterator[tuple[Rule, float, float]]:
    """Yield rule, value and limit for each rule that has a limit and applies to the outcome."""
    for rule in _RULES:
        limit = limits.get(rule.name)
        concerned = one.status is Status.FOUND if rule.below else one.status in TRIGGERS
        if limit is not None and concerned and (value := rule.figure(one)) is not None:
            yield rule, value, limit


class LimitCounts:
    """Counts of the outcomes that limits are about.

    `worst` has for each rule the value that is nearest to crossing its limit, or farthest beyond
    it.
    """

    def __init__(self, limits: LimitsConfig) -> None:
        self._limits = limits.model_dump(exclude_defaults=True)
        self.statuses: Counter[Status] = Counter()
        self.first_queries = array("d")
        self.found, self.seeds = Offenders(), Offenders()
        self.crossing = {rule.name: Offenders() for rule in _RULES}
        self.worst = {rule.name: math.inf if rule.below else 0.0 for rule in _RULES}
        self.pairs: Counter[Pair] = Counter()

    def add(self, one: OutcomeRecord) -> None:
        """Count an outcome."""
        name = f"{one.seed_id} on {one.replica}" if one.replica else one.seed_id
        self.statuses[one.status] += 1
        found = one.status is Status.FOUND
        if one.searched:
            self.first_queries.append(one.first_queries if found else math.inf)
        if found:
            self.found.add(name)
        if one.status is Status.SEED_DEVIATES:
            self.seeds.add(name)
        if one.status not in TRIGGERS:
            return
        if one.original_label is not None and one.deployed_label is not None:
            self.pairs[one.original_label, one.deployed_label] += 1
        for rule, value, limit in applicable_rules(one, self._limits):
            worse = min if rule.below else max
            self.worst[rule.name] = worse(self.worst[rule.name], value)
            if rule.crossed_by(value, limit):
                text = str(value) if isinstance(value, int) else distinct_number(value, limit)
                self.crossing[rule.name].add(f"{name} ({text})", value if rule.below else -value)

    @property
    def searched(self) -> int:
        """How many seeds were searched."""
        return len(self.first_queries)

    @property
    def median(self) -> float:
        """The median of the queries to the first trigger; infinite where half have none."""
        return float(np.median(np.asarray(self.first_queries)))


def known_pairs(store: Store, limits: LimitsConfig, *, own: bool = True) -> set[Pair]:
    """Return the baseline's pairs; for a campaign's `own` limits as they were at its start.

    Raises UsageError if the baseline can't be read.
    """
    stored = store.state.baseline_pairs if own else None
    if stored is not None:
        return {(original, deployed) for original, deployed in stored}
    return baseline_pairs(limits) or set()


def _pair_words(pairs: Mapping[Pair, int]) -> str:
    """Return the most frequent pairs of labels with their counts."""
    ranked = sorted(pairs.items(), key=lambda one: (-one[1], one[0]))
    return names_text(
        [f"{original} -> {deployed} ({count})" for (original, deployed), count in ranked], _NAMED
    )


def _percent(rate: float, other: float | None = None) -> str:
    """Return a share in per cent, in enough digits to differ from `other`."""
    return f"{100 * rate:g} %" if other is None else f"{distinct_number(100 * rate, 100 * other)} %"


class LimitContext:
    """What the checks of one campaign need; each is read from the store when it is first asked for.

    `limits` are the campaign's own by default; `own` says whether they are. Raises StoreError.
    """

    def __init__(self, store: Store, limits: LimitsConfig | None = None) -> None:
        with decoding(store.folder, "the setting limits"):
            own = LimitsConfig.model_validate(store.campaign.get("limits") or {})
        self.store = store
        self.limits = own if limits is None else limits
        self.own = self.limits == own
        self.is_replay = store.state.is_replay
        self.finished = store.state.finished
        self.each_device = store.state.replicas != [""]

    def checks(self) -> tuple[LimitCheck, ...]:
        """Return a check for each limit that is set; see `check_limits`."""
        wanted = self.limits.model_dump(exclude_defaults=True, exclude={"baseline"})
        return tuple(
            _check(self, name, one, class_)
            for name, limit in wanted.items()
            for class_, one in (limit.items() if isinstance(limit, dict) else [(None, limit)])
        )

    @cached_property
    def counts(self) -> LimitCounts:
        """The counts of the outcomes; none of a replay."""
        counts = LimitCounts(self.limits)
        for outcome in () if self.is_replay else self.store.outcomes():
            counts.add(outcome)
        return counts

    @cached_property
    def unusable(self) -> tuple[UnusableAnswers, ...]:
        """Which model's answers can't be used, and why; mostly none."""
        return unusable_answers(self.store)

    @cached_property
    def survey(self) -> SurveyFigures | None:
        """The figures of the survey."""
        return survey_figures(self.store)

    @cached_property
    def soundness(self) -> Soundness | None:
        """The judgement against the references."""
        return campaign_soundness(self.store)


class LimitVerdict(NamedTuple):
    """Result of a limit, see `LimitCheck`; `names` are shown if it is crossed, `aside` always."""

    value: float | None
    crossed: bool
    words: str
    names: str = ""
    aside: str = ""
    undecided: bool = False


def _max_deviation_rate(context: LimitContext) -> LimitVerdict:
    counts, limit = context.counts, context.limits.max_deviation_rate or 0.0
    if not counts.searched:
        return _undecidable(context, "searched")
    rate = counts.found.count / counts.searched
    words = (
        f"{counts.found.count} of {_searched(context)} ({_percent(rate, limit)}) have a triggering "
        f"input, at most {_percent(limit)} are allowed"
    )
    return LimitVerdict(rate, rate > limit, words, counts.found.words, _aside(counts))


def _max_seed_deviation_rate(context: LimitContext) -> LimitVerdict:
    these, limit = context.counts.seeds, context.limits.max_seed_deviation_rate or 0.0
    store = context.store
    known = sum(store.columns.answered_seeds(replica) for replica in replica_names(store))
    if not known:
        return _undecidable(context, "answered")
    rate = these.count / known
    what = "answers to seeds" if context.each_device else "answered seeds"
    words = (
        f"{these.count} of {known} {what} ({_percent(rate, limit)}) deviate as they are, "
        f"at most {_percent(limit)} are allowed"
    )
    return LimitVerdict(rate, rate > limit, words, these.words, _failures(context.counts))


def _min_median_queries(context: LimitContext) -> LimitVerdict:
    counts, limit = context.counts, context.limits.min_median_queries or 0
    if not counts.searched:
        return _undecidable(context, "searched")
    median = counts.median
    took = (
        "is without one"
        if math.isinf(median)
        else f"took {median:g} {'query' if median == 1 else 'queries'} to the first one"
    )
    words = (
        f"of {_searched(context)}, {counts.found.count} of them with a triggering input, the "
        f"median {took}, at least {limit} are wanted"
    )
    return LimitVerdict(
        median, median < limit, words, counts.crossing["min_median_queries"].words, _aside(counts)
    )


def _min_l2(context: LimitContext) -> LimitVerdict:
    counts, limit = context.counts, context.limits.min_l2 or 0.0
    rule = f"none may be nearer than {limit:g}"
    if not counts.found.count:
        return LimitVerdict(None, False, f"no triggering input was found, {rule} to its seed")
    nearest = counts.worst["min_l2"]
    words = (
        f"the nearest of {counts.found.count} triggering inputs is L2 "
        f"{distinct_number(nearest, limit)} from its seed, {rule}"
    )
    return _with_offenders(nearest, counts.crossing["min_l2"], words, "nearer")


def _max_severity(context: LimitContext) -> LimitVerdict:
    counts, limit = context.counts, context.limits.max_severity or 0.0
    found = counts.found.count + counts.seeds.count
    rule = f"none may have one above {limit:g}"
    if not found:
        return LimitVerdict(None, False, f"no triggering input was found, so no margin, {rule}")
    worst = counts.worst["max_severity"]
    most = distinct_number(worst, limit)
    words = f"the most severe of {found} triggering inputs has a smaller margin of {most}, {rule}"
    return _with_offenders(worst, counts.crossing["max_severity"], words, "above it")


def _max_disagreement(context: LimitContext) -> LimitVerdict:
    counts, limit = context.counts, context.limits.max_disagreement or 0.0
    found = counts.found.count + counts.seeds.count
    rule = f"at most {_percent(limit)} may be"
    if not found:
        return LimitVerdict(None, False, f"no triggering input was found, {rule}")
    kind = context.store.kind
    if not kind.is_scored:
        return LimitVerdict(
            None, True, "can't be told, and counts as crossed: the device tells labels only"
        )
    worst = counts.worst["max_disagreement"]
    apart, most = kind.apart_words(worst, limit)
    words = (
        f"of {found} triggering inputs the models' answers to the worst one {apart}, at most {most} "
        "may be"
    )
    return _with_offenders(worst, counts.crossing["max_disagreement"], words, "above it")


def _with_offenders(value: float, these: Offenders, words: str, where: str) -> LimitVerdict:
    if these.count:
        words += f"; {these.count} {'is' if these.count == 1 else 'are'} {where}"
    return LimitVerdict(value, these.count > 0, words, these.words)


def _max_confident_deviation(context: LimitContext) -> LimitVerdict:
    limit = context.limits.max_confident_deviation or 0.0
    survey = context.survey
    if survey is None or survey.overall is None:
        return _undecidable(context, "surveyed")
    one = survey.overall
    words = (
        f"{one.deviations} of {one.inputs} inputs far from the seeds ({_percent(one.rate, limit)}) "
        f"deviate, 95 % bounds {_percent(one.low, limit)} to {_percent(one.high, limit)}; at most "
        f"{_percent(limit)} are allowed"
    )
    crossed = one.rate > limit
    undecided = one.high > limit and not crossed
    aside = "; more inputs narrow the bounds (more seeds, or --survey-queries)" if undecided else ""
    return LimitVerdict(one.high, crossed, words, aside=aside, undecided=undecided)


def _object_verdict(
    context: LimitContext, rule: LimitRule, limit: float, class_: str | None
) -> LimitVerdict:
    """Judge the share of objects on the seeds by a rule, of all classes or of one by name or number."""
    label = None
    if class_ is not None:
        label = class_number(class_, known_class_names(context.store))
        if label is None:
            words = f"can't be told, and counts as crossed: no class is named {class_!r} there"
            return LimitVerdict(None, True, words)
    of = "objects" if class_ is None else f"objects of the class {class_}"
    one = kind_rate(context.store, rule, label)
    if one is None:
        if not context.finished:
            return LimitVerdict(None, False, f"the {rule.whose} has detected no {of} yet")
        words = f"can't be told: the {rule.whose} detects no {of} on the seeds"
        return LimitVerdict(None, False, words, undecided=True)
    words = (
        f"{one.differing} of {one.objects} {of} that the {rule.whose} detects on the seeds "
        f"({_percent(one.rate, limit)}) {rule.verb}, 95 % bounds "
        f"{_percent(one.low, limit)} to {_percent(one.high, limit)}; at most {_percent(limit)} may"
    )
    crossed = one.rate > limit
    undecided = not crossed and one.high > limit > 0
    aside = "; more seeds narrow the bounds" if undecided else ""
    value = one.high if limit else one.rate
    named = names_text(one.seeds, _NAMED)
    return LimitVerdict(value, crossed, words, named, aside, undecided)


def _verdict(context: LimitContext) -> LimitVerdict:
    found = context.soundness
    if found is None:
        if not context.finished:
            return LimitVerdict(None, False, "no reference has answered")
        words = "can't be told: no reference has answered"
        return LimitVerdict(None, False, words, undecided=True)
    words = "; ".join((found.words, *found.evidence))
    return LimitVerdict(
        None, found.verdict == "worse", words, undecided=found.verdict == "cannot-tell"
    )


def _new_pairs(context: LimitContext) -> LimitVerdict:
    kind = context.store.kind
    if kind.lacks:
        return LimitVerdict(
            None, True, f"can't be told, and counts as crossed: {kind.noun} have no {kind.lacks}"
        )
    pairs = context.counts.pairs
    try:
        known = known_pairs(context.store, context.limits, own=context.own)
    except UsageError as error:
        if not context.own:
            raise
        return LimitVerdict(None, True, f"can't be told, and counts as crossed: {error}")
    new = {pair: count for pair, count in pairs.items() if pair not in known}
    words = (
        f"{len(new)} of {len(pairs)} deviating class pairs are not among the {len(known)} of "
        f"{context.limits.baseline}, none may be new"
    )
    return LimitVerdict(len(new), bool(new), words, _pair_words(new))


def _max_new_triggers(context: LimitContext) -> LimitVerdict:
    new, total, limit = Offenders(), 0, context.limits.max_new_triggers or 0
    unclear = 0
    for replayed in replayed_inputs(context.store):
        total += 1
        unclear += replayed.state in ("unstable", "nonfinite", "failed")
        if replayed.state == "new":
            new.add(f"{replayed.id} on {replayed.device}" if context.each_device else replayed.id)
    words = (
        f"{new.count} of {total} replayed inputs deviate now and did not before, "
        f"at most {limit} may"
    )
    if total and unclear == total and context.finished:
        words = f"can't be told, and counts as crossed: none of {total} inputs gave a steady answer"
        return LimitVerdict(None, True, words)
    aside = f"; {unclear} gave no steady answer" if unclear else ""
    return LimitVerdict(new.count, new.count > limit, words, new.words, aside)


def _undecidable(context: LimitContext, done: str) -> LimitVerdict:
    """Return that a limit can't be judged, which counts as crossed in a finished campaign."""
    if not context.finished:
        return LimitVerdict(None, False, f"no seed is {done}")
    words = f"can't be told, and counts as crossed: no seed was {done}"
    return LimitVerdict(None, True, words, aside=_aside(context.counts))


def _searched(context: LimitContext) -> str:
    return f"{context.counts.searched} {'searches' if context.each_device else 'searched seeds'}"


def _aside(counts: LimitCounts) -> str:
    """Return which seeds a rate of the searched ones leaves out."""
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


_FOR_REPLAYS = ("max_new_triggers",)
"""The limits of replays; the others are of campaigns that search."""
_CHECKS: Mapping[str, Callable[[LimitContext], LimitVerdict]] = {
    "max_deviation_rate": _max_deviation_rate,
    "max_seed_deviation_rate": _max_seed_deviation_rate,
    "min_median_queries": _min_median_queries,
    "min_l2": _min_l2,
    "max_severity": _max_severity,
    "max_disagreement": _max_disagreement,
    "max_confident_deviation": _max_confident_deviation,
    "verdict": _verdict,
    "new_pairs": _new_pairs,
    "max_new_triggers": _max_new_triggers,
}

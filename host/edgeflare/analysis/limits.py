"""Whether a campaign is within its limits, in codes and numbers."""

import math
import re
from array import array
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Literal, NamedTuple, TypeAlias

import numpy as np

from edgeflare._internal.records import JsonRecord
from edgeflare.analysis.campaign_verdict import campaign_soundness
from edgeflare.analysis.class_names import known_class_names
from edgeflare.analysis.outcome_stats import kind_rate
from edgeflare.analysis.soundness import Soundness
from edgeflare.analysis.survey import SurveyFigures, survey_figures
from edgeflare.answers import SCORES, AnswerKind
from edgeflare.answers.parts import LimitRule, worded
from edgeflare.campaign.pair.health import UnusableAnswers, unusable_answers
from edgeflare.campaign.replay.results import replayed_inputs
from edgeflare.campaign.settings.baseline import Pair, baseline_pairs
from edgeflare.campaign.settings.limits import LimitsConfig, class_number
from edgeflare.campaign.status import replica_names
from edgeflare.errors import UsageError
from edgeflare.store import OutcomeRecord, Store, open_store
from edgeflare.store.database import decoding
from edgeflare.types import TRIGGERS, Status

LimitReason: TypeAlias = Literal[
    "compared",
    "not-checked",
    "no-triggers",
    "no-seeds",
    "no-objects",
    "no-reference",
    "labels-only",
    "no-detections",
    "no-class",
    "no-pairs",
    "no-baseline",
    "unsteady",
    "unusable",
]
"""What a check rests on: both were compared, or why there is nothing to compare."""
Limit: TypeAlias = float | bool | str


class Offender(NamedTuple):
    """An outcome that crosses a limit; `Offenders` sorts by rank, then by name.

    `value` is what crosses it, None where the limit is a number of outcomes.
    """

    rank: float
    by_name: tuple[str | int, ...]
    name: str
    value: float | None = None


@dataclass(frozen=True)
class LimitFigures:
    """The numbers behind a check.

    `count` of `total` have what the limit is about, with bounds of 95 % at `low` and `high` where
    it is a rate; `crossing` of them cross it, the worst few are `offenders`. Beside them `deviating`
    seeds deviate as they are, at `failed` a model could not answer, `nonfinite` gave NaN or infinity
    and `unsteady` no steady answer. `known` class pairs are those of the `baseline`. `rule` is that
    of a limit on objects. `cause` says what an error did.
    """

    kind: AnswerKind[Any] = SCORES
    finished: bool = True
    each_device: bool = False
    count: int = 0
    total: int = 0
    low: float = 0.0
    high: float = 0.0
    crossing: int = 0
    offenders: tuple[Offender, ...] = ()
    deviating: int = 0
    failed: int = 0
    nonfinite: int = 0
    unsteady: int = 0
    known: int = 0
    baseline: Path | None = None
    rule: LimitRule | None = None
    soundness: Soundness | None = None
    unusable: UnusableAnswers | None = None
    cause: str = ""


@dataclass(frozen=True)
class LimitCheck(JsonRecord):
    """One limit, compared with what a campaign found.

    `name` and `limit` are as in `LimitsConfig`, of a limit for one class with the class as in
    ``max_lost.person``; `value` is what the limit is about: a share, a
    number of queries (infinite where the median seed has no triggering input), a distance, a margin
    or a count; None where there is none. `crossed`: the limit doesn't hold, or a finished campaign
    can't be judged by it. `checked` is False for a limit that does not apply to such a campaign.
    `undecided`: too little is known to say whether the limit holds; it is neither kept nor crossed
    then. `reason` and `figures` are what it rests on, which `words` say in one sentence.
    """

    name: str
    limit: Limit
    value: float | None = None
    crossed: bool = False
    reason: LimitReason = "compared"
    checked: bool = True
    undecided: bool = False
    figures: LimitFigures = field(default_factory=LimitFigures, repr=False)

    words = worded("limits:limit_words")
    """The check in one sentence, with the first few that cross it."""
    json_instead: ClassVar = {"reason": "words", "figures": ""}


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
    context: "LimitContext", name: str, limit: Limit, class_: str | None = None
) -> LimitCheck:
    """Return the check of a limit, of one class where it is stated for that."""
    if context.is_replay != (name in _FOR_REPLAYS):
        check = context.compared(None, reason="not-checked", checked=False)
    elif rule := {rule.key: rule for rule in context.store.kind.checks()}.get(name):
        check = _object_share(context, rule, float(limit), class_)
    elif name in _CHECKS:
        check = _CHECKS[name](context)
    else:
        check = context.compared(None, True, reason="no-detections")
    if check.checked and context.unusable and not check.crossed:
        # A constant or tied answer is never another class, so that it would keep most limits, and a
        # job that passes would ship such a model.
        check = context.compared(None, True, reason="unusable", unusable=context.unusable[0])
    name = name if class_ is None else f"{name}.{class_}"
    return replace(check, name=name, limit=limit)


_NAMED = 3
"""Number of outcomes that cross a limit which are shown by name."""


class Offenders:
    """Counts the outcomes that cross a limit, and has the worst few by name."""

    def __init__(self) -> None:
        self.count = 0
        self.worst: list[Offender] = []

    def add(self, name: str, rank: float = 0.0, value: float | None = None) -> None:
        """Add one; those of the same rank sort by name, numbers in it by their value."""
        self.count += 1
        parts = re.split(r"([0-9]+)", name)  # each second one is a number
        by_name = (int(part) if place % 2 else part for place, part in enumerate(parts))
        self.worst.append(Offender(rank, tuple(by_name), name, value))
        self.worst.sort()
        del self.worst[_NAMED:]


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
        name = one.seed_text
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
                self.crossing[rule.name].add(name, value if rule.below else -value, value)

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

    def compared(
        self,
        value: float | None,
        crossed: bool = False,
        *,
        reason: LimitReason = "compared",
        undecided: bool = False,
        checked: bool = True,
        these: Offenders | None = None,
        **figures: Any,
    ) -> LimitCheck:
        """Return a check whose name and limit are to come; `these` cross it."""
        if these is not None:
            figures |= {"crossing": these.count, "offenders": tuple(these.worst)}
        return LimitCheck(
            "",
            0,
            value,
            crossed,
            reason,
            checked,
            undecided,
            LimitFigures(self.store.kind, self.finished, self.each_device, **figures),
        )

    def beside(self) -> dict[str, Any]:
        """Return which seeds a rate leaves out, by their names in `LimitFigures`."""
        statuses = self.counts.statuses
        return {"failed": statuses[Status.FAILED], "nonfinite": statuses[Status.NONFINITE]}

    def nothing(self) -> LimitCheck:
        """Return that a limit can't be judged, which counts as crossed in a finished campaign."""
        beside = {"deviating": self.counts.seeds.count, **self.beside()} if self.finished else {}
        return self.compared(None, self.finished, reason="no-seeds", **beside)


def _max_deviation_rate(context: LimitContext) -> LimitCheck:
    counts, limit = context.counts, context.limits.max_deviation_rate or 0.0
    if not counts.searched:
        return context.nothing()
    rate = counts.found.count / counts.searched
    return context.compared(
        rate,
        rate > limit,
        these=counts.found,
        count=counts.found.count,
        total=counts.searched,
        deviating=counts.seeds.count,
        **context.beside(),
    )


def _max_seed_deviation_rate(context: LimitContext) -> LimitCheck:
    these, limit = context.counts.seeds, context.limits.max_seed_deviation_rate or 0.0
    store = context.store
    answered = sum(store.columns.answered_seeds(replica) for replica in replica_names(store))
    if not answered:
        return context.nothing()
    rate = these.count / answered
    return context.compared(
        rate, rate > limit, these=these, count=these.count, total=answered, **context.beside()
    )


def _min_median_queries(context: LimitContext) -> LimitCheck:
    counts, limit = context.counts, context.limits.min_median_queries or 0
    if not counts.searched:
        return context.nothing()
    return context.compared(
        counts.median,
        counts.median < limit,
        these=counts.crossing["min_median_queries"],
        count=counts.found.count,
        total=counts.searched,
        deviating=counts.seeds.count,
        **context.beside(),
    )


def _of_worst(context: LimitContext, name: str, triggers: int) -> LimitCheck:
    """Compare the worst of so many triggers with a limit that any of them may cross."""
    if not triggers:
        return context.compared(None, reason="no-triggers")
    these = context.counts.crossing[name]
    worst = context.counts.worst[name]
    return context.compared(worst, these.count > 0, these=these, total=triggers)


def _min_l2(context: LimitContext) -> LimitCheck:
    return _of_worst(context, "min_l2", context.counts.found.count)


def _max_severity(context: LimitContext) -> LimitCheck:
    counts = context.counts
    return _of_worst(context, "max_severity", counts.found.count + counts.seeds.count)


def _max_disagreement(context: LimitContext) -> LimitCheck:
    counts = context.counts
    triggers = counts.found.count + counts.seeds.count
    if triggers and not context.store.kind.is_scored:
        return context.compared(None, True, reason="labels-only")
    return _of_worst(context, "max_disagreement", triggers)


def _max_confident_deviation(context: LimitContext) -> LimitCheck:
    limit = context.limits.max_confident_deviation or 0.0
    survey = context.survey
    if survey is None or survey.overall is None:
        return context.nothing()
    rate = survey.overall
    crossed = rate.rate > limit
    return context.compared(
        rate.high,
        crossed,
        undecided=rate.high > limit and not crossed,
        count=rate.deviations,
        total=rate.inputs,
        low=rate.low,
        high=rate.high,
    )


def _object_share(
    context: LimitContext, rule: LimitRule, limit: float, class_: str | None
) -> LimitCheck:
    """Judge the share of objects on the seeds by a rule, of all classes or of one by name or number."""
    label = None
    if class_ is not None:
        label = class_number(class_, known_class_names(context.store))
        if label is None:
            return context.compared(None, True, reason="no-class")
    share = kind_rate(context.store, rule, label)
    if share is None:
        return context.compared(None, reason="no-objects", undecided=context.finished, rule=rule)
    crossed = share.rate > limit
    return context.compared(
        share.high if limit else share.rate,
        crossed,
        undecided=not crossed and share.high > limit > 0,
        rule=rule,
        count=share.differing,
        total=share.objects,
        low=share.low,
        high=share.high,
        crossing=len(share.seeds),
        offenders=tuple(Offender(0.0, (), name) for name in share.seeds[:_NAMED]),
    )


def _verdict(context: LimitContext) -> LimitCheck:
    soundness = context.soundness
    if soundness is None:
        return context.compared(None, reason="no-reference", undecided=context.finished)
    return context.compared(
        None,
        soundness.verdict == "worse",
        undecided=soundness.verdict == "cannot-tell",
        soundness=soundness,
    )


def _new_pairs(context: LimitContext) -> LimitCheck:
    if context.store.kind.lacks:
        return context.compared(None, True, reason="no-pairs")
    pairs = context.counts.pairs
    try:
        known = known_pairs(context.store, context.limits, own=context.own)
    except UsageError as error:
        if not context.own:
            raise
        return context.compared(None, True, reason="no-baseline", cause=str(error))
    new = {pair: count for pair, count in pairs.items() if pair not in known}
    ranked = sorted(new.items(), key=lambda item: (-item[1], item[0]))
    return context.compared(
        len(new),
        bool(new),
        count=len(new),
        total=len(pairs),
        known=len(known),
        baseline=context.limits.baseline,
        crossing=len(new),
        offenders=tuple(
            Offender(-count, pair, f"{pair[0]} -> {pair[1]}", count)
            for pair, count in ranked[:_NAMED]
        ),
    )


def _max_new_triggers(context: LimitContext) -> LimitCheck:
    new, total, limit = Offenders(), 0, context.limits.max_new_triggers or 0
    unsteady = 0
    for replayed in replayed_inputs(context.store):
        total += 1
        unsteady += replayed.state in ("unstable", "nonfinite", "failed")
        if replayed.state == "new":
            new.add(f"{replayed.id} on {replayed.device}" if context.each_device else replayed.id)
    if total and unsteady == total and context.finished:
        return context.compared(None, True, reason="unsteady", total=total)
    return context.compared(
        new.count, new.count > limit, these=new, count=new.count, total=total, unsteady=unsteady
    )


_FOR_REPLAYS = ("max_new_triggers",)
"""The limits of replays; the others are of campaigns that search."""
_CHECKS: Mapping[str, Callable[[LimitContext], LimitCheck]] = {
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

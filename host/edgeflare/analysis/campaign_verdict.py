"""The verdict on a campaign's deployed model, of its seeds, its survey and its references.

Healthy references may be as damaged as the deployed model, and a survey far from the seeds then
finds no difference. So nothing is called sound against what the user's own inputs say: the seeds as
they are.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

import numpy as np

from edgeflare.analysis.soundness import (
    LEAST_FALL,
    EvidenceCode,
    OwnFigures,
    Soundness,
    SoundnessVerdict,
    SurveyScores,
    judge,
)
from edgeflare.answers.metrics import is_finite, top_label
from edgeflare.answers.oracles import margin
from edgeflare.campaign.pair.health import unusable_answers
from edgeflare.campaign.pair.preflight import SeedFigures, disagreement
from edgeflare.campaign.settings.survey import INT8
from edgeflare.campaign.status import CONTROL_NAME, Alarms, count_alarms, replica_names
from edgeflare.errors import StoreError, UsageError
from edgeflare.models.original_process import ORIGINAL_FAILED
from edgeflare.statistics import wilson
from edgeflare.store import Store, folder_at
from edgeflare.store.location import is_campaign
from edgeflare.store.records import OWN, SurveyKey
from edgeflare.types import TRIGGERS, Decision, Issue, Output, Status

if TYPE_CHECKING:
    from edgeflare.analysis.limits import LimitCheck
    from edgeflare.analysis.replay import ReplaySummary
    from edgeflare.analysis.summary import Summary

_DEVIATIONS = (Decision.DEVIATION, Decision.NONFINITE)
"""Decisions by which a model decides otherwise than the original."""
_MANY_FLIPS = 0.1
"""Without labels nothing is sound above this share of flips; int8 by usual recipes flips fewer sure
inputs (0.3 to 2 % of ResNet-8's), and references that flip as many are no measure of health."""
_HALF = 0.5
"""An original that is right on fewer of the labelled inputs is no measure of another model."""


@dataclass(frozen=True)
class _OwnInputs:
    """What is told by the seeds as they are, of one replica.

    `deployed` and `references`: their figures; references that weren't asked about the seeds are
    not there. `left_out`: the references that fell as well, and are no healthy ones. `is_worse`:
    the deployed model is, whatever a survey tells. `doubts`: why it can't be called sound, and
    `disagreement` the problem that is one of them.
    """

    deployed: OwnFigures
    references: Mapping[str, OwnFigures] = field(default_factory=dict)
    left_out: tuple[str, ...] = ()
    is_worse: bool = False
    doubts: tuple[EvidenceCode, ...] = ()
    disagreement: Issue | None = None

    @property
    def reasons(self) -> tuple[EvidenceCode, ...]:
        """What the deployed model does, and which references fell; without the doubts."""
        if not self.deployed.inputs:
            return ()
        return ("own", "left-out") if self.left_out else ("own",)


class _Seed(NamedTuple):
    """What is kept of an own input: of the original's answer, and the label where it has a class."""

    label: int | None
    is_right: bool
    is_tied: bool


_OwnAnswer: TypeAlias = tuple[bool, bool]
"""Whether a model decides otherwise than the original on a seed, and whether it is right."""
_ReferenceAnswer: TypeAlias = tuple[Decision, int | None]
"""A reference's decision on a seed, and its class: None of a tie, and of answers without one."""
_Answer: TypeAlias = tuple[float | None, bool]
"""How far a model's answer is from the original's, and whether the two decide differently."""


def _own_inputs(
    store: Store, replica: str, references: Mapping[str, Mapping[str, _ReferenceAnswer]]
) -> _OwnInputs:
    """Return what the seeds tell of a replica's deployed model and of these references.

    Seeds are left out on which the original had no answer. Raises StoreError.
    """
    seeds: dict[str, _Seed] = {}
    deployed: dict[str, _OwnAnswer] = {}
    checked: list[SeedFigures] = []
    failures = _deployed_failures(store, replica)
    failed: list[bool] = []  # seeds without the deployed model's answer: whether they have a label
    for record in store.seeds(replica):
        if record.outputs is None:
            if record.id in failures:
                failed.append(record.label is not None)
            continue
        original, answer, decision = record.outputs
        if original is None or answer is None or not is_finite(original):
            continue
        checked.append(SeedFigures.of(record.id, record.label, record.outputs))
        label = None if top_label(original) is None else record.label
        is_tied = margin(original) == 0
        is_right = label is not None and _clear_label(original) == label
        seed = seeds[record.id] = _Seed(label, is_right, is_tied)
        deployed[record.id] = _answer(seed, _clear_label(answer), decision)
    answers = {
        name: {
            seed_id: _answer(seeds[seed_id], label, decision)
            for seed_id, (decision, label) in of_seeds.items()
            if seed_id in seeds
        }
        for name, of_seeds in references.items()
    }
    answers = {name: answered for name, answered in answers.items() if answered}
    # All are held against each other on the same inputs; those that failed count for the deployed.
    shared = set(seeds).intersection(*answers.values())
    figures = {name: _figures(seeds, answered, shared) for name, answered in answers.items()}
    left_out = tuple(_fallen(figures))
    healthy = [one.flips for name, one in figures.items() if name not in left_out]
    own = _figures(seeds, deployed, set(seeds), failed)
    has_more_flips = _figures(seeds, deployed, shared, failed).has_more_flips(healthy)
    is_worse = own.fall >= LEAST_FALL if own.labelled else has_more_flips
    apart = disagreement(checked) if references else None
    applies: dict[EvidenceCode, bool] = {
        "disagreement": apart is not None,
        "poor-original": _is_poor_original(own),
        "many-flips": bool(references) and not own.labelled and own.least_flips > _MANY_FLIPS,
        "more-flips": has_more_flips,
        "not-asked": bool(references) and not answers and own.flips >= LEAST_FALL,
    }
    doubts = tuple(code for code, is_so in applies.items() if is_so)
    return _OwnInputs(own, figures, left_out, is_worse, doubts, apart)


def _fallen(references: Mapping[str, OwnFigures]) -> Iterator[str]:
    """Yield the references that are worse than the original: by their accuracy or, without labels,
    by their flips, beside those of the others; the worst one is left out first."""
    rest = dict(references)
    while rest:
        name, worst = max(rest.items(), key=lambda item: (item[1].fall, item[1].flips))
        del rest[name]
        others = [one.flips for one in rest.values()]
        if worst.fall < LEAST_FALL if worst.labelled else not worst.has_more_flips(others):
            return
        yield name


def _is_poor_original(own: OwnFigures) -> bool:
    return own.labelled > 0 and wilson(own.original_right, own.labelled)[1] < _HALF


def _deployed_failures(store: Store, replica: str) -> set[str]:
    """Return the ids of the seeds at which the deployed model, not the original, failed."""
    return {
        seed_id
        for seed_id, detail in store.columns.failures(replica)
        if not detail.startswith(ORIGINAL_FAILED)
    }


def _answer(seed: _Seed, label: int | None, decision: Decision) -> _OwnAnswer:
    flips = decision in _DEVIATIONS or (decision is Decision.TIE and not seed.is_tied)
    return flips, seed.label is not None and seed.label == label


def _clear_label(answer: Output) -> int | None:
    """Return the top-1 class; None of a tie, which names no class, and where there is none."""
    return top_label(answer) if is_finite(answer) and margin(answer) != 0 else None


def _figures(
    seeds: Mapping[str, _Seed],
    answers: Mapping[str, _OwnAnswer],
    among: Collection[str],
    failed: Sequence[bool] = (),
) -> OwnFigures:
    pairs = [(seeds[name], *answers[name]) for name in among]
    labelled = [(seed.is_right, right) for seed, _, right in pairs if seed.label is not None]
    return OwnFigures(
        inputs=len(pairs) + len(failed),
        flips=sum(flips for _, flips, _ in pairs) + len(failed),
        failed=len(failed),
        failed_labelled=sum(failed),
        labelled=len(labelled),
        original_right=sum(before for before, _ in labelled),
        right=sum(after for _, after in labelled),
        lost=sum(before and not after for before, after in labelled),
        won=sum(after and not before for before, after in labelled),
    )


def campaign_soundness(store: Store, *, confidence: float = 0.95) -> Soundness | None:
    """Judge a campaign by its seeds, its survey and its references' answers to both.

    None without references, but where labels tell that the deployed model is worse; and of a
    replay. A reference that was itself judged worse than its own references is no healthy one:
    beside it nothing is called sound. Where several devices surveyed for themselves, each is judged
    at this confidence, and the worst verdict is returned: N healthy devices are called worse up to
    N times as often as one. Inputs are left out on which a model could not answer; equal ones count
    once. Where answers can't be used that is said first, and nothing is called sound. Raises
    StoreError.
    """
    found = _judged(store, confidence)
    if found is not None:
        for problem in unusable_answers(store)[:1]:
            found = replace(
                found,
                verdict="cannot-tell" if found.verdict == "sound" else found.verdict,
                reasons=("unusable", *found.reasons),
                unusable=problem,
            )
    unhealthy = [] if found is None else [*_unhealthy(store)]
    if found is None or not unhealthy:
        return found
    verdict: SoundnessVerdict = "cannot-tell" if found.verdict == "sound" else found.verdict
    of_seeds = 0 if found.own is None else 1  # what the seeds tell stays first
    reasons = (*found.reasons[:of_seeds], "unhealthy", *found.reasons[of_seeds:])
    return replace(found, verdict=verdict, reasons=reasons, unhealthy=tuple(unhealthy))


def check_healthy(references: Sequence[str]) -> None:
    """Raise UsageError where a reference is a campaign that was itself judged worse, or whose
    answers can't be used; StoreError.

    One that is no campaign is left to `run_campaign` to refuse.
    """
    for reference in references:
        if reference == INT8 or not is_campaign(folder := folder_at(reference)):
            continue
        with Store.open(folder) as store:
            is_unhealthy = _is_unhealthy(_judged(store))
            unusable = unusable_answers(store)
        if unusable:
            raise UsageError(
                f"the reference {reference} is no healthy one: {unusable[0].words}; name another "
                "deployment in its place"
            )
        if is_unhealthy:
            raise UsageError(
                f"the reference {reference} was itself judged worse than its own references; name "
                "a healthy deployment in its place"
            )


def _unhealthy(store: Store) -> Iterator[str]:
    """Yield the references that are campaigns and were judged worse.

    A folder that is gone, damaged, or of another deployed model by now is passed over.
    """
    for name, about in store.state.references.items():
        if about.kind == INT8:
            continue
        with suppress(StoreError), Store.open(folder_at(about.path, stated=False)) as other:
            is_same = other.models.get("deployed", {}).get("sha256") == about.sha256
            if is_same and _is_unhealthy(_judged(other)):
                yield name


def _is_unhealthy(found: Soundness | None) -> bool:
    """Whether it is worse than references; one that fell on its seeds alone is left out later."""
    return found is not None and found.verdict == "worse" and bool(found.references)


_Input: TypeAlias = tuple[SurveyKey, str, int]
"""What names an input of the survey, its family and its severity."""
_References: TypeAlias = Mapping[str, Mapping[SurveyKey, _Answer]]


def _judged(store: Store, confidence: float = 0.95) -> Soundness | None:
    """Judge a campaign; all that is in memory of an answer are its distance and decision."""
    if store.state.is_replay:
        return None
    facts = store.state.references
    if not facts and not _may_have_fallen(store):
        return None
    references = {
        name: {
            one.key: (one.total_variation, one.decision in _DEVIATIONS)
            for one in store.reference_answers(name, "survey")
        }
        for name in facts
    }
    of_seeds = {
        name: {
            one.seed_id: (one.decision, _clear_label(one.deployed))
            for one in store.reference_answers(name, OWN)
        }
        for name in facts
    }
    found = []
    for replica in replica_names(store):
        own = _own_inputs(store, replica, of_seeds)
        if not references and not own.is_worse:
            continue
        healthy = {name: one for name, one in references.items() if name not in own.left_out}
        surveyed = _by_survey(store, replica, healthy, confidence) if healthy else None
        found.append(replace(_with_own(surveyed, own, confidence), replica=replica))
    if not found:
        return None
    worst = max(found, key=lambda one: _WORSE.index(one.verdict))
    return replace(worst, devices=len(replica_names(store)))


def _may_have_fallen(store: Store) -> bool:
    """Whether labels might tell it; by their counts, as reading each answer takes far longer."""
    for replica in replica_names(store):
        counts = store.columns.seed_labels(replica)
        failed = store.columns.statuses(replica)[Status.FAILED.value]
        most = counts["original_right"] - counts["deployed_right"] + counts["ties"] + failed
        if counts["labelled"] > 0 and most >= LEAST_FALL:
            return True
    return False


def _by_survey(store: Store, replica: str, references: _References, confidence: float) -> Soundness:
    """Judge a replica by its survey alone."""
    explaining = {name for name, about in store.state.references.items() if about.dynamic}
    shared = set.intersection(*map(set, references.values()))
    distinct: dict[str, tuple[_Input, _Answer]] = {}
    for one in store.survey(replica, "survey"):
        if one.deployed is not None and one.key in shared:
            answer = (one.total_variation, one.confident_deviation)
            distinct.setdefault(one.sample, ((one.key, one.family, one.severity), answer))
    inputs = [one for one, _ in distinct.values()]
    return judge(
        _scores(inputs, [answer for _, answer in distinct.values()]),
        {
            name: _scores(inputs, [answers[key] for key, *_ in inputs])
            for name, answers in references.items()
        },
        confidence=confidence,
        explaining=explaining,
    )


def _with_own(surveyed: Soundness | None, own: _OwnInputs, confidence: float) -> Soundness:
    """Return the verdict of a survey, capped by what the seeds tell; that alone without a survey."""
    judged = surveyed or Soundness("cannot-tell", confidence, (), 0, 0, ())
    verdict, reasons, more = judged.verdict, judged.reasons, judged.more_inputs
    if own.is_worse:
        if verdict == "cannot-tell":
            reasons = reasons[:-1]  # how many more inputs might tell
        verdict, more = "worse", None
    elif own.doubts and verdict != "worse":
        verdict, reasons = "cannot-tell", (*own.doubts, *reasons)
    return replace(
        judged,
        verdict=verdict,
        reasons=(*own.reasons, *reasons),
        disagreement=own.disagreement,
        more_inputs=more,
        own=own.deployed if own.deployed.inputs else None,
        own_references=dict(own.references),
        left_out=own.left_out,
    )


_WORSE: tuple[SoundnessVerdict, ...] = ("sound", "cannot-tell", "worse")


def _scores(inputs: Sequence[_Input], answers: Sequence[_Answer]) -> SurveyScores:
    return SurveyScores(
        [key[0] for key, *_ in inputs],
        [family for _, family, _ in inputs],
        [severity for *_, severity in inputs],
        np.array([apart for apart, _ in answers], np.float64),
        np.array([deviates for _, deviates in answers], np.bool_),
    )


# What every report says first


VerdictTone: TypeAlias = Literal["bad", "warn", "good", "neutral"]
TONES: Mapping[SoundnessVerdict, Literal["bad", "warn", "good"]] = {
    "sound": "good",
    "worse": "bad",
    "cannot-tell": "warn",
}


@dataclass(frozen=True)
class Verdict:
    """Whether a campaign is within its limits, if it has any, and how much it found.

    `tone` "neutral": neither good nor bad for the deployed model. Of `checked` limits those named
    are `crossed`, or `undecided`. `deviating` of `seeds` with an outcome have a trigger, on any of
    the devices. `alarms` are those of a control, `replay` is a replay's summary, None of any other
    campaign. `finished`: nothing is to come.
    """

    summary: "Summary"
    tone: VerdictTone
    seeds: int
    deviating: int
    finished: bool
    checked: int = 0
    crossed: tuple[str, ...] = ()
    undecided: tuple[str, ...] = ()
    alarms: Alarms | None = None
    replay: "ReplaySummary | None" = None

    @property
    def is_so_far(self) -> bool:
        """Whether seeds are to come, so that the numbers are those so far."""
        return self.summary.unfinished > 0 and not self.finished


def campaign_verdict(
    store: Store,
    summary: "Summary",
    limits: "Sequence[LimitCheck]" = (),
    replay: "ReplaySummary | None" = None,
) -> Verdict:
    """Return the result of a campaign whose summary and, of a replay, replayed inputs these are.

    Raises StoreError.
    """
    alarms = None
    if replay is None and is_control(store.folder):
        alarms = count_alarms(store)
    finished = store.state.finished
    seeds, deviating = _seeds(store, summary)
    checked = sum(limit.checked for limit in limits)
    crossed = tuple(limit.name for limit in limits if limit.crossed)
    undecided = tuple(limit.name for limit in limits if limit.undecided)
    tone = _tone(summary, replay, alarms, is_so_far=summary.unfinished > 0 and not finished)
    if crossed:
        tone = "bad"
    elif undecided:
        tone = "warn"
    elif checked:
        is_worse = summary.soundness is not None and summary.soundness.verdict == "worse"
        tells_nothing = tone == "neutral" and not summary.triggers_found
        tone = "warn" if is_worse else "neutral" if tells_nothing else "good"
    return Verdict(
        summary, tone, seeds, deviating, finished, checked, crossed, undecided, alarms, replay
    )


def is_control(folder: Path) -> bool:
    """Whether a campaign's folder is that of another one's control."""
    folder = folder.absolute()
    return folder.name == CONTROL_NAME and is_campaign(folder.parent)


def _seeds(store: Store, summary: "Summary") -> tuple[int, int]:
    """Return the number of seeds with an outcome, and of those with a trigger."""
    if not summary.of_each_device:
        return summary.finished, summary.triggers_found
    rows = store.columns.outcomes()
    deviating = rows.seed[rows.status.among(*TRIGGERS)]
    return len({*rows.seed.tolist()}), len({*deviating.tolist()})


def _tone(
    summary: "Summary", replay: "ReplaySummary | None", alarms: Alarms | None, *, is_so_far: bool
) -> VerdictTone:
    """Return how good the result is, whatever limits there are."""
    unclear = any(summary.by_status.get(name) for name in ("failed", "nonfinite"))
    if summary.unusable:
        return "bad"
    if replay is not None:
        counts = replay.counts
        if counts["new"] or counts["nonfinite"]:
            return "bad"
        is_clear = not any(counts[state] for state in ("still", "failed", "unstable"))
        return "good" if replay.inputs and is_clear else "warn"
    if alarms is not None:
        is_clear = not (summary.triggers_found or alarms.unasked or unclear)
        return "good" if summary.finished and is_clear else "warn"
    if summary.soundness is not None:
        return TONES[summary.soundness.verdict]
    if not summary.finished or unclear:
        return "warn"
    is_near_boundary = summary.search.get("strategy") == "boundary"
    if summary.triggers_found:
        return "neutral" if is_near_boundary else "warn"
    return "neutral" if is_so_far or is_near_boundary else "good"

"""The verdict on a campaign's deployed model, of its seeds, its survey and its references.

Healthy references may be as damaged as the deployed model, and a survey far from the seeds then
finds no difference. So nothing is called sound against what the user's own inputs say: the seeds as
they are.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import NamedTuple, TypeAlias

import numpy as np

from edgeflare._internal.text import counted, percent_text
from edgeflare.analysis.soundness import (
    LEAST_FALL,
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
from edgeflare.campaign.status import replica_names
from edgeflare.errors import StoreError, UsageError
from edgeflare.models.original_process import ORIGINAL_FAILED
from edgeflare.statistics import wilson
from edgeflare.store import Store, folder_at
from edgeflare.store.location import is_campaign
from edgeflare.store.survey import OWN, SurveyKey
from edgeflare.types import Decision, Output, Status
from edgeflare.words.preflight import sentence

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
    the deployed model is, whatever a survey tells. `doubts`: sentences on why it can't be called
    sound. `evidence`: sentences, what the deployed model does first.
    """

    deployed: OwnFigures
    references: Mapping[str, OwnFigures] = field(default_factory=dict)
    left_out: tuple[str, ...] = ()
    is_worse: bool = False
    doubts: tuple[str, ...] = ()

    @property
    def evidence(self) -> tuple[str, ...]:
        """What the deployed model does, and which references fell; without the doubts."""
        if not self.deployed.inputs:
            return ()
        return (self._words(), *([self._left_out_words()] if self.left_out else []))

    def _left_out_words(self) -> str:
        out = [f"{name} ({self.references[name].fall_words})" for name in self.left_out]
        are, their = ("is", "its") if len(out) == 1 else ("are", "their")
        has = "accuracy fell" if self.deployed.labelled else "decisions differ"
        return (
            f"{counted(len(out), 'reference')} {are} left out, since {their} own {has} there, too: "
            f"{', '.join(out)}"
        )

    def _words(self) -> str:
        own = self.deployed
        parts = []
        if own.labelled:
            shares = [
                percent_text(right / own.labelled) for right in (own.right, own.original_right)
            ]
            parts.append(
                f"is right on {own.right:,} of {own.labelled:,} ({shares[0]}), the original on "
                f"{own.original_right:,} ({shares[1]}): {own.lost:,} lost, {own.won:,} won"
            )
        beside = [one.flips for name, one in self.references.items() if name not in self.left_out]
        against = ""
        if beside:
            each = "the healthy reference" if len(beside) == 1 else "a healthy reference"
            against = f" ({each} on {'' if len(beside) == 1 else 'at most '}{max(beside):,})"
        parts.append(f"decides otherwise on {own.flips:,} of {own.inputs:,}{against}")
        if own.failed:
            parts.append(f"has no answer on {own.failed:,}")
        return f"on the seeds as they are the deployed model {', '.join(parts)}"


_MORE_FLIPS = (
    "it decides otherwise on more than twice as many seeds as a healthy reference, though it is "
    "right as often"
)
_NOT_ASKED = (
    "the references weren't asked about the seeds as they are: an earlier version of edgeflare ran "
    "this campaign; run it again"
)


class _Seed(NamedTuple):
    """What is kept of an own input: of the original's answer, and the label where it has a class."""

    label: int | None
    is_right: bool
    is_tied: bool


class _OwnAnswer(NamedTuple):
    """Whether a model decides otherwise than the original, and whether it is right."""

    flips: bool
    is_right: bool


class _Failed(NamedTuple):
    """Numbers of seeds at which the deployed model had no answer, and of those with a label."""

    inputs: int
    labelled: int


_NONE_FAILED = _Failed(0, 0)


class _ReferenceAnswer(NamedTuple):
    """What is kept of a reference's answer to a seed: the class is None of a tie, and of none."""

    decision: Decision
    label: int | None


def _own_inputs(
    store: Store, replica: str, references: Mapping[str, Mapping[str, _ReferenceAnswer]]
) -> _OwnInputs:
    """Return what the seeds tell of a replica's deployed model and of these references.

    Seeds are left out on which the original had no answer. Raises StoreError.
    """
    seeds: dict[str, _Seed] = {}
    deployed: dict[str, _OwnAnswer] = {}
    checked: list[SeedFigures] = []
    failures, failed = _deployed_failures(store, replica), _NONE_FAILED
    for record in store.seeds(replica):
        if record.outputs is None:
            if record.id in failures:
                is_labelled = record.label is not None
                failed = _Failed(failed.inputs + 1, failed.labelled + is_labelled)
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
            seed_id: _answer(seeds[seed_id], one.label, one.decision)
            for seed_id, one in of_seeds.items()
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
    doubts = (
        sentence(apart) if references and (apart := disagreement(checked)) else "",
        _poor_original(own),
        _many_flips(own) if references else "",
        _MORE_FLIPS if has_more_flips else "",
        _NOT_ASKED if references and not answers and own.flips >= LEAST_FALL else "",
    )
    return _OwnInputs(own, figures, left_out, is_worse, tuple(filter(None, doubts)))


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


def _many_flips(own: OwnFigures) -> str:
    """Return why flips on the seeds may be harm that references have, too; "" where labels tell."""
    if own.labelled or not own.inputs:
        return ""
    least = wilson(own.flips, own.inputs)[0]
    if least <= _MANY_FLIPS:
        return ""
    return (
        f"it decides otherwise on at least {percent_text(least)} of inputs like the seeds, and so may "
        "its references: only labels tell whether that is harm (--labels)"
    )


def _poor_original(own: OwnFigures) -> str:
    if not own.labelled or wilson(own.original_right, own.labelled)[1] >= _HALF:
        return ""
    return (
        f"the original itself is right on only {own.original_right:,} of "
        f"{counted(own.labelled, 'labelled seed')}, so that agreeing with it is no merit: check the "
        "preprocessing of both models (edgeflare inputs) and the labels"
    )


def _deployed_failures(store: Store, replica: str) -> set[str]:
    """Return the ids of the seeds at which the deployed model, not the original, failed."""
    return {
        seed_id
        for seed_id, detail in store.columns.failures(replica)
        if not detail.startswith(ORIGINAL_FAILED)
    }


def _answer(seed: _Seed, label: int | None, decision: Decision) -> _OwnAnswer:
    flips = decision in _DEVIATIONS or (decision is Decision.TIE and not seed.is_tied)
    return _OwnAnswer(flips, seed.label is not None and seed.label == label)


def _clear_label(answer: Output) -> int | None:
    """Return the top-1 class; None of a tie, which names no class, and where there is none."""
    return top_label(answer) if is_finite(answer) and margin(answer) != 0 else None


def _figures(
    seeds: Mapping[str, _Seed],
    answers: Mapping[str, _OwnAnswer],
    among: Collection[str],
    failed: _Failed = _NONE_FAILED,
) -> OwnFigures:
    pairs = [(seeds[name], answers[name]) for name in among]
    labelled = [(seed.is_right, one.is_right) for seed, one in pairs if seed.label is not None]
    return OwnFigures(
        inputs=len(pairs) + failed.inputs,
        flips=sum(one.flips for _, one in pairs) + failed.inputs,
        failed=failed.inputs,
        failed_labelled=failed.labelled,
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
                evidence=(problem.words, *found.evidence),
            )
    unhealthy = [] if found is None else [*_unhealthy(store)]
    if found is None or not unhealthy:
        return found
    words = (
        f"of the references {', '.join(unhealthy)} was itself judged worse than its own references, "
        "and is no healthy one"
    )
    verdict: SoundnessVerdict = "cannot-tell" if found.verdict == "sound" else found.verdict
    of_seeds = 0 if found.own is None else 1  # what the seeds tell stays first
    evidence = (*found.evidence[:of_seeds], words, *found.evidence[of_seeds:])
    return replace(found, verdict=verdict, evidence=evidence)


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


class _Answer(NamedTuple):
    """How far a model's answer is from the original's, and whether the two decide differently."""

    total_variation: float | None
    deviates: bool


class _Input(NamedTuple):
    """An input of the survey, and the deployed model's answer."""

    key: SurveyKey
    family: str
    severity: int
    answer: _Answer


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
            one.key: _Answer(one.total_variation, one.decision in _DEVIATIONS)
            for one in store.reference_answers(name, "survey")
        }
        for name in facts
    }
    of_seeds = {
        name: {
            one.seed_id: _ReferenceAnswer(one.decision, _clear_label(one.deployed))
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
        judged = _with_own(surveyed, own, confidence)
        if replica:
            words = tuple(f"{replica}: {sentence}" for sentence in judged.evidence)
            judged = replace(judged, evidence=words)
        found.append(judged)
    if not found:
        return None
    worst = max(found, key=lambda one: _WORSE.index(one.verdict))
    return replace(worst, devices=len(replica_names(store)))


def _may_have_fallen(store: Store) -> bool:
    """Whether labels might tell it; by their counts, as reading each answer takes far longer."""
    for replica in replica_names(store):
        counts = store.columns.seed_labels(replica)
        failed = store.columns.statuses(replica)[Status.FAILED.value]
        most = counts.original_right - counts.deployed_right + counts.ties + failed
        if counts.labelled > 0 and most >= LEAST_FALL:
            return True
    return False


def _by_survey(store: Store, replica: str, references: _References, confidence: float) -> Soundness:
    """Judge a replica by its survey alone."""
    explaining = {name for name, about in store.state.references.items() if about.dynamic}
    shared = set.intersection(*map(set, references.values()))
    distinct: dict[str, _Input] = {}
    for one in store.survey(replica, "survey"):
        if one.deployed is not None and one.key in shared:
            answer = _Answer(one.total_variation, one.confident_deviation)
            about = _Input(one.key, one.family, one.severity, answer)
            distinct.setdefault(one.sample, about)
    inputs = list(distinct.values())
    return judge(
        _scores(inputs, [one.answer for one in inputs]),
        {
            name: _scores(inputs, [answers[one.key] for one in inputs])
            for name, answers in references.items()
        },
        confidence=confidence,
        explaining=explaining,
    )


def _with_own(surveyed: Soundness | None, own: _OwnInputs, confidence: float) -> Soundness:
    """Return the verdict of a survey, capped by what the seeds tell; that alone without a survey."""
    judged = surveyed or Soundness("cannot-tell", confidence, (), 0, 0, ())
    verdict, evidence, more = judged.verdict, judged.evidence, judged.more_inputs
    if own.is_worse:
        if verdict == "cannot-tell":
            evidence = evidence[:-1]  # how many more inputs might tell
        verdict, more = "worse", None
    elif own.doubts and verdict != "worse":
        verdict, evidence = "cannot-tell", (*own.doubts, *evidence)
    return replace(
        judged,
        verdict=verdict,
        evidence=(*own.evidence, *evidence),
        more_inputs=more,
        own=own.deployed if own.deployed.inputs else None,
        own_references=dict(own.references),
        left_out=own.left_out,
    )


_WORSE: tuple[SoundnessVerdict, ...] = ("sound", "cannot-tell", "worse")


def _scores(inputs: Sequence[_Input], answers: Sequence[_Answer]) -> SurveyScores:
    return SurveyScores(
        [one.key[0] for one in inputs],
        [one.family for one in inputs],
        [one.severity for one in inputs],
        np.array([answer.total_variation for answer in answers], np.float64),
        np.array([answer.deviates for answer in answers], np.bool_),
    )

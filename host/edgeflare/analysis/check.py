"""The check of a deployed model: the verdict, why, and what the user's own inputs say."""

from dataclasses import dataclass
from typing import Literal, TypeAlias

from edgeflare.analysis.campaign_verdict import campaign_soundness
from edgeflare.answers import kind_of_answer
from edgeflare.campaign.pair.input_finder import InputPair, fed_inputs
from edgeflare.statistics import binomial_tail
from edgeflare.store import Store
from edgeflare.triage.cause import COARSE, Cause, Triage
from edgeflare.types import Decision

CheckVerdict: TypeAlias = Literal["sound", "worse", "cannot-tell", "not-comparable"]


@dataclass(frozen=True)
class Flip:
    """One of the user's own inputs on which the models decide differently, with both decisions."""

    name: str
    difference: str


@dataclass(frozen=True)
class Accuracy:
    """How many labelled inputs each model is right on; `p`: McNemar's exact test of the difference."""

    original: int
    deployed: int
    labelled: int
    p: float


@dataclass(frozen=True)
class OwnInputs:
    """What the user's own inputs say: how many were asked about, and on which the decision flips."""

    asked: int
    flips: tuple[Flip, ...]
    accuracy: Accuracy | None


@dataclass(frozen=True)
class Checked:
    """A deployed model, judged. `causes` and `remarks` are those of the triage, ranked.

    `verdict`: "sound", "worse", "cannot-tell", or "not-comparable" where a model's answers can't be
    used; None, without a triage, where no device answered. The triage has the agreement, what was tried
    and doesn't fit, and what could not be tried.
    """

    verdict: CheckVerdict | None
    own: OwnInputs
    triage: Triage | None
    inputs: InputPair | None = None
    """How samples enter both models; None: nothing was asked."""

    @property
    def causes(self) -> tuple[Cause, ...]:
        """The causes, ranked."""
        return () if self.triage is None else self.triage.causes

    @property
    def remarks(self) -> tuple[Cause, ...]:
        """What an application may meet though the pair agrees."""
        return () if self.triage is None else self.triage.remarks


NOT_ASKED = Checked(None, OwnInputs(0, (), None), None)
"""No device could be asked."""


def checked(store: Store, triage: Triage) -> Checked:
    """Return the verdict on a campaign's deployed model. Raises StoreError."""
    soundness = campaign_soundness(store)
    proven = [cause for cause in triage.causes if not cause.is_remark and cause.strength >= COARSE]
    verdict: CheckVerdict
    if triage.is_unusable:
        verdict = "not-comparable"
    elif any(cause.side == "both" for cause in proven):
        verdict = "cannot-tell"  # both models are fed wrongly: nothing is said of the deployed one
    elif any(cause.proof != "indicated" for cause in proven) or (
        soundness is not None and soundness.verdict == "worse"
    ):
        verdict = "worse"
    elif soundness is None:
        verdict = "cannot-tell"
    else:
        verdict = soundness.verdict
    return Checked(verdict, own_inputs(store), triage, fed_inputs(store))


def own_inputs(store: Store) -> OwnInputs:
    """Return what the seeds of a campaign say. Raises StoreError."""
    asked, flips = 0, []
    right, labelled, only = {"original": 0, "deployed": 0}, 0, [0, 0]
    for seed in store.seeds():
        if seed.outputs is None or seed.outputs.original is None:
            continue
        original, deployed, decision = seed.outputs
        asked += 1
        kind = kind_of_answer(original)
        if decision is Decision.DEVIATION and deployed is not None:
            flips.append(Flip(seed.id, " -> ".join(kind.answers_words(original, deployed))))
        if seed.label is None or deployed is None:
            continue
        is_right = [kind.is_right(answer, seed.label) for answer in (original, deployed)]
        if is_right[0] is None or is_right[1] is None:
            continue
        labelled += 1
        right["original"] += is_right[0]
        right["deployed"] += is_right[1]
        only[0] += is_right[0] and not is_right[1]
        only[1] += is_right[1] and not is_right[0]
    accuracy = None
    if labelled:
        p = min(1.0, 2 * binomial_tail(max(only), sum(only), 0.5)) if sum(only) else 1.0
        accuracy = Accuracy(right["original"], right["deployed"], labelled, p)
    return OwnInputs(asked, tuple(flips), accuracy)

"""What a finding comes of: the rung of the ladder from which on the models decide differently."""

import math
from collections.abc import Mapping, Sequence

import numpy as np

from edgeflare.answers import common_kind, kind_of_answer
from edgeflare.answers.metrics import class_scores, decides_equally, is_finite, top_label
from edgeflare.campaign.replay.reproduce import Answers, ReplayAnswer
from edgeflare.explanation.ladder import Rung
from edgeflare.explanation.results import (
    DEVICE,
    ExplainedFinding,
    FindingCause,
    Remark,
    RungAnswer,
)
from edgeflare.store.records import ReplayInput
from edgeflare.types import TRIGGERS, Output, Status

UNCHARGED: tuple[FindingCause, ...] = ("not-repeatable", "unanswered")
"""Causes that no rung has."""
ORIGINAL = "original"
_VARIES = 1e-3
"""A difference of scores, from one time to the next, that is more than rounding."""
_UNANSWERED = (Status.FAILED, Status.NONFINITE)


def charge(
    finding: ReplayInput,
    rungs: Mapping[Rung, Mapping[str, Answers]],
    questions: Mapping[Rung, Mapping[str, Answers]] | None = None,
    *,
    stored: Answers,
    fault: str = "",
    is_measured: bool = False,
) -> ExplainedFinding:
    """Charge a finding to a cause.

    `rungs` have the answers by id of the finding and name of the device, the device's rung last;
    `questions` those of what the device was asked besides. `stored` are the finding's answers in
    the campaign, `fault` is the survey's that it belongs to. `is_measured`: only
    the oracle tells a deviation, not the decisions.

    The cause is that of the first rung from which on all deviate. Where that is the device's, it is
    what the first question tells: the plainest kernels deviate on the device as well, or what was
    left out takes the deviation away. Where none tells, it is the kernels, or "device" if not all
    have answered.
    """
    answers = {
        rung: _of_its_device(by_id.get(finding.id, {}), finding) for rung, by_id in rungs.items()
    }
    device, now = list(answers.values())[-1]
    labels = None if now is None else (top_label(now.original), top_label(now.deployed))
    steps = [RungAnswer(ORIGINAL, False, _margin(now and now.original, labels))]
    for rung, (_, answer) in answers.items():
        margin = _margin(answer and answer.deployed, labels)
        steps.append(RungAnswer(rung.name, deviates(answer, is_measured), margin))
    before = stored.get(device) or next(iter(stored.values()), None)
    cause, at, doubt = _charged(list(rungs), steps, now, before)
    if at == DEVICE and cause not in UNCHARGED and questions:
        replies = {
            question: deviates(_of_its_device(by_id.get(finding.id, {}), finding)[1], is_measured)
            for question, by_id in questions.items()
        }
        telling = next((one for one, reply in replies.items() if reply is one.tells), None)
        if telling is not None:
            cause, at = telling.kind, telling.name
        elif None in replies.values():
            cause = "device"
        else:
            cause = "kernels"
            if any(step.rung == "kernels" and step.deviates is False for step in steps):
                doubt = (*doubt, Remark("hardware as well"))
    return ExplainedFinding(
        id=finding.id,
        seed_id=finding.seed_id,
        replica=finding.replica,
        device=device,
        original_label=None if labels is None else labels[0],
        deployed_label=None if labels is None else labels[1],
        cause=cause,
        rung=at,
        doubt=doubt,
        answers=tuple(steps),
        sample=finding.sample,
        l2=finding.l2,
        fault=fault,
    )


def _charged(
    rungs: Sequence[Rung],
    steps: Sequence[RungAnswer],
    now: ReplayAnswer | None,
    before: ReplayAnswer | None,
) -> tuple[FindingCause, str, tuple[Remark, ...]]:
    """Return the cause, the rung, and the doubts; `steps` begin with the original's own."""
    if now is None or now.status in _UNANSWERED:
        return "unanswered", DEVICE, ()
    if now.status is Status.UNSTABLE or not steps[-1].deviates:
        return "not-repeatable", DEVICE, ()
    noise = 0.0 if before is None else _difference(before, now)
    if noise > 0 and noise >= min(_sureness(now)):
        return "not-repeatable", DEVICE, ()
    first = len(steps) - 1
    while first > 1 and steps[first - 1].deviates:
        first -= 1
    rung = rungs[first - 1]
    doubts = []
    if any(step.deviates for step in steps[:first]):
        doubts.append(Remark("earlier deviates"))
    if any(step.deviates is None for step in steps):
        doubts.append(Remark("unanswered step"))
    margins = [step.margin for step in steps]
    if None not in margins:
        changes = np.diff(np.array(margins, dtype=float))
        most = int(changes.argmax())
        if most != first - 1:
            doubts.append(Remark("more by another", {"cause": rungs[most].kind}))
    if noise >= _VARIES:
        doubts.append(Remark("varies", {"by": noise}))
    return rung.kind, rung.name, tuple(doubts)


def _of_its_device(answers: Answers, finding: ReplayInput) -> tuple[str, ReplayAnswer | None]:
    """Return the name of the device whose answer counts, and the answer.

    That is the device that found it, else one on which it deviates, else any.
    """
    deviating = (name for name, one in answers.items() if one.status in TRIGGERS)
    name = finding.replica if finding.replica in answers else next(iter((*deviating, *answers)), "")
    return name, answers.get(name)


def deviates(answer: ReplayAnswer | None, is_measured: bool) -> bool | None:
    """Whether a rung's model decides otherwise than the original; margins don't matter."""
    if answer is None or answer.original is None or answer.deployed is None:
        return None
    if is_measured or answer.status in TRIGGERS:
        return answer.status in TRIGGERS
    if not (is_finite(answer.original) and is_finite(answer.deployed)):
        return None
    return not decides_equally(answer.original, answer.deployed)


def _margin(answer: Output | None, labels: tuple[int | None, int | None] | None) -> float | None:
    if answer is None or labels is None or None in labels:
        return None
    scores = class_scores(answer)
    margin = float(scores[labels[1]] - scores[labels[0]])
    return margin if math.isfinite(margin) else None


def _sureness(now: ReplayAnswer) -> tuple[float, ...]:
    """Return both models' margins, as far as they have one; of what is measured the distance."""
    assert now.original is not None  # noqa: S101 - they deviate
    assert now.deployed is not None  # noqa: S101
    kind = kind_of_answer(now.original)
    if kind.is_measured:
        return (kind.distance(now.original, now.deployed),)
    margins = kind.margins(now.original, now.deployed)
    return tuple(margin for margin in margins if margin is not None) or (1.0,)


def _difference(before: ReplayAnswer, now: ReplayAnswer) -> float:
    """Return the larger of both models' differences between then and now."""
    pairs = ((before.original, now.original), (before.deployed, now.deployed))
    return max(
        (
            common_kind(first, second).repeat_difference(first, second)
            for first, second in pairs
            if first is not None and second is not None
        ),
        default=0.0,
    )

"""What a finding comes of: the rung of the ladder from which on the models decide differently."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal, TypeAlias

import numpy as np

from edgeflare.campaign.replay.reproduce import Answers, ReplayAnswer
from edgeflare.explanation.ladder import DEVICE, Cause, Rung
from edgeflare.metrics import decides_equally, is_finite, top_label
from edgeflare.oracles import margins
from edgeflare.store import Store
from edgeflare.store.database import decoding
from edgeflare.store.documents import validated
from edgeflare.store.records import ReplayInput
from edgeflare.types import TRIGGERS, Output, Status, Transcript

FindingCause: TypeAlias = Cause | Literal["not repeatable", "unanswered"]
"""What a finding comes of; "not repeatable": asked again, a model answers otherwise; "unanswered":
a model can't answer it any more."""

ORIGINAL = "original"
_FACT = "explanation"
UNCHARGED = ("not repeatable", "unanswered")
_UNANSWERED = (Status.FAILED, Status.NONFINITE)


@dataclass(frozen=True)
class RungAnswer:
    """What the model of one rung answers to a finding.

    `deviates`: it decides otherwise than the original, None where it can't answer. `margin`: the
    probability of the class that the deployed model decides for on the device, less that of the
    original's class, -1 to 1; None of transcripts and of models that return a label alone.
    """

    rung: str
    deviates: bool | None
    margin: float | None


@dataclass(frozen=True)
class ExplainedFinding:
    """One finding and what it comes of.

    `id` is that of the input in a replay of the campaign, `sample` the digest of the input, `l2` its
    distance to the seed as `edgeflare.metrics` has it. `replica` is the device that found it where
    each searched for itself, `device` the one that answered now. `cause` is that of `rung`, the
    first one from which on all deviate; `doubt` says why that may be another one, "" where nothing
    does. `answers` begin with the original's own margin; differences of margins of one to the next
    are what each rung contributes, and add up to the whole change.
    """

    id: str
    seed_id: str
    replica: str
    device: str
    original_label: int | None
    deployed_label: int | None
    cause: FindingCause
    rung: str
    doubt: str
    answers: tuple[RungAnswer, ...]
    sample: str
    l2: float | None

    @property
    def contributions(self) -> dict[str, float]:
        """The change of the margin on each rung, by its name; empty where margins aren't known."""
        margins = [one.margin for one in self.answers]
        if None in margins:
            return {}
        steps = np.diff(np.array(margins, dtype=float)).tolist()
        return dict(zip([one.rung for one in self.answers[1:]], steps, strict=True))


@dataclass(frozen=True)
class FindingGroup:
    """Findings that come of one cause and have the same labels; `nearest` is nearest to its seed.

    `doubtful` of the `count` have a doubt. Transcripts have no labels: they differ by cause alone.
    """

    cause: FindingCause
    original_label: int | None
    deployed_label: int | None
    count: int
    doubtful: int
    nearest: ExplainedFinding


@dataclass(frozen=True)
class Explanation:
    """What the findings of a campaign come of.

    `rungs` are (name, cause, description) of those that were asked. `left_out` findings are not
    explained since `device_queries`, what the devices were asked in all, has a limit. `notices` say
    what can't be told apart.
    """

    findings: tuple[ExplainedFinding, ...]
    rungs: tuple[tuple[str, str, str], ...]
    left_out: int
    device_queries: int
    notices: tuple[str, ...]

    @property
    def counts(self) -> dict[FindingCause, int]:
        """The number of findings of each cause, most first."""
        return dict(Counter(one.cause for one in self.findings).most_common())

    @property
    def groups(self) -> tuple[FindingGroup, ...]:
        """The findings by cause and labels, the largest group first."""
        groups: dict[tuple[Any, ...], list[ExplainedFinding]] = {}
        for one in self.findings:
            groups.setdefault((one.cause, one.original_label, one.deployed_label), []).append(one)
        found = [
            FindingGroup(
                some[0].cause,
                some[0].original_label,
                some[0].deployed_label,
                len(some),
                sum(bool(one.doubt) for one in some),
                min(some, key=lambda one: math.inf if one.l2 is None else one.l2),
            )
            for some in groups.values()
        ]
        return tuple(sorted(found, key=lambda one: -one.count))

    def to_json(self) -> dict[str, Any]:
        """Return a JSON object with the same names, and each finding's `contributions`.

        Of each group `nearest` is the id.
        """
        findings = [{**asdict(one), "contributions": one.contributions} for one in self.findings]
        groups = [{**vars(one), "nearest": one.nearest.id} for one in self.groups]
        return {**asdict(self), "findings": findings, "counts": self.counts, "groups": groups}


def store_explanation(store: Store, explanation: Explanation) -> None:
    """Store an explanation in its campaign, in place of an earlier one."""
    store.set_fact(_FACT, asdict(explanation))


def stored_explanation(store: Store) -> Explanation | None:
    """Return the explanation of a campaign, None before it has one. Raises StoreError."""
    with decoding(store.folder, "the explanation"):
        fact = store.fact(_FACT)
        if fact is None:
            return None
        found: Explanation = validated(Explanation, fact)
        return found


def charge(
    finding: ReplayInput,
    rungs: Mapping[Rung, Mapping[str, Answers]],
    questions: Mapping[Rung, Mapping[str, Answers]] | None = None,
    *,
    stored: Answers,
    compares_scores: bool = False,
) -> ExplainedFinding:
    """Charge a finding to a cause.

    `rungs` have the answers by id of the finding and name of the device, the device's rung last;
    `questions` those of what the device was asked besides. `stored` are the finding's answers in
    the campaign. `compares_scores`: only the oracle tells a deviation, not the labels.

    The cause is that of the first rung from which on all deviate. Where that is the device's, it is
    that of the first question that tells: the plainest kernels deviate on the device as well
    ("hardware"), or what was left out takes the deviation away.
    """
    answers = {
        rung: _of_its_device(by_id.get(finding.id, {}), finding) for rung, by_id in rungs.items()
    }
    device, now = list(answers.values())[-1]
    labels = None if now is None else (top_label(now.original), top_label(now.deployed))
    steps = [RungAnswer(ORIGINAL, False, _margin(now and now.original, labels))]
    for rung, (_, answer) in answers.items():
        margin = _margin(answer and answer.deployed, labels)
        steps.append(RungAnswer(rung.name, _deviates(answer, compares_scores), margin))
    before = stored.get(device) or next(iter(stored.values()), None)
    cause, at, doubt = _charged(list(rungs), steps, now, before)
    if at == DEVICE and cause not in UNCHARGED and questions:
        told = (
            (
                question,
                _deviates(_of_its_device(by_id.get(finding.id, {}), finding)[1], compares_scores),
            )
            for question, by_id in questions.items()
        )
        cause = next(
            (one.cause for one, does in told if does is (one.cause == "hardware")), "kernels"
        )
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
    )


def _charged(
    rungs: Sequence[Rung],
    steps: Sequence[RungAnswer],
    now: ReplayAnswer | None,
    before: ReplayAnswer | None,
) -> tuple[FindingCause, str, str]:
    """Return the cause, the rung, and the doubt; `steps` begin with the original's own."""
    if now is None or now.status in _UNANSWERED:
        return "unanswered", DEVICE, ""
    if now.status is Status.UNSTABLE or not steps[-1].deviates:
        return "not repeatable", DEVICE, ""
    noise = 0.0 if before is None else _difference(before, now)
    if noise > 0 and noise >= min(one for one in _sureness(now)):
        return "not repeatable", DEVICE, ""
    first = len(steps) - 1
    while first > 1 and steps[first - 1].deviates:
        first -= 1
    rung = rungs[first - 1]
    doubts = []
    if any(one.deviates for one in steps[:first]):
        doubts.append("an earlier rung deviates, too")
    if any(one.deviates is None for one in steps):
        doubts.append("a rung has no answer")
    margins = [one.margin for one in steps]
    if None not in margins:
        changes = np.diff(np.array(margins, dtype=float))
        most = int(changes.argmax())
        if most != first - 1:
            doubts.append(f"{rungs[most].cause} changes the margin more")
        if noise >= changes[first - 1]:
            doubts.append("the device's answers vary by as much")
    return rung.cause, rung.name, "; ".join(doubts)


def _of_its_device(answers: Answers, finding: ReplayInput) -> tuple[str, ReplayAnswer | None]:
    """Return the name of the device whose answer counts, the finding's own or any, and the answer."""
    name = finding.replica if finding.replica in answers else next(iter(answers), "")
    return name, answers.get(name)


def _deviates(answer: ReplayAnswer | None, compares_scores: bool) -> bool | None:
    """Whether a rung's model decides otherwise than the original; margins don't matter."""
    if answer is None or answer.original is None or answer.deployed is None:
        return None
    if compares_scores or answer.status in TRIGGERS:
        return answer.status in TRIGGERS
    if not (is_finite(answer.original) and is_finite(answer.deployed)):
        return None
    return not decides_equally(answer.original, answer.deployed)


def _margin(answer: Output | None, labels: tuple[int | None, int | None] | None) -> float | None:
    if answer is None or isinstance(answer, Transcript) or labels is None or None in labels:
        return None
    return float(answer[labels[1]] - answer[labels[0]])


def _sureness(now: ReplayAnswer) -> tuple[float, ...]:
    """Return both models' margins, as far as they have one."""
    assert now.original is not None  # noqa: S101 - they deviate
    assert now.deployed is not None  # noqa: S101
    return tuple(one for one in margins(now.original, now.deployed) if one is not None) or (1.0,)


def _difference(before: ReplayAnswer, now: ReplayAnswer) -> float:
    """Return the largest difference of a score then and now, of either model."""
    pairs = ((before.original, now.original), (before.deployed, now.deployed))
    largest = 0.0
    for one, other in pairs:
        if one is None or other is None:
            continue
        if isinstance(one, Transcript) or isinstance(other, Transcript):
            largest = max(largest, float(not decides_equally(one, other)))
        else:
            largest = max(largest, float(np.abs(one - other).max()))
    return largest

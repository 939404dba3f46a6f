"""Confirms a finding: repeats the query on the stored input.

Where the finding does not repeat, less severe inputs are tried.
"""

from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Protocol

from edgeflare.answers.metrics import is_same_answer
from edgeflare.errors import InferenceFailedError
from edgeflare.scheduler.job import Counters
from edgeflare.types import Answer, Ask, Decision, Outcome, Output, Outputs, Sample, Status
from edgeflare.words.search import NOT_REPEATABLE, not_repeated


class SampleStore(Protocol):
    """A store of samples by the digest of their content."""

    def put_sample(self, sample: Sample) -> str:
        """Write a sample and return its digest; it is on disk then."""
        ...

    def get_sample(self, digest: str) -> Sample:
        """Read a sample back from disk."""
        ...


class UnconfirmedTrigger(NamedTuple):
    """An input to be confirmed; `earlier` ones are tried, in order, where it does not repeat.

    `deployed` is the deployed model's answer to it, where that is known.
    """

    status: Status
    sample: Sample
    mutations: Sequence[dict[str, Any]] = ()
    detail: str = ""
    earlier: Sequence[Outcome] = ()
    deployed: Output | None = None


@dataclass(frozen=True)
class Confirmed:
    """An input, both models' answers to it, and how many repetitions confirmed them."""

    status: Status
    sample: Sample | None = None
    sample_digest: str | None = None
    outputs: Outputs | None = None
    mutations: Sequence[dict[str, Any]] = ()
    confirmed: int = 0
    detail: str = ""


def confirm(
    finding: UnconfirmedTrigger, samples: SampleStore, times: int, counters: Counters
) -> Generator[Ask, Answer, Confirmed]:
    """Store a finding and repeat the query on its bytes `times` times; `counters` counts each.

    It repeats where the decision and the deployed model's answer are the same each time: a model
    that answers with another wrong class each time has no deviation that can be shown again. If it
    does not repeat, or the device fails on it, the first of `earlier` that repeats is the result;
    if none does, the finding itself. `detail` names the inputs that did not repeat.
    """
    unconfirmed: dict[str, Confirmed] = {}
    for sample, mutations in _inputs(finding):
        digest = samples.put_sample(sample)
        if digest in unconfirmed:
            continue
        start = Confirmed(finding.status, sample, digest, mutations=mutations)
        before = None if unconfirmed else finding.deployed
        one = yield from _repeated(start, digest, before, samples, times, counters)
        if one.status is finding.status:
            detail = _join(
                not_repeated("more", list(unconfirmed)), finding.detail, *_errors(unconfirmed)
            )
            return replace(one, detail=detail)
        unconfirmed[digest] = one
    first, *others = unconfirmed
    detail = _join(not_repeated("less", others), finding.detail, *_errors(unconfirmed))
    return replace(unconfirmed[first], detail=detail)


def _inputs(finding: UnconfirmedTrigger) -> Iterator[tuple[Sample, Sequence[dict[str, Any]]]]:
    yield finding.sample, finding.mutations
    for outcome in finding.earlier:
        if outcome.sample is not None:
            yield outcome.sample, outcome.mutations


def _repeated(
    start: Confirmed,
    digest: str,
    before: Output | None,
    samples: SampleStore,
    times: int,
    counters: Counters,
) -> Generator[Ask, Answer, Confirmed]:
    """Repeat the query on one input; UNSTABLE at another decision, or at another answer than
    `before` and at the earlier repetitions, FAILED without an answer."""
    wanted = Decision.NONFINITE if start.status is Status.NONFINITE else Decision.DEVIATION
    found = start
    for number in range(times):
        counters.confirmation += 1
        stored = samples.get_sample(digest)
        try:
            answer = yield Ask((stored,))
        except InferenceFailedError as error:
            return Confirmed(Status.FAILED, stored, digest, detail=str(error))
        outputs = answer.outputs[0]
        if outputs.decision is not wanted:
            return replace(found, status=Status.UNSTABLE, outputs=outputs)
        repeated = outputs.deployed
        if before is not None and repeated is not None and not is_same_answer(before, repeated):
            return replace(found, status=Status.UNSTABLE, outputs=outputs, detail=NOT_REPEATABLE)
        before = repeated
        found = replace(found, outputs=outputs, confirmed=number + 1)
    return found


def _errors(unconfirmed: dict[str, Confirmed]) -> list[str]:
    return list(dict.fromkeys(one.detail for one in unconfirmed.values()))


def _join(*parts: str) -> str:
    return "; ".join(part for part in parts if part)

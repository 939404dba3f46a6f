"""The life of one chain, from its seed to its result: counted, budgeted, confirmed. No concurrency here."""

import hashlib
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

import numpy as np

from edgeflare.errors import EdgeFlareError, InferenceFailedError, StrategyError
from edgeflare.oracles import LabelOracle, Oracle
from edgeflare.scheduler.asking import Asking, OverBudget
from edgeflare.scheduler.budget import Budget, Counters
from edgeflare.scheduler.front import Front
from edgeflare.scheduler.job import Life
from edgeflare.types import (
    Answer,
    Ask,
    Decision,
    FrontPoint,
    Outcome,
    Outputs,
    Sample,
    Seed,
    Status,
    Strategy,
)


class Vault(Protocol):
    """Where samples are kept for good, by the digest of their content."""

    def put_sample(self, sample: Sample) -> str:
        """Write a sample and return its digest; it is on disk then."""
        ...

    def get_sample(self, digest: str) -> Sample:
        """Read a sample back from disk."""
        ...


@dataclass(frozen=True)
class ChainResult:
    """How the search from one seed ended.

    `sample` is the triggering (or unstable, or non-finite) input, None where there is none; `outputs`
    are both models' answers on it when it was confirmed, and `confirmed` says how often it was.
    `mutations` lead from the seed to a triggering input; they are empty for a non-finite one, which
    ends a search before its strategy is asked. `front` has the deviations that the search met, as far as
    no earlier one beats them in both margin and L2. `detail` says why a search failed; `sample` is the
    input on which it did, where it was the only one of its request. It also says where only the time
    budget ended a search that had a triggering input and went on for a better one.
    """

    seed: Seed
    chain_seed: int
    status: Status
    counters: Counters
    sample: Sample | None = None
    sample_digest: str | None = None
    outputs: Outputs | None = None
    mutations: Sequence[dict[str, Any]] = ()
    confirmed: int = 0
    detail: str = ""
    front: Sequence[FrontPoint] = ()


class Rules(NamedTuple):
    """What holds for every chain of a campaign alike; `oracle` is the one that the scheduler decides by."""

    strategy: Strategy
    budget: Budget
    confirmations: int
    campaign_seed: int
    vault: Vault
    oracle: Oracle = LabelOracle()


@dataclass
class Chain:
    """One search in flight; a `Job`."""

    seed: Seed
    rules: Rules
    counters: Counters = field(default_factory=Counters)
    seconds_count: bool = True
    front: Front = field(init=False)

    def __post_init__(self) -> None:
        self.front = Front(self.seed.sample)

    def live(self) -> Life[ChainResult]:
        """Search from the seed; yield what is to be asked; confirm what is found; return the result.

        The caller runs the queries and adds to ``counters.seconds`` while ``seconds_count`` holds.
        """
        self.counters = Counters(seed=1)
        self.front = Front(self.seed.sample)
        natural = _FINDINGS_AT_THE_SEED.get(self.seed.outputs.decision)
        self.seconds_count = natural is None
        if natural is not None:
            return (yield from self._confirm(natural, self.seed.sample, ()))
        number = chain_seed(self.rules.campaign_seed, self.seed.id)
        search = self.rules.strategy(self.seed, np.random.default_rng(number))
        try:
            ending = yield from self._search(search)
        finally:
            search.close()
        self.seconds_count = False
        if isinstance(ending, ChainResult):
            return ending
        return (yield from self._confirm(*ending))

    def _search(
        self, search: Generator[Ask, Answer, Outcome]
    ) -> Generator[Ask, Answer, "ChainResult | _Finding"]:
        """Drive the strategy to its end: a result without a finding, or a finding to be confirmed."""
        rules = self.rules
        asking = Asking(rules.oracle, rules.budget, self.counters, self.front)
        late = False
        step: Callable[[], Ask] = search.__next__
        while True:
            try:
                ask = self._stepped(step)
            except _Ended as end:
                outcome = end.outcome
                if outcome.sample is None:
                    return self._result(Status.GAVE_UP)
                return _Finding(Status.FOUND, outcome.sample, outcome.mutations)
            if late and ask.best is not None:
                return self._cut_short(Status.TIMEOUT, ask)
            try:
                answer = yield from asking.ask(ask)
            except OverBudget:
                return self._cut_short(Status.EXHAUSTED, ask)
            except InferenceFailedError as error:
                return self._failed(asking.sent, error)
            for sample, outputs in zip(ask.samples, answer.outputs, strict=True):
                if outputs.decision is Decision.NONFINITE:
                    return _Finding(Status.NONFINITE, sample, ())
            limit = rules.budget.seconds
            late = limit is not None and self.counters.seconds > limit
            if late and not _deviates(answer):
                return self._cut_short(Status.TIMEOUT, ask)
            step = _send(search, answer)

    def _stepped(self, step: Callable[[], Ask]) -> Ask:
        try:
            return step()
        except StopIteration as stop:
            raise _Ended(stop.value) from None
        except EdgeFlareError:
            raise
        except Exception as error:
            raise StrategyError(
                f"the search from seed {self.seed.id} failed in its strategy or in a mutation "
                f"operator: {type(error).__name__}: {error}"
            ) from error

    def _cut_short(self, status: Status, ask: Ask) -> "ChainResult | _Finding":
        """End a search whose budget is spent: with its best triggering input, where it has one."""
        best = ask.best
        if best is None or best.sample is None:
            return self._result(status)
        detail = _LATE if status is Status.TIMEOUT else ""
        return _Finding(Status.FOUND, best.sample, best.mutations, detail)

    def _confirm(
        self,
        status: Status,
        sample: Sample,
        mutations: Sequence[dict[str, Any]],
        detail: str = "",
    ) -> Life[ChainResult]:
        """Store the sample and ask about the stored bytes again, as often as the rules say."""
        digest = self.rules.vault.put_sample(sample)
        wanted = Decision.NONFINITE if status is Status.NONFINITE else Decision.DEVIATION
        confirmed = 0
        outputs: Outputs | None = None
        for _ in range(self.rules.confirmations):
            self.counters.confirmation += 1
            stored = self.rules.vault.get_sample(digest)
            try:
                answer = yield Ask((stored,))
            except InferenceFailedError as error:
                return self._failed((stored,), error)
            outputs = answer.outputs[0]
            if outputs.decision is not wanted:
                status = Status.UNSTABLE
                break
            confirmed += 1
        return self._result(
            status,
            sample=sample,
            sample_digest=digest,
            outputs=outputs,
            mutations=mutations,
            confirmed=confirmed,
            detail=detail,
        )

    def _failed(self, samples: Sequence[Sample], error: InferenceFailedError) -> ChainResult:
        """Keep the input on which the device can't answer, where it is known which one that is."""
        if len(samples) != 1:
            return self._result(Status.FAILED, detail=str(error))
        digest = self.rules.vault.put_sample(samples[0])
        return self._result(
            Status.FAILED, sample=samples[0], sample_digest=digest, detail=str(error)
        )

    def _result(self, status: Status, **found: Any) -> ChainResult:
        number = chain_seed(self.rules.campaign_seed, self.seed.id)
        front = self.front.points
        return ChainResult(self.seed, number, status, self.counters, front=front, **found)


class _Finding(NamedTuple):
    """What is to be confirmed."""

    status: Status
    sample: Sample
    mutations: Sequence[dict[str, Any]]
    detail: str = ""


class _Ended(Exception):  # noqa: N818 - no error: the strategy has returned
    def __init__(self, outcome: Outcome) -> None:
        super().__init__()
        self.outcome = outcome


_LATE = "the time budget ended the search for a more severe one"

_FINDINGS_AT_THE_SEED = {
    Decision.DEVIATION: Status.SEED_DEVIATES,
    Decision.NONFINITE: Status.NONFINITE,
}


def chain_seed(campaign_seed: int, seed_id: str) -> int:
    """Return the 63-bit seed of a chain's randomness: it depends on nothing but these two."""
    digest = hashlib.sha256(f"{campaign_seed}:{seed_id}".encode()).digest()
    return int.from_bytes(digest[:8], "big") >> 1


def _deviates(answer: Answer) -> bool:
    return any(outputs.decision is Decision.DEVIATION for outputs in answer.outputs)


def _send(search: Generator[Ask, Answer, Any], answer: Answer) -> Callable[[], Ask]:
    return lambda: search.send(answer)

"""The life of one chain, from its seed to its result: counted, budgeted, confirmed. No concurrency here."""

import hashlib
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol, TypeAlias

import numpy as np

from edgeflare.errors import EdgeFlareError, StrategyError
from edgeflare.scheduler.budget import Budget, Counters
from edgeflare.types import Answer, Ask, Decision, Outcome, Outputs, Sample, Seed, Status, Strategy


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
    ends a search before its strategy is asked.
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


class Rules(NamedTuple):
    """What holds for every chain of a campaign alike."""

    strategy: Strategy
    budget: Budget
    confirmations: int
    campaign_seed: int
    vault: Vault


Life: TypeAlias = Generator[Ask, Answer, ChainResult]


@dataclass
class Chain:
    """One search in flight. Touched by one worker at a time."""

    seed: Seed
    rules: Rules
    counters: Counters = field(default_factory=lambda: Counters(seed=1))
    searching: bool = True

    def live(self) -> Life:
        """Search from the seed; yield what is to be asked; confirm what is found; return the result.

        The caller runs the queries and adds to ``counters.seconds`` while ``searching`` holds.
        """
        natural = _FINDINGS_AT_THE_SEED.get(self.seed.outputs.decision)
        if natural is not None:
            self.searching = False
            return (yield from self._confirm(natural, self.seed.sample, ()))
        number = chain_seed(self.rules.campaign_seed, self.seed.id)
        search = self.rules.strategy(self.seed, np.random.default_rng(number))
        step: Callable[[], Ask] = search.__next__
        while True:
            try:
                ask = step()
            except StopIteration as stop:
                self.searching = False
                outcome: Outcome = stop.value
                if outcome.sample is None:
                    return self._result(Status.GAVE_UP)
                return (yield from self._confirm(Status.FOUND, outcome.sample, outcome.mutations))
            except EdgeFlareError:
                raise
            except Exception as error:
                raise StrategyError(
                    f"the search from seed {self.seed.id} failed in its strategy or in a mutation "
                    f"operator: {type(error).__name__}: {error}"
                ) from error
            if not self._afford(ask):
                search.close()
                return self._result(Status.EXHAUSTED)
            answer = yield ask
            for sample, outputs in zip(ask.samples, answer.outputs, strict=True):
                if outputs.decision is Decision.NONFINITE:
                    search.close()
                    self.searching = False
                    return (yield from self._confirm(Status.NONFINITE, sample, ()))
            limit = self.rules.budget.seconds
            if limit is not None and self.counters.seconds > limit and not _deviates(answer):
                search.close()
                return self._result(Status.TIMEOUT)
            step = _send(search, answer)

    def _afford(self, ask: Ask) -> bool:
        if ask.of == "original":
            self.counters.host_only += len(ask.samples)
            return True
        limit = self.rules.budget.queries
        if limit is not None and self.counters.search + len(ask.samples) > limit:
            return False
        self.counters.search += len(ask.samples)
        return True

    def _confirm(self, status: Status, sample: Sample, mutations: Sequence[dict[str, Any]]) -> Life:
        """Store the sample and ask about the stored bytes again, as often as the rules say."""
        digest = self.rules.vault.put_sample(sample)
        wanted = Decision.NONFINITE if status is Status.NONFINITE else Decision.DEVIATION
        confirmed = 0
        outputs: Outputs | None = None
        for _ in range(self.rules.confirmations):
            self.counters.confirmation += 1
            answer = yield Ask((self.rules.vault.get_sample(digest),))
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
        )

    def _result(self, status: Status, **found: Any) -> ChainResult:
        number = chain_seed(self.rules.campaign_seed, self.seed.id)
        return ChainResult(self.seed, number, status, self.counters, **found)


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

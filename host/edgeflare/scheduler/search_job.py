"""One search from a seed to its confirmed result, within its budget. No concurrency here."""

import hashlib
from collections.abc import Generator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from edgeflare.answers.oracles import LabelOracle, Oracle, has_margin_below, margins
from edgeflare.errors import EdgeFlareError, InferenceFailedError, StrategyError
from edgeflare.metrics import l2, linf
from edgeflare.scheduler.confirmation import Confirmed, SampleStore, UnconfirmedTrigger, confirm
from edgeflare.scheduler.job import Budget, Counters, JobRun
from edgeflare.types import (
    Answer,
    Ask,
    Decision,
    FrontPoint,
    Outcome,
    Outputs,
    Sample,
    Search,
    Seed,
    Status,
    Strategy,
)
from edgeflare.words import search as words


class ParetoFront:
    """Margin and distance to `seed` of the deviations found, in the order of the queries."""

    def __init__(self, seed: Sample, points: Sequence[FrontPoint] = ()) -> None:
        self._seed = seed
        self._points = list(points)

    @property
    def points(self) -> tuple[FrontPoint, ...]:
        """Each deviation that no earlier one beats: none had its margin or more at its L2 or less."""
        return tuple(self._points)

    def add(self, sample: Sample, outputs: Outputs, queries: int) -> None:
        """Add a sample on which both models' outputs deviate; `queries`: how many were made up to and with this one."""
        assert outputs.original is not None  # noqa: S101 - a deviation is one of two answers
        assert outputs.deployed is not None  # noqa: S101
        smaller = margins(outputs.original, outputs.deployed).smaller or 0.0
        length = l2(self._seed, sample)
        if not any(point.margin >= smaller and point.l2 <= length for point in self._points):
            self._points.append(FrontPoint(queries, smaller, length, linf(self._seed, sample)))


class BudgetExceeded(Exception):  # noqa: N818 - no error: how a search ends
    """A query would exceed the budget of queries."""


@dataclass
class QueryMeter:
    """Passes the queries of one search on, within its budget; counts in `counters`, fills `front`.

    `sent`: the samples of the last request, to either model or both. `intended`: inputs for both
    models where there is a floor; `withheld`: how many of them were not sent to the device, because
    the original's margin is below it.
    """

    oracle: Oracle
    budget: Budget
    counters: Counters
    front: ParetoFront
    sent: Sequence[Sample] = ()
    intended: int = 0
    withheld: int = 0

    @property
    def floor_warning(self) -> str:
        """A warning where the margin floor held back most inputs from the device; else empty."""
        if 2 * self.withheld <= self.intended:
            return ""
        return words.BELOW_FLOOR.format(self.withheld, self.intended, self.oracle.floor)

    def ask(self, ask: Ask) -> Generator[Ask, Answer, Answer]:
        """Yield the requests that an `Ask` of the strategy needs; return the answer for the strategy.

        With a floor, inputs meant for both models are given to the original first, and those on
        which its margin is below the floor are not sent to the device. Raises BudgetExceeded,
        InferenceFailedError, StrategyError.
        """
        self.sent = ask.samples
        if ask.is_of_probe and ask.of != "original":
            raise StrategyError(f'a strategy asks for a {ask.want} with of="original" alone')
        if ask.of == "original":
            self._pay_host(_passes(ask) * len(ask.samples))
            return (yield ask)
        if ask.of == "both" and self.oracle.floor > 0:
            return (yield from self._above_floor(ask))
        begin, limit = self.counters.search, self.budget.queries
        if limit is not None and begin + len(ask.samples) > limit:
            raise BudgetExceeded
        self.counters.search += len(ask.samples)
        self.counters.round_trips += 1
        answer = yield ask
        for number, (sample, outputs) in enumerate(
            zip(ask.samples, answer.outputs, strict=True), start=begin + 1
        ):
            if outputs.decision is Decision.DEVIATION:
                self.front.add(sample, outputs, number)
        return answer

    def _above_floor(self, ask: Ask) -> Generator[Ask, Answer, Answer]:
        limit = self.budget.queries
        if limit is not None and self.counters.search >= limit:
            raise BudgetExceeded
        answer = yield Ask(ask.samples, "original")
        known = [outputs.original for outputs in answer.outputs]
        outputs = [Outputs(one, None, Decision.BELOW_FLOOR) for one in known]
        places = [
            place
            for place, one in enumerate(known)
            if one is not None and not has_margin_below(one, self.oracle.floor)
        ]
        self.intended += len(ask.samples)
        self.withheld += len(ask.samples) - len(places)
        self.counters.host_only += len(ask.samples) - len(places)
        self._pay_host(0)
        if not places:
            return Answer(outputs)
        begin = self.counters.search
        above = tuple(ask.samples[place] for place in places)
        answer = yield from self.ask(Ask(above, "deployed"))
        for number, (place, theirs) in enumerate(
            zip(places, answer.outputs, strict=True), start=begin + 1
        ):
            original, deployed = known[place], theirs.deployed
            assert original is not None  # noqa: S101 - both were asked
            assert deployed is not None  # noqa: S101
            decision = self.oracle.decide(original, deployed)
            outputs[place] = Outputs(original, deployed, decision)
            if decision is Decision.DEVIATION:
                self.front.add(ask.samples[place], outputs[place], number)
        return Answer(outputs)

    def _pay_host(self, count: int) -> None:
        limit = self.budget.host_queries
        if limit is not None and self.counters.host_only + count > limit:
            raise BudgetExceeded
        self.counters.host_only += count


@dataclass(frozen=True, kw_only=True)
class SearchJobResult(Confirmed):
    """How the search from one seed ended.

    `sample` is the triggering (or unstable, or non-finite) input, or the only one of a failed
    request; `outputs` are both models' answers on it at its confirmation, `confirmed` counts the
    repetitions. `mutations` lead from the seed to a triggering input; they are empty for a
    non-finite one. `front`: the deviations in the order they were found, without those that an
    earlier one beats in both margin and L2. `mostly_below_floor`: the budget ended a search of
    which the margin floor withheld most inputs from the device. `lost_queries`: search queries of
    earlier attempts, which `counters` don't count. `detail`: why a search failed, how
    many inputs were withheld, what ended the search for a better triggering input, and which inputs
    did not repeat.
    """

    seed: Seed
    chain_seed: int
    counters: Counters
    front: Sequence[FrontPoint] = ()
    mostly_below_floor: bool = False
    lost_queries: int = 0


class SearchSettings(NamedTuple):
    """Settings shared by all searches of a campaign; `oracle` is the scheduler's, too."""

    strategy: Strategy
    budget: Budget
    confirmations: int
    campaign_seed: int
    sample_store: SampleStore
    oracle: Oracle = LabelOracle()


@dataclass
class SearchJob:
    """One search in flight; a `Job`."""

    seed: Seed
    settings: SearchSettings
    counters: Counters = field(default_factory=Counters)
    seconds_count: bool = True
    front: ParetoFront = field(init=False)

    def __post_init__(self) -> None:
        self.front = ParetoFront(self.seed.sample)

    @property
    def row(self) -> int | None:
        """The seed's."""
        return self.seed.row

    @property
    def held_bytes(self) -> int:
        """Estimated memory of a search: 20 times its seed's sample."""
        return _SAMPLES_HELD * self.seed.sample.nbytes

    @property
    def most_queries(self) -> int | None:
        """The budget and the repetitions of one finding; less severe ones may come on top."""
        budget = self.settings.budget.queries
        return None if budget is None else budget + self.settings.confirmations

    def run(self) -> JobRun[SearchJobResult]:
        """Search from the seed and confirm what is found: yield requests, return the result.

        The caller runs the queries and adds to ``counters.seconds`` while ``seconds_count`` holds.
        """
        self.counters = Counters(seed=1)
        self.front = ParetoFront(self.seed.sample)
        natural = _STATUS_OF_SEED.get(self.seed.outputs.decision)
        self.seconds_count = natural is None
        if natural is not None:
            deviating = UnconfirmedTrigger(
                natural, self.seed.sample, deployed=self.seed.outputs.deployed
            )
            return (yield from self._confirm(deviating))
        ending = yield from self.search()
        self.seconds_count = False
        if isinstance(ending, SearchJobResult):
            return ending
        return (yield from self._confirm(ending))

    def search(self) -> JobRun[SearchJobResult | UnconfirmedTrigger]:
        """Run the strategy to its end; return a result, or a finding that must be confirmed."""
        number = chain_seed(self.settings.campaign_seed, self.seed.id)
        search = self.settings.strategy(self.seed, np.random.default_rng(number))
        try:
            return (yield from self._asking(search))
        finally:
            search.close()

    def _asking(self, search: Search) -> JobRun[SearchJobResult | UnconfirmedTrigger]:
        """Pass on what the strategy asks, within the budget."""
        settings = self.settings
        meter = QueryMeter(settings.oracle, settings.budget, self.counters, self.front)
        late = False
        answer: Answer | None = None
        while True:
            try:
                ask = next(search) if answer is None else search.send(answer)
            except StopIteration as stop:
                outcome: Outcome = stop.value
                if outcome.sample is None:
                    return self._result(Status.GAVE_UP, detail=outcome.reason)
                return _found(outcome)
            except EdgeFlareError:
                raise
            except Exception as error:
                raise StrategyError(
                    f"the search from seed {self.seed.id} failed in its strategy or in a mutation "
                    f"operator: {type(error).__name__}: {error}"
                ) from error
            if late and ask.best is not None:
                return self._end_by_budget(Status.TIMEOUT, ask, meter.floor_warning)
            try:
                answer = yield from meter.ask(ask)
            except BudgetExceeded:
                return self._end_by_budget(Status.EXHAUSTED, ask, meter.floor_warning)
            except InferenceFailedError as error:
                return self._end_by_failure(meter.sent, error, ask.best)
            for sample, outputs in zip(ask.samples, answer.outputs, strict=True):
                if outputs.decision is Decision.NONFINITE:
                    return UnconfirmedTrigger(
                        Status.NONFINITE, sample, detail=self._store_unconfirmed(ask.best)
                    )
            limit = settings.budget.seconds
            late = limit is not None and self.counters.seconds > limit
            if late and not _deviates(answer):
                return self._end_by_budget(Status.TIMEOUT, ask, meter.floor_warning)

    def _end_by_budget(
        self, status: Status, ask: Ask, floor_warning: str
    ) -> "SearchJobResult | UnconfirmedTrigger":
        """End a search whose budget is spent: with its best triggering input, where it has one."""
        if ask.best is None or ask.best.sample is None:
            return self._result(
                status, detail=floor_warning, mostly_below_floor=bool(floor_warning)
            )
        return _found(ask.best, words.TIME_IS_UP if status is Status.TIMEOUT else "")

    def _end_by_failure(
        self, samples: Sequence[Sample], error: InferenceFailedError, best: Outcome | None
    ) -> SearchJobResult | UnconfirmedTrigger:
        """End a search after a failed inference: with its best triggering input, where it has one."""
        failed = self._failed(samples, error)
        if best is None or best.sample is None:
            return failed
        return _found(best, words.search_failed(failed.sample_digest, error))

    def _store_unconfirmed(self, best: Outcome | None) -> str:
        """Store the best triggering input of a search that ends with another result; return a note on it, or ""."""
        if best is None or best.sample is None:
            return ""
        digest = self.settings.sample_store.put_sample(best.sample)
        return words.FOUND_BEFORE.format(digest)

    def _confirm(self, finding: UnconfirmedTrigger) -> JobRun[SearchJobResult]:
        settings = self.settings
        found = yield from confirm(
            finding, settings.sample_store, settings.confirmations, self.counters
        )
        return self._result(**vars(found))

    def _failed(self, samples: Sequence[Sample], error: InferenceFailedError) -> SearchJobResult:
        """Keep the input on which the device can't answer, where it is known which one that is."""
        if len(samples) != 1:
            return self._result(Status.FAILED, detail=str(error))
        digest = self.settings.sample_store.put_sample(samples[0])
        return self._result(
            Status.FAILED, sample=samples[0], sample_digest=digest, detail=str(error)
        )

    def _result(self, status: Status, **found: Any) -> SearchJobResult:
        number = chain_seed(self.settings.campaign_seed, self.seed.id)
        front = self.front.points
        return SearchJobResult(
            status, seed=self.seed, chain_seed=number, counters=self.counters, front=front, **found
        )


_SAMPLES_HELD = 20

_STATUS_OF_SEED = {
    Decision.DEVIATION: Status.SEED_DEVIATES,
    Decision.NONFINITE: Status.NONFINITE,
}


def chain_seed(campaign_seed: int, seed_id: str, purpose: str = "") -> int:
    """Return the 63-bit seed of a search's random numbers: it depends on nothing but these.

    `purpose` names what else than a search draws them, which is then independent of the search.
    """
    text = f"{campaign_seed}:{seed_id}" + (f":{purpose}" if purpose else "")
    digest = hashlib.sha256(text.encode()).digest()
    return int.from_bytes(digest[:8], "big") >> 1


def _found(outcome: Outcome, detail: str = "") -> UnconfirmedTrigger:
    assert outcome.sample is not None  # noqa: S101 - the callers have checked
    return UnconfirmedTrigger(
        Status.FOUND, outcome.sample, outcome.mutations, detail, outcome.earlier
    )


def _passes(ask: Ask) -> int:
    """Return the host-only queries that a sample costs, see `Ask`."""
    if ask.joint is not None:
        return 2 * (1 + len(ask.joint.others))
    return (len(ask.classes) or 1) if ask.is_of_probe else 1


def _deviates(answer: Answer) -> bool:
    return any(outputs.decision is Decision.DEVIATION for outputs in answer.outputs)

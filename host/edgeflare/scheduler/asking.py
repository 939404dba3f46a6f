"""Passes the queries of one search on, within its budget, and counts them."""

from collections.abc import Generator, Sequence
from dataclasses import dataclass

from edgeflare.oracles import Oracle, is_below
from edgeflare.scheduler.budget import Budget, Counters
from edgeflare.scheduler.front import Front
from edgeflare.types import Answer, Ask, Decision, Outputs, Sample


class BudgetExceeded(Exception):  # noqa: N818 - no error: how a search ends
    """A query would exceed the budget of queries."""


@dataclass
class Asking:
    """Passes the queries of one search on, within its budget; counts in `counters`, fills `front`.

    `sent`: the samples of the last request, to either model or both. `meant`: inputs so far that were meant for
    both models where there is a floor; `kept`: how many of them were not sent to the device, because the original's
    margin is below the floor.
    """

    oracle: Oracle
    budget: Budget
    counters: Counters
    front: Front
    sent: Sequence[Sample] = ()
    meant: int = 0
    kept: int = 0

    @property
    def starved(self) -> str:
        """A warning where the margin floor held back most inputs from the device; else empty."""
        if 2 * self.kept <= self.meant:
            return ""
        return (
            f"{self.kept:,} of {self.meant:,} inputs were below the margin floor of {self.oracle.floor:g}, so that the "
            "device was not asked about them; a lower --margin-floor lets them count"
        )

    def ask(self, ask: Ask) -> Generator[Ask, Answer, Answer]:
        """Yield the requests that an `Ask` of the strategy needs; return the answer for the strategy.

        With a floor, inputs meant for both models are given to the original first, and those on which its
        margin is below the floor are not sent to the device. Raises BudgetExceeded, InferenceFailedError.
        """
        self.sent = ask.samples
        if ask.of == "original":
            self._pay_host(len(ask.samples))
            return (yield ask)
        if ask.of == "both" and self.oracle.floor > 0:
            return (yield from self._above_floor(ask))
        begin = self.counters.search
        self._pay(len(ask.samples))
        answer = yield ask
        for number, (sample, outputs) in enumerate(
            zip(ask.samples, answer.outputs, strict=True), start=begin + 1
        ):
            self.front.meet(sample, outputs, number)
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
            if one is not None and not is_below(self.oracle.floor, one)
        ]
        self.meant += len(ask.samples)
        self.kept += len(ask.samples) - len(places)
        self.counters.host_only += len(ask.samples) - len(places)
        self._pay_host(0)
        if not places:
            return Answer(outputs)
        begin = self.counters.search
        self._pay(len(places))
        self.sent = tuple(ask.samples[place] for place in places)
        answer = yield Ask(self.sent, "deployed")
        for number, (place, theirs) in enumerate(
            zip(places, answer.outputs, strict=True), start=begin + 1
        ):
            original, deployed = known[place], theirs.deployed
            assert original is not None  # noqa: S101 - both were asked
            assert deployed is not None  # noqa: S101
            decision = self.oracle.decide(original, deployed)
            outputs[place] = Outputs(original, deployed, decision)
            self.front.meet(ask.samples[place], outputs[place], number)
        return Answer(outputs)

    def _pay(self, count: int) -> None:
        """Count a request to the device."""
        limit = self.budget.queries
        if limit is not None and self.counters.search + count > limit:
            raise BudgetExceeded
        self.counters.search += count
        self.counters.round_trips += 1

    def _pay_host(self, count: int) -> None:
        limit = self.budget.host_queries
        if limit is not None and self.counters.host_only + count > limit:
            raise BudgetExceeded
        self.counters.host_only += count

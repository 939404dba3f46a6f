"""The survey from one seed as a job: both models are asked, and every deviation is confirmed."""

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from edgeflare.answers.oracles import Oracle, is_sure_of_difference
from edgeflare.errors import EdgeFlareError, InferenceFailedError, StrategyError
from edgeflare.scheduler.confirmation import SampleStore, UnconfirmedTrigger, confirm
from edgeflare.scheduler.job import Counters, JobRun
from edgeflare.survey.sampling import Surveyed, SurveyPlan
from edgeflare.types import Answer, Ask, Decision, Status
from edgeflare.words import search as words

K = TypeVar("K")

_KIND = {Decision.DEVIATION: Status.FOUND, Decision.NONFINITE: Status.NONFINITE}


@dataclass(frozen=True, eq=False)
class SurveyAnswer:
    """Both models' answers to one input, decided and confirmed.

    `confirmed` counts the repetitions that gave the same decision; `is_confident` holds where a
    deviation, or NaN or infinity in the deployed model's answer, was repeated as often as wanted.
    """

    input: Surveyed
    decision: Decision
    confirmed: int = 0
    is_confident: bool = False
    detail: str = ""


@dataclass(frozen=True, eq=False)
class SurveyResult(Generic[K]):
    """The result of a survey from one seed, which `key` identifies for the caller.

    `detail` says why the original can't answer on the inputs, where it can't.
    """

    key: K
    counters: Counters
    answers: Sequence[SurveyAnswer]
    detail: str = ""


@dataclass
class SurveyJob(Generic[K]):
    """One survey in flight; a `Job`. `plan` makes its queries, anew where the job starts again.

    It asks about `inputs` inputs at most. A deviation of which the original isn't `sure` (see
    `is_sure_of_difference`) is none. `held_bytes` are those of the inputs that it has in
    memory at a time, at most.
    """

    key: K
    plan: Callable[[], SurveyPlan]
    oracle: Oracle
    confirmations: int
    sample_store: SampleStore
    inputs: int = 1
    sure: float = 0.0
    held_bytes: int = 0
    row: int | None = None
    counters: Counters = field(default_factory=Counters)
    seconds_count: bool = False

    @property
    def most_queries(self) -> int:
        """Every input, and the repetitions where all of them are findings."""
        return self.inputs * (1 + self.confirmations)

    def run(self) -> JobRun[SurveyResult[K]]:
        """Ask, decide and confirm: yield requests, return the result."""
        self.counters = Counters()
        plan = self.plan()
        try:
            inputs = yield from self._asked(plan)
        except InferenceFailedError as error:  # the original's: of the deployed model the plan's
            return SurveyResult(self.key, self.counters, (), str(error))
        finally:
            plan.close()
        answers = []
        for one in inputs:
            answers.append((yield from self._decided(one)))  # noqa: PERF401 - no yield there
        return SurveyResult(self.key, self.counters, answers)

    def _asked(self, plan: SurveyPlan) -> Generator[Ask, Answer, Sequence[Surveyed]]:
        """Pass a plan's queries on, and count them."""
        answer: Answer | None = None
        failure: InferenceFailedError | None = None
        while True:
            try:
                if failure is not None:
                    ask = plan.throw(failure)
                else:
                    ask = next(plan) if answer is None else plan.send(answer)
            except StopIteration as stop:
                inputs: Sequence[Surveyed] = stop.value
                return inputs
            except EdgeFlareError:
                raise
            except Exception as error:
                raise StrategyError(
                    f"the survey failed in one of its families: {type(error).__name__}: {error}"
                ) from error
            if ask.of == "original":
                self.counters.host_only += len(ask.samples)
            else:
                self.counters.survey += len(ask.samples)
                self.counters.round_trips += 1
            failure = None
            try:
                answer = yield ask
            except InferenceFailedError as error:
                failure = error

    def _decided(self, one: Surveyed) -> Generator[Ask, Answer, SurveyAnswer]:
        """Decide on one input; repeat the query where it is a finding."""
        if one.deployed is None:
            return SurveyAnswer(one, Decision.UNDECIDED, detail=one.failure)
        decision = self.oracle.decide(one.original, one.deployed)
        if decision is Decision.DEVIATION and not is_sure_of_difference(
            one.original, one.deployed, self.sure
        ):
            decision = Decision.BELOW_FLOOR
        kind = _KIND.get(decision)
        if kind is None:
            return SurveyAnswer(one, decision)
        found = yield from confirm(
            UnconfirmedTrigger(kind, one.sample, deployed=one.deployed),
            self.sample_store,
            self.confirmations,
            self.counters,
        )
        repeated = found.status is kind
        detail = found.detail or ("" if repeated else words.DID_NOT_REPEAT)
        return SurveyAnswer(one, decision, found.confirmed, repeated, detail)

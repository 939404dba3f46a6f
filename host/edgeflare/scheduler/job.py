"""A job: a generator of requests to the models that returns a result. And queues of jobs."""

from collections.abc import Generator, Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any, Generic, Literal, NamedTuple, Protocol, TypeAlias, TypeVar

from edgeflare.answers.oracles import Oracle
from edgeflare.errors import InferenceFailedError
from edgeflare.types import Answer, Ask, Decision, Output, Outputs, Sample


class Budget(NamedTuple):
    """Limits of the search from one seed.

    `queries`: search queries; `host_queries`: inputs given to the original alone (one request of
    inputs below the oracle's floor may exceed it); results within these two don't depend on speed.
    `seconds`: time of this search alone: its own steps, as processor time; the original, as
    processor time where it has one thread on the CPU, else as wall time; the deployed model, as
    wall time on the device. Link and queues don't count. None: no limit.

    Differences: DFLARE's 180 seconds are wall time, of a search that has the machine to itself.
    """

    queries: int | None = 2000
    seconds: float | None = 180.0
    host_queries: int | None = 1_000_000


class FleetLimits(NamedTuple):
    """What devices are given, how much of it at once, and how long one that is away is waited for.

    One device is given `device_queries` inputs at most, all together `total_queries` (seed queries
    and measurements included): `asked` is the number of each device's earlier ones, by name. A job starts beside others only where all of them stay within the
    limits at their most; the one that a limit stops begins again in another run. A device away for
    `handover_s` gives its jobs back to a feed that it shares; with no device left for `patience_s`
    the run ends. Devices that are away are checked every `tick_s` seconds.

    `concurrency` jobs run on each device, by default as many as keep it busy. `one_trip` is for
    devices with very slow round trips, or that take batches only: up to 512 jobs run on each (or
    `concurrency`), and when all of them wait for the device their queries go out in one request
    (several above 2048 samples or 32 MiB). All devices' jobs hold at most 256 MiB, a search about 20
    times its seed's sample, but at least 16 run on each. Each sample is still inferred alone, and
    results stay the same.
    """

    device_queries: int | None = None
    total_queries: int | None = None
    handover_s: float = 30.0
    patience_s: float = 600.0
    asked: Mapping[str, int] = {}
    concurrency: int | None = None
    one_trip: bool = False
    tick_s: float = 0.5


@dataclass
class Counters:
    """Five of the six kinds of query, and the seconds as `Budget` counts them.

    Queries that measure devices, the sixth kind, belong to no search.

    A query is one input given to both models (or to the device alone). `survey` counts those of a
    survey, far from the seeds. `host_only` counts inputs given to the original alone, a gradient
    as `Ask` has it. `round_trips`
    counts the search's requests to the device, each of one or more inputs. `device_seconds` is the
    devices' own part of all time.
    """

    seed: int = 0
    survey: int = 0
    search: int = 0
    confirmation: int = 0
    host_only: int = 0
    round_trips: int = 0
    seconds: float = 0.0
    device_seconds: float = 0.0


R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)


class Turn(Future[None]):
    """A future that a job yields and that another job settles: no batch waits for it meanwhile."""


JobRun: TypeAlias = Generator["Ask | Future[Any]", Answer, R]
"""Yields requests, is sent the answers, returns the result.

It may also yield a future, to go on once that is settled; it is sent an answer without outputs then.
`InferenceFailedError` is thrown into it where the device or the original can't answer on an input.
"""


def answer_of(
    ask: Ask,
    original: Sequence[Any] | None,
    deployed: Sequence[Output] | None,
    oracle: Oracle,
) -> Answer:
    """Return the answer to a request, of the answers of each model that was asked.

    `original`: what the probe answered, where the request asks one.
    """
    if ask.is_of_probe:
        nothing = [Outputs(None, None, Decision.UNDECIDED)] * len(ask.samples)
        probed = original or ()
        if ask.joint is None:
            return Answer(nothing, gradients=probed, probed=probed)
        return Answer(nothing, joint=probed, probed=probed)
    outputs = []
    for index in range(len(ask.samples)):
        first = None if original is None else original[index]
        second = None if deployed is None else deployed[index]
        decision = (
            Decision.UNDECIDED if first is None or second is None else oracle.decide(first, second)
        )
        outputs.append(Outputs(first, second, decision))
    return Answer(outputs)


class Job(Protocol[R_co]):
    """One piece of work for one device; touched by one worker at a time.

    `seconds_count` says whether time spent now goes to ``counters.seconds``. `held_bytes` estimates
    its memory while it waits for a device. `most_queries`: how many inputs it gives to the device
    at most; None: nobody knows. `row`: that of its seed in the arrays of the models' other inputs
    (see `edgeflare.types.SampleWithRow`); None where they have none for each seed.
    """

    counters: Counters
    seconds_count: bool

    @property
    def row(self) -> int | None: ...  # noqa: D102

    @property
    def most_queries(self) -> int | None: ...  # noqa: D102

    @property
    def held_bytes(self) -> int: ...  # noqa: D102

    def run(self) -> JobRun[R_co]:
        """Start, or start again: a job that was moved to another device begins anew."""
        ...


class Feed(Generic[R]):
    """An ordered queue of jobs that devices share; jobs given back come first. For one thread."""

    def __init__(self, jobs: Iterator[Job[R]]) -> None:
        self._jobs = jobs
        self._returned: list[Job[R]] = []
        self._dry = False

    def take(self) -> Job[R] | None:
        """Return the next job, or None."""
        if self._returned:
            return self._returned.pop(0)
        job = None if self._dry else next(self._jobs, None)
        self._dry = self._dry or job is None
        return job

    def give_back(self, job: Job[R]) -> None:
        """Return an unfinished job to the queue."""
        self._returned.append(job)

    @property
    def next(self) -> Job[R] | None:
        """The job that `take` would return; may take one from the iterator."""
        if not self._returned and (job := self.take()) is not None:
            self._returned.append(job)
        return self._returned[0] if self._returned else None

    @property
    def left(self) -> bool:
        """Whether there is another job."""
        return self.next is not None


K = TypeVar("K")


@dataclass(frozen=True)
class SingleQueryResult(Generic[K]):
    """The result of a single query: its `key`, the outputs, and the device's own seconds.

    `outputs` is None where the device can't answer on this input; `detail` says why then.
    """

    key: K
    outputs: Outputs | None
    seconds: float
    detail: str = ""


@dataclass
class SingleQueryJob(Generic[K]):
    """Queries the models on one sample; `key` identifies it for the caller."""

    key: K
    sample: Sample
    of: Literal["deployed", "both"] = "both"
    row: int | None = None
    counters: Counters = field(default_factory=Counters)
    seconds_count: bool = False

    @property
    def most_queries(self) -> int:
        """One."""
        return 1

    @property
    def held_bytes(self) -> int:
        """Twice the sample: it is held here and in the request."""
        return 2 * self.sample.nbytes

    def run(self) -> Generator[Ask, Answer, SingleQueryResult[K]]:
        """Query once; return the result."""
        self.counters = Counters()
        try:
            answer = yield Ask((self.sample,), self.of)
        except InferenceFailedError as error:
            return SingleQueryResult(self.key, None, self.counters.device_seconds, str(error))
        return SingleQueryResult(self.key, answer.outputs[0], self.counters.device_seconds)

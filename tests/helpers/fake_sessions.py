"""Device sessions without a device: a test says what they answer, and when they fail."""

import random
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from typing import Any, NamedTuple

import numpy as np

from edgeflare.devices import LoadedModel, Reply
from edgeflare.devices.health import Health
from edgeflare.devices.steady import SteadySession, Task
from edgeflare.errors import DeviceError, EdgeFlareError
from edgeflare.types import Sample
from edgeflare_agent.image_spec import InputSpec

FINGERPRINT = {"board": "Pi 4", "kernel": "6.1", "runtime": {"name": "onnx", "threads": 1}}
MODEL = LoadedModel((), (), {"name": "onnx"}, {})
SPEC = InputSpec(shape=(1, 4, 4, 1), dtype="float32", size=(4, 4), channels=1)


def sample(value: int) -> Sample:
    """A sample that stands for this value."""
    return np.array([value])


def reply_to(samples: Sequence[Sample]) -> Reply:
    """The right answer: each value, negative."""
    return Reply([-one for one in samples], [0.01] * len(samples))


class Asked(NamedTuple):
    samples: Sequence[Sample]
    future: "Future[Reply]"

    @property
    def value(self) -> int:
        return int(self.samples[0][0])


class FakeSession:
    """Stands in for `edgeflare.devices.DeviceSession`; `pending` requests wait for the test to answer."""

    def __init__(
        self,
        fingerprint: dict[str, Any] = FINGERPRINT,
        *,
        configuring: Exception | None = None,
        fails_after: tuple[int, EdgeFlareError] | None = None,
    ) -> None:
        self.name = "pi4"
        self.device: dict[str, Any] = {"board": "Pi 4"}
        self.model = MODEL
        self.fingerprint = fingerprint
        self.window = 4
        self._health = Health()
        self._on_health: Callable[[Health], None] = lambda _: None
        self.failure: EdgeFlareError | None = None
        self.configurations: list[tuple[InputSpec, str | None]] = []
        self.decoders: list[Mapping[str, Any] | None] = []
        self.submitted: list[int] = []
        self.pending: list[Asked] = []
        self.closed = False
        self.configuring = configuring
        self.fails_after = fails_after
        self.before_submit: Callable[[Sequence[Sample]], None] = lambda _: None
        self._callbacks: list[Callable[[EdgeFlareError], None]] = []
        self._lock = threading.Lock()

    @property
    def in_flight(self) -> int:
        return min(self.window, len(self.pending))

    @property
    def health(self) -> Health:
        return self._health

    @health.setter
    def health(self, health: Health) -> None:
        self._health = health
        self._on_health(health)

    def on_health(self, callback: Callable[[Health], None]) -> None:
        self._on_health = callback
        callback(self._health)

    def on_failure(self, callback: Callable[[EdgeFlareError], None]) -> None:
        with self._lock:
            self._callbacks.append(callback)
            failure = self.failure
        if failure is not None:
            callback(failure)

    def configure(
        self, spec: InputSpec, output: str | None, decoder: Mapping[str, Any] | None = None
    ) -> None:
        if self.configuring is not None:
            raise self.configuring
        self.configurations.append((spec, output))
        self.decoders.append(decoder)

    def submit(self, samples: Sequence[Sample]) -> "Future[Reply]":
        self.before_submit(samples)
        asked = Asked(samples, Future())
        with self._lock:
            failure = DeviceError("closed") if self.closed else self.failure
            if failure is None:
                self.pending.append(asked)
                self.submitted.append(asked.value)
        if failure is not None:
            asked.future.set_exception(failure)
        elif self.fails_after is not None and len(self.submitted) == self.fails_after[0]:
            self.fail(self.fails_after[1])
        return asked.future

    def answer(self, index: int = 0) -> None:
        """Answer the request that has waited longest, or another."""
        with self._lock:
            asked = self.pending.pop(index)
        asked.future.set_result(reply_to(asked.samples))

    def refuse(self, error: EdgeFlareError, index: int = 0) -> None:
        """Answer a request with an error of its own."""
        with self._lock:
            asked = self.pending.pop(index)
        asked.future.set_exception(error)

    def fail(self, error: EdgeFlareError, *, replies: int = 0, quietly: bool = False) -> None:
        """End; so many requests are answered still, in the midst of it.

        `quietly`: the first request fails before the failure is known.
        """
        if quietly and self.pending:
            self.refuse(error)
        with self._lock:
            if self.failure is not None:
                return
            self.failure = error
            callbacks, pending, self.pending = self._callbacks, self.pending, []
        for callback in callbacks:
            callback(error)
        for n, asked in enumerate(pending):
            if n < replies:
                asked.future.set_result(reply_to(asked.samples))
            else:
                asked.future.set_exception(error)

    def close(self) -> None:
        """End by this side: what is pending fails, it has not failed."""
        with self._lock:
            self.closed = True
            pending, self.pending = self.pending, []
        for asked in pending:
            asked.future.set_exception(DeviceError("the session with pi4 was closed"))


class Steps:
    """Does a steady session's work in the background when the test says so, and only then."""

    def __init__(self) -> None:
        self.tasks: list[Task] = []
        self.waits: list[float] = []

    def __call__(self, task: Task, stop: threading.Event) -> None:
        self.tasks.append(task)

    def step(self) -> None:
        """Have each task do what it does until it waits the next time."""
        for task in list(self.tasks):
            seconds = next(task, None)
            if seconds is None:
                self.tasks.remove(task)
            else:
                self.waits.append(seconds)


class Bench:
    """A steady session whose clock, background and reopening are the test's."""

    def __init__(self) -> None:
        self.now = 0.0
        self.told: list[str] = []
        self.steps = Steps()
        self.next: list[FakeSession | Exception] = []
        self.first = FakeSession()
        self.steady = SteadySession(
            self.first,
            self.reopen,
            rng=random.Random(7),
            tell=self.told.append,
            clock=lambda: self.now,
            background=self.steps,
        )

    def reopen(self) -> FakeSession:
        given = self.next.pop(0)
        if isinstance(given, Exception):
            raise given
        return given

    def come_back(self, *given: FakeSession | Exception) -> None:
        """Have the next tries end like this."""
        self.next += given
        while self.next:
            self.steps.step()
        self.steps.step()

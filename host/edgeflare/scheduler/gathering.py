"""Questions of many jobs to one device, held back until all of them wait and then sent as few requests."""

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future
from functools import partial
from typing import NamedTuple

from edgeflare.devices import Reply
from edgeflare.errors import EdgeFlareError, InferenceFailedError
from edgeflare.types import Output, Sample

MOST_SAMPLES = 2048
"""Samples in one request, so that its reply stays within the wire's bounds even with 20 000 classes."""
MOST_BYTES = 32 << 20
"""Bytes in one request: an eighth of the wire's bound on a body, and little for a device's memory."""


class Held(NamedTuple):
    """One job's question and where its answer goes."""

    samples: Sequence[Sample]
    future: "Future[Reply[Output]]"


class Gathering:
    """Holds questions and sends them together through `submit`; safe to use from several threads.

    Whoever takes a question out settles its future. What is answered, and with which error, is what the
    question alone would have met: a request on which the device can't answer is asked again, one question
    at a time. `again` is told of the samples that are sent a second time so, before they are.
    """

    def __init__(
        self,
        submit: "Callable[[Sequence[Sample]], Future[Reply[Output]]]",
        again: Callable[[Sequence[Sample]], None],
    ) -> None:
        self._submit = submit
        self._again = again
        self._held: list[Held] = []
        self._lock = threading.Lock()

    def hold(self, samples: Sequence[Sample]) -> "Future[Reply[Output]]":
        """Take a question in; its future is settled once it was sent and answered."""
        future: Future[Reply[Output]] = Future()
        with self._lock:
            self._held.append(Held(samples, future))
        return future

    @property
    def waiting(self) -> int:
        """How many questions are held."""
        return len(self._held)

    def take(self) -> list[Held]:
        """Take all questions out, in the order they came."""
        with self._lock:
            held, self._held = self._held, []
        return held

    def send(self, held: Sequence[Held]) -> None:
        """Send questions that were taken out, in as few requests as fit; waits for nothing."""
        for part in parts(held):
            self._send_as_one(part)

    def give_up(self, error: EdgeFlareError) -> None:
        """Fail the questions that are held."""
        _fail(self.take(), error)

    def _send_as_one(self, part: Sequence[Held]) -> None:
        try:
            pending = self._submit([sample for one in part for sample in one.samples])
        except BaseException as error:  # noqa: BLE001 - every job of the request is to meet it
            _fail(part, error)
            return
        pending.add_done_callback(partial(self._answered, part))

    def _answered(self, part: Sequence[Held], pending: "Future[Reply[Output]]") -> None:
        """Give every question its share of the reply (in the link's thread)."""
        error = pending.exception()
        if isinstance(error, InferenceFailedError) and len(part) > 1:
            self._again([sample for one in part for sample in one.samples])
            for one in part:
                self._send_as_one([one])
        elif error is not None:
            _fail(part, error)
        else:
            reply = pending.result()
            begin = 0
            for samples, future in part:
                end = begin + len(samples)
                future.set_result(Reply(reply.outputs[begin:end], reply.seconds[begin:end]))
                begin = end


def parts(
    held: Iterable[Held], most_samples: int = MOST_SAMPLES, most_bytes: int = MOST_BYTES
) -> Iterator[list[Held]]:
    """Divide questions, in their order, into requests within both limits.

    A question is never divided; one that is over a limit by itself has a request of its own.
    """
    part: list[Held] = []
    samples = size = 0
    for one in held:
        more = sum(sample.nbytes for sample in one.samples)
        over = samples + len(one.samples) > most_samples or size + more > most_bytes
        if part and over:
            yield part
            part, samples, size = [], 0, 0
        part.append(one)
        samples += len(one.samples)
        size += more
    if part:
        yield part


def _fail(held: Sequence[Held], error: BaseException) -> None:
    for one in held:
        one.future.set_exception(error)

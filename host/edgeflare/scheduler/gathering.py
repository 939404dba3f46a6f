"""Combines the requests of many jobs to one device into a few large ones."""

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
    """One job's request and the future of its reply."""

    samples: Sequence[Sample]
    future: "Future[Reply[Output]]"


class Gathering:
    """Collects requests and sends them together through `submit`; safe to use from several threads.

    The caller of `take` must settle the futures it gets, by `send`. Replies and errors are those that each
    request would have alone: if the device can't answer a combined request, its parts are sent again one by one, and
    `on_resend` is called with those samples first, to count them.
    """

    def __init__(
        self,
        submit: "Callable[[Sequence[Sample]], Future[Reply[Output]]]",
        on_resend: Callable[[Sequence[Sample]], None],
    ) -> None:
        self._submit = submit
        self._on_resend = on_resend
        self._held: list[Held] = []
        self._lock = threading.Lock()

    def add(self, samples: Sequence[Sample]) -> "Future[Reply[Output]]":
        """Add a request; return the future of its reply."""
        future: Future[Reply[Output]] = Future()
        with self._lock:
            self._held.append(Held(samples, future))
        return future

    @property
    def waiting(self) -> int:
        """Number of requests held."""
        return len(self._held)

    def take(self) -> list[Held]:
        """Remove and return all requests, in the order they came."""
        with self._lock:
            held, self._held = self._held, []
        return held

    def send(self, held: Sequence[Held]) -> None:
        """Send requests that were taken, combined into as few as fit; returns without waiting."""
        for part in parts(held):
            self._send_as_one(part)

    def give_up(self, error: EdgeFlareError) -> None:
        """Fail the requests that are held."""
        _fail(self.take(), error)

    def _send_as_one(self, part: Sequence[Held]) -> None:
        try:
            pending = self._submit([sample for one in part for sample in one.samples])
        except BaseException as error:  # noqa: BLE001 - every job of the request gets it
            _fail(part, error)
            return
        pending.add_done_callback(partial(self._answered, part))

    def _answered(self, part: Sequence[Held], pending: "Future[Reply[Output]]") -> None:
        """Give every request its share of the reply (in the link's thread)."""
        error = pending.exception()
        if isinstance(error, InferenceFailedError) and len(part) > 1:
            self._on_resend([sample for one in part for sample in one.samples])
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
    """Group requests, in their order, within both limits.

    A request is never divided; one that is over a limit by itself is a group of its own.
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

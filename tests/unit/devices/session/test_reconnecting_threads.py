"""A reconnecting session under threads and failures: each request answered once and rightly."""

import random
import threading
import time
from concurrent.futures import Future
from typing import Any

import pytest
from fake_sessions import FakeSession, sample

from edgeflare.devices import DeviceState, Reply
from edgeflare.devices.session.reconnect_policy import Backoff
from edgeflare.devices.session.reconnecting import ReconnectingSession
from edgeflare.errors import DeviceTimeoutError, EdgeFlareError, UnreachableError

REQUESTS = 120
ASKERS = 4
ERRORS = [UnreachableError("cut"), DeviceTimeoutError("silent")]


class Worked(FakeSession):
    """Answers in a thread of its own, and fails by itself after a while."""

    def __init__(self, rng: random.Random) -> None:
        super().__init__()
        self.life = rng.randint(0, 40)
        self.error: EdgeFlareError = rng.choice(ERRORS)
        self.late = rng.randint(0, 2)
        self.quietly = rng.random() < 0.3
        self.closed_ = threading.Event()
        threading.Thread(target=self.work, daemon=True).start()

    def work(self) -> None:
        while not self.closed_.is_set():
            if not self.pending:
                self.closed_.wait(0.0005)
            elif self.life == 0:
                self.fail(self.error, replies=self.late, quietly=self.quietly)
                return
            else:
                self.life -= 1
                self.answer()

    def close(self) -> None:
        self.closed_.set()
        super().close()


def seeds(few: int, all_of_them: int) -> list[Any]:
    """Return seeds of which some are in the extended tests alone."""
    more = range(few, all_of_them)
    return [*range(few), *(pytest.param(one, marks=pytest.mark.extended) for one in more)]


@pytest.mark.parametrize("seed", seeds(2, 6))
def test_every_request_is_answered_once_through_random_failures(seed: int) -> None:
    rng = random.Random(seed)
    sessions: list[Worked] = []

    def reopen() -> Worked:
        if rng.random() < 0.3:
            raise UnreachableError("off")
        sessions.append(Worked(rng))
        return sessions[-1]

    first = Worked(rng)
    reconnecting = ReconnectingSession(
        first, reopen, rng=random.Random(seed), backoff=Backoff(0.001, 0.002)
    )
    settled: dict[int, int] = {}
    answers: dict[int, Future[Reply]] = {}
    lock = threading.Lock()

    def ask(value: int) -> None:
        future = reconnecting.submit([sample(value)])
        with lock:
            answers[value] = future
        future.add_done_callback(lambda _: count(value))

    def count(value: int) -> None:
        with lock:
            settled[value] = settled.get(value, 0) + 1
        if value < REQUESTS * ASKERS:  # each asks one more when it is answered
            ask(value + REQUESTS * ASKERS)

    def asker(begin: int) -> None:
        for value in range(begin, begin + REQUESTS):
            ask(value)

    threads = [threading.Thread(target=asker, args=(n * REQUESTS,)) for n in range(ASKERS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    until = time.monotonic() + 60
    while len(settled) < 2 * REQUESTS * ASKERS and time.monotonic() < until:
        time.sleep(0.002)
    reconnecting.close()
    assert settled == dict.fromkeys(range(2 * REQUESTS * ASKERS), 1)
    assert all(int(future.result(0).outputs[0][0]) == -value for value, future in answers.items())
    assert len(sessions) > 10
    assert reconnecting.status().queries == 2 * REQUESTS * ASKERS
    for session in sessions:  # those of one asker were sent in the order they were asked
        for n in range(ASKERS):
            sent = [
                value for value in session.submitted if n * REQUESTS <= value < (n + 1) * REQUESTS
            ]
            assert sent == sorted(sent)


@pytest.mark.parametrize("seed", seeds(6, 20))
def test_close_and_withdraw_at_any_moment_leave_nothing_pending(seed: int) -> None:
    rng = random.Random(seed)
    sessions: list[Worked] = []

    def reopen() -> Worked:
        sessions.append(Worked(rng))
        return sessions[-1]

    sessions.append(Worked(rng))
    reconnecting = ReconnectingSession(
        sessions[0], reopen, rng=random.Random(seed), backoff=Backoff(0.0005, 0.0005)
    )
    futures: list[Future[Reply]] = []
    stop = threading.Event()

    def asker() -> None:
        while not stop.is_set():
            futures.append(reconnecting.submit([sample(len(futures))]))

    threads = [threading.Thread(target=asker) for _ in range(2)]
    for thread in threads:
        thread.start()
    for _ in range(5):
        time.sleep(rng.random() / 200)
        reconnecting.withdraw()
    reconnecting.close()
    futures.append(reconnecting.submit([sample(0)]))
    stop.set()
    for thread in threads:
        thread.join(60)
    assert all(future.done() for future in futures)
    assert reconnecting.state is DeviceState.RETIRED
    until = time.monotonic() + 60
    while not all(session.closed for session in sessions) and time.monotonic() < until:
        time.sleep(0.002)
    assert all(session.closed for session in sessions)

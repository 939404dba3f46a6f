"""What the agent counts, by a clock that the test sets; and readings that are always at hand."""

import threading
import time
from collections.abc import Callable

import pytest

from edgeflare_agent import server
from edgeflare_agent.server import SeenIds, WorkCounter
from edgeflare_agent.telemetry import sampler
from edgeflare_agent.telemetry.sampler import Sampler


class Clock:
    """Stands in for a module's `time`."""

    def __init__(self) -> None:
        self.now = 100.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(server, "time", made)
    monkeypatch.setattr(sampler, "time", made)
    return made


def test_busy_time_is_exact_and_counts_the_request_under_way(clock: Clock) -> None:
    counted = WorkCounter()
    for busy_s, idle_s, served in ((2.0, 0.5, True), (4.0, 0.0, False), (1.0, 8.0, True)):
        counted.begin()
        clock.now += busy_s
        counted.end(served)
        clock.now += idle_s
    assert counted.so_far() == {"uptime_s": 15.5, "busy_s": 7.0, "served": 2}
    counted.begin()
    clock.now += 0.25
    assert counted.so_far() == {"uptime_s": 15.75, "busy_s": 7.25, "served": 2}
    clock.now += 0.25
    counted.end(served=True)
    assert counted.so_far() == {"uptime_s": 16.0, "busy_s": 7.5, "served": 3}


def test_an_id_is_new_once() -> None:
    seen = SeenIds()
    assert [seen.add(id_) for id_ in (1, "1", 2, 1, "1", 3)] == [
        True, True, True, False, False, True,
    ]  # fmt: skip


def test_ids_are_kept_within_bounds() -> None:
    seen = SeenIds(most=3)
    assert all(seen.add(number) for number in range(100))
    assert not any(seen.add(number) for number in (97, 98, 99))
    assert seen.add(96)


def until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 120
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.002)


def test_a_reading_is_at_hand_while_a_sensor_hangs(clock: Clock) -> None:
    answers = threading.Semaphore(0)
    asked: list[int] = []

    def read() -> dict[str, int]:
        asked.append(1)
        answers.acquire()
        return {"reading": len(asked)}

    found = Sampler(read, {"reading": 0})
    threading.Thread(target=found.run, daemon=True).start()
    until(lambda: len(asked) == 1)
    assert found.latest() == {"reading": 0}
    answers.release()
    until(lambda: found.latest() == {"reading": 1})
    # A reading that was asked for while the first was under way may be taken, too.
    answers.release()
    clock.now += sampler.FRESH_S
    until(lambda: found.latest() == {"reading": 2})


def test_sensors_are_left_alone_while_a_reading_is_fresh(clock: Clock) -> None:
    asked: list[int] = []

    def read() -> dict[str, int]:
        asked.append(1)
        return {"reading": len(asked)}

    found = Sampler(read, {"reading": 0})
    threading.Thread(target=found.run, daemon=True).start()
    until(lambda: found._read_at == clock.now)
    clock.now += sampler.FRESH_S / 2
    for _ in range(1000):
        assert found.latest() == {"reading": 1}
    clock.now += sampler.FRESH_S / 2
    found.latest()
    until(lambda: found._read_at == clock.now)
    assert found.latest() == {"reading": 2}

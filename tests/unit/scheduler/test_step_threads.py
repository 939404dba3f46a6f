"""The scheduler's threads: the order of steps, gathered requests, and that nothing waits in vain."""

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import NamedTuple

import numpy as np
import pytest

from edgeflare.scheduler.step_threads import StepThreads
from edgeflare.types import Sample

PATIENCE_S = 20.0
BLACK = np.zeros((1, 1, 1), np.uint8)


class Request(NamedTuple):
    """A request for the original."""

    name: int
    samples: Sequence[Sample] = (BLACK,)


@contextmanager
def step_threads(
    count: int, ask: Callable[[Sequence[Request]], float] = lambda _: 0.0
) -> Iterator[StepThreads[Request]]:
    threads = StepThreads(count, ask)
    try:
        yield threads
    finally:
        threads.end(drop=True, patience_s=PATIENCE_S)


def quick(action: Callable[[], object]) -> Callable[[], float]:
    """Return a step that says that it took no time."""

    def step() -> float:
        action()
        return 0.0

    return step


@pytest.mark.parametrize("kind", ["step", "request"])
def test_a_step_is_done_beside_one_that_blocks_after_many_quick_ones(kind: str) -> None:
    done, warm, blocked = threading.Event(), threading.Event(), threading.Event()
    left = iter(range(200, -1, -1))

    def ask(requests: Sequence[Request]) -> float:
        done.set()
        return 0.0

    def one_of_many() -> None:
        if next(left):
            threads.run(0, quick(one_of_many))
        else:
            warm.set()

    def block() -> None:
        blocked.set()
        done.wait(PATIENCE_S)

    with step_threads(2, ask) as threads:
        threads.run(0, quick(one_of_many))
        assert warm.wait(PATIENCE_S)
        threads.run(0, quick(block))
        assert blocked.wait(PATIENCE_S)
        if kind == "step":
            threads.run(1, quick(done.set))
        else:
            threads.ask(1, Request(1))
        for _ in range(1000):
            threads.unblock()
            if done.wait(0.005):
                break
        assert done.is_set()


def test_the_lowest_number_goes_first_and_quick_answers_are_gathered() -> None:
    begun, finished = threading.Event(), threading.Event()
    batches: list[list[int]] = []

    def ask(requests: Sequence[Request]) -> float:
        batches.append([one.name for one in requests])
        if sum(map(len, batches)) == 200:
            finished.set()
        return 1e-6

    with step_threads(1, ask) as threads:
        threads.run(0, quick(lambda: begun.wait(PATIENCE_S)))
        for name in reversed(range(200)):
            threads.ask(name, Request(name))
        begun.set()
        assert finished.wait(PATIENCE_S)
    assert [name for batch in batches for name in batch] == list(range(200))
    assert max(map(len, batches)) > 1


def test_a_slow_original_is_asked_about_each_alone() -> None:
    finished = threading.Event()
    sizes: list[int] = []

    def ask(requests: Sequence[Request]) -> float:
        sizes.append(len(requests))
        if len(sizes) == 20:
            finished.set()
        return 1.0

    with step_threads(2, ask) as threads:
        for name in range(20):
            threads.ask(name, Request(name))
        assert finished.wait(PATIENCE_S)
    assert set(sizes) == {1}


def test_ending_does_all_that_waits_and_dropping_does_not() -> None:
    begun, go = threading.Event(), threading.Event()
    done: list[int] = []

    def first() -> None:
        begun.set()
        go.wait(PATIENCE_S)

    for drop, expected in ((False, [1, 2]), (True, [])):
        done.clear()
        begun.clear()
        go.clear()
        threads: StepThreads[Request] = StepThreads(1, lambda _: 0.0)
        threads.run(0, quick(first))
        assert begun.wait(PATIENCE_S)
        for number in (1, 2):
            threads.run(number, quick(partial(done.append, number)))
        threading.Timer(0.05, go.set).start()
        threads.end(drop=drop, patience_s=PATIENCE_S)
        assert done == expected

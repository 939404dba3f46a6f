"""Devices that answer in each other's place are one kind, to the last bit."""

from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Any

import numpy as np
import pytest
from fake_sessions import FINGERPRINT, sample

from edgeflare.devices import Reply
from edgeflare.devices.equivalence import check_equivalent
from edgeflare.errors import DeviceAwayError, InferenceFailedError, UsageError
from edgeflare.types import Sample
from edgeflare_agent.decoding import Decoded

PROBES = [sample(n) for n in range(5)]


class Board:
    """Answers at once, with what `infer` gives."""

    def __init__(
        self,
        name: str,
        infer: Callable[[Sample], Any] = lambda one: one / np.float32(3),
        fingerprint: dict[str, Any] = FINGERPRINT,
    ) -> None:
        self.name = name
        self.fingerprint = fingerprint
        self.infer = infer

    def submit(self, samples: Sequence[Sample]) -> "Future[Reply]":
        future: Future[Reply] = Future()
        try:
            future.set_result(Reply([self.infer(one) for one in samples], [0.0] * len(samples)))
        except InferenceFailedError as error:
            future.set_exception(error)
        return future


def test_equal_devices_are_alike() -> None:
    check_equivalent([Board("one"), Board("two"), Board("three")], PROBES)
    check_equivalent(
        [Board("one", lambda one: one * np.nan), Board("two", lambda one: one * np.nan)], PROBES
    )
    check_equivalent([Board("one")], PROBES)
    check_equivalent([], PROBES)


def test_transcripts_are_alike_by_their_words_and_their_scores() -> None:
    def heard(word: str, score: float) -> Callable[[Sample], Any]:
        return lambda _: Decoded((word,), np.array([[score, 0.25]]))

    check_equivalent([Board("one", heard("a", 0.5)), Board("two", heard("a", 0.5))], PROBES)
    for other in (heard("b", 0.5), heard("a", 0.75)):
        with pytest.raises(UsageError, match="5 probes"):
            check_equivalent([Board("one", heard("a", 0.5)), Board("two", other)], PROBES)


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"board": "Pi 5"}, "is 'Pi"),
        ({"runtime": {"name": "onnx", "threads": 2}}, r"runtime\.threads"),
        ({"soc": "BCM"}, "and 'BCM'"),
        ({"board": 1, "kernel": 2, "soc": 3, "os": 4}, "soc is"),
    ],
)
def test_field_that_differs_is_named_with_the_devices(change: dict[str, Any], named: str) -> None:
    other = Board("three", fingerprint={**FINGERPRINT, **change})
    with pytest.raises(UsageError, match=named) as caught:
        check_equivalent([Board("one"), Board("two"), other], PROBES)
    assert "one and three" in str(caught.value)


@pytest.mark.parametrize(
    "infer",
    [
        lambda one: (
            np.nextafter(one / np.float32(3), np.inf) if one[0] == 3 else one / np.float32(3)
        ),
        lambda one: -(one * 0.0) if one[0] == 3 else one / np.float32(3),
        lambda one: (one / np.float32(3)).astype("f4") if one[0] == 3 else one / np.float32(3),
        lambda one: (one / np.float32(3)).reshape(1, 1) if one[0] == 3 else one / np.float32(3),
    ],
)
def test_outputs_that_differ_by_one_bit_are_not_alike(infer: Callable[[Sample], Any]) -> None:
    with pytest.raises(UsageError, match="5 probes"):
        check_equivalent([Board("one"), Board("two", infer)], PROBES)


def test_device_that_can_not_answer_a_probe_says_so() -> None:
    def refuse(_: Sample) -> Any:
        raise InferenceFailedError("two: the runtime says no")

    with pytest.raises(InferenceFailedError, match="runtime says"):
        check_equivalent([Board("one"), Board("two", refuse)], PROBES)


def test_device_that_never_answers_is_given_up() -> None:
    class Silent(Board):
        def submit(self, samples: Sequence[Sample]) -> "Future[Reply]":
            return Future()

    with pytest.raises(DeviceAwayError, match="answer 5"):
        check_equivalent([Board("one"), Silent("two")], PROBES, timeout_s=0.01)

"""What a device's class indices become on their way to whoever asked."""

import random
from collections.abc import Sequence
from concurrent.futures import Future

import numpy as np
import pytest
from fake_sessions import FakeSession, Steps

from edgeflare.devices import ReconnectingSession, Reply
from edgeflare.errors import ModelError
from edgeflare.models import OutputReader
from edgeflare.types import Sample
from edgeflare_agent.image_spec import TensorInfo

SAMPLE = np.zeros((2, 2, 1), np.uint8)


class Indices(FakeSession):
    """A device that answers each request at once with the same class index."""

    def __init__(self, index: int) -> None:
        super().__init__()
        self.index = index

    def submit(self, samples: Sequence[Sample]) -> "Future[Reply]":
        answered: Future[Reply] = Future()
        outputs = [np.array([self.index]) for _ in samples]
        answered.set_result(Reply(outputs, [0.5] * len(samples)))
        return answered


def deployed(index: int) -> ReconnectingSession:
    device = Indices(index)
    reconnecting = ReconnectingSession(
        device, lambda: device, rng=random.Random(1), background=Steps()
    )
    reader = OutputReader(TensorInfo("label", (1,), "int64"), "label", 3)
    reconnecting.read_with(reader.read)
    return reconnecting


def test_each_sample_has_scores_of_its_own() -> None:
    reply = deployed(2).submit([SAMPLE, SAMPLE]).result(timeout=5)
    assert [scores.tolist() for scores in reply.outputs] == [[0, 0, 1]] * 2
    assert reply.seconds == [0.5, 0.5]


def test_an_index_out_of_range_ends_the_request_with_a_sentence_of_its_own() -> None:
    with pytest.raises(ModelError, match="class 3"):
        deployed(3).submit([SAMPLE]).result(timeout=5)

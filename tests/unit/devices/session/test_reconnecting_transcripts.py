"""A speech recogniser's decoder over lost connections."""

import random

from fake_sessions import SPEC, FakeSession, Steps

from edgeflare.devices.session.reconnect_policy import Backoff
from edgeflare.devices.session.reconnecting import ReconnectingSession
from edgeflare.errors import AgentDiedError

DECODER = {"kind": "ctc", "vocabulary": ["_", "a"]}


def test_a_device_that_comes_back_decodes_as_before() -> None:
    first, second = FakeSession(), FakeSession()
    steps = Steps()
    reconnecting = ReconnectingSession(
        first, lambda: second, rng=random.Random(1), backoff=Backoff(), background=steps
    )
    reconnecting.configure(SPEC, "logits", DECODER)
    first.fail(AgentDiedError("the agent on pi4 died"))
    for task in list(steps.tasks):
        for _ in task:
            pass
    reconnecting.close()
    assert first.decoders == second.decoders == [DECODER]
    assert second.configurations == [(SPEC, "logits")]

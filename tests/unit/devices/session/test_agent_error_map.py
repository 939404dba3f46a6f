"""Every error that the agent can report has its class on the host; every ending its sentence."""

import pytest

from edgeflare.devices.session.agent_errors import MAPPED, died_error, reported_error
from edgeflare.errors import (
    DeviceBusyError,
    DeviceError,
    DeviceRuntimeError,
    EdgeFlareError,
    InferenceFailedError,
    ModelError,
    UsageError,
)
from edgeflare_agent import errors, wire


def _codes(kind: type[errors.AgentError]) -> set[str]:
    return {kind.code}.union(*(_codes(sub) for sub in kind.__subclasses__()))


def test_map_holds_every_code_of_the_agent_and_no_other() -> None:
    assert wire.EndOfStreamError.code in _codes(errors.AgentError)
    assert MAPPED.keys() == _codes(errors.AgentError)


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        ("bad-model", ModelError),
        ("no-runtime", DeviceRuntimeError),
        ("numpy-clash", DeviceRuntimeError),
        ("bad-request", UsageError),
        ("inference", InferenceFailedError),
        ("busy", DeviceBusyError),
        ("internal", DeviceError),
        ("a-code-of-tomorrow", DeviceError),
    ],
)
def test_reported_error_has_device_and_message(code: str, kind: type[EdgeFlareError]) -> None:
    error = reported_error("pi4", code, "it broke")
    assert type(error) is kind
    assert str(error) == "pi4: it broke"


@pytest.mark.parametrize(
    ("status", "words"),
    [
        (None, "was the link cut"),
        (-1, "ended without a status"),
        (-9, "SIGKILL: perhaps the device ran out of memory"),
        (137, "SIGKILL: perhaps the device ran out of memory"),
        (132, "SIGILL: the runtime was built for another CPU"),
        (-11, "SIGSEGV"),
        (-63, "signal 63"),
        (1, "ended with exit status 1"),
        (255, "ended with exit status 255"),
        (127, "there is no such Python command"),
    ],
)
def test_every_way_to_end_has_its_words(status: int | None, words: str) -> None:
    assert words in str(died_error("pi4", status, []))

"""Every error that the agent can report has its class on the host; every ending its sentence."""

import pytest

from edgeflare.devices.session.agent_errors import MAPPED, reported_error
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
        ("bad-model", ModelError), ("no-runtime", DeviceRuntimeError),
        ("numpy-clash", DeviceRuntimeError), ("bad-request", UsageError),
        ("inference", InferenceFailedError), ("busy", DeviceBusyError), ("internal", DeviceError),
        ("a-code-of-tomorrow", DeviceError),
    ],
)  # fmt: skip
def test_reported_error_has_device_and_message(code: str, kind: type[EdgeFlareError]) -> None:
    error = reported_error("pi4", code, "it broke")
    assert type(error) is kind
    assert str(error) == "pi4: it broke"

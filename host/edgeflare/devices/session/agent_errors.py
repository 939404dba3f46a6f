"""Maps the agent's errors and exit statuses to the host's errors."""

import signal
from collections.abc import Sequence

from edgeflare.errors import (
    AgentCrashedError,
    AgentDiedError,
    DeviceBusyError,
    DeviceError,
    DeviceProtocolError,
    DeviceRuntimeError,
    DeviceTimeoutError,
    EdgeFlareError,
    InferenceFailedError,
    InferenceTimeoutError,
    ModelError,
    UsageError,
)
from edgeflare_agent import connection, wire
from edgeflare_agent import errors as agent
from edgeflare_agent.__main__ import EXIT_NO_NUMPY, EXIT_OLD_PYTHON
from edgeflare_agent.wire import VERSION, Kind

MAPPED: dict[str, type[EdgeFlareError]] = {
    agent.AgentError.code: DeviceError,
    agent.ProtocolError.code: DeviceProtocolError,
    wire.EndOfStreamError.code: DeviceProtocolError,
    agent.RequestError.code: UsageError,
    agent.ModelError.code: ModelError,
    agent.RuntimeMissingError.code: DeviceRuntimeError,
    agent.NumpyClashError.code: DeviceRuntimeError,
    agent.InferenceError.code: InferenceFailedError,
    agent.BusyError.code: DeviceBusyError,
}
"""The code of an ERROR frame -> the host's error."""

_BY_SIGNAL = {
    signal.SIGKILL: "perhaps the device ran out of memory",
    signal.SIGILL: "the runtime was built for another CPU",
    signal.SIGSEGV: "the runtime crashed; try other runtime options or another version of it",
    signal.SIGABRT: "the runtime gave up; try other runtime options or another version of it",
    signal.SIGTERM: "somebody or the system ended it",
    signal.SIGHUP: "its login session ended",
}
_BY_STATUS = {
    0: "ended by itself",
    EXIT_OLD_PYTHON: "ended: Python on the device is older than 3.8",
    EXIT_NO_NUMPY: "ended: numpy is missing on the device",
    connection.BROKEN_STREAM: "ended: what reached it was damaged on its way, or not this "
    "program's protocol; try again, and check cable, adapter or Wi-Fi where it happens again",
    connection.LOST_HEARTBEAT: "ended: it heard nothing from this host for too long; was the host "
    "suspended, or the link cut?",
    connection.FAULT: "ended by a fault of its own",
    126: "did not start: the Python command can't be run",
    127: "did not start: there is no such Python command on the device",
    -1: "ended without a status: it was killed (perhaps the device ran out of memory)",
}
_FIRST_SHELL_SIGNAL = 128
_ORDERLY = {
    connection.DONE,
    connection.BROKEN_STREAM,
    connection.LOST_HEARTBEAT,
    *(-number for number in (signal.SIGTERM, signal.SIGHUP)),
    *(_FIRST_SHELL_SIGNAL + number for number in (signal.SIGTERM, signal.SIGHUP)),
}
_LAST_SIGNAL = 64
_WORK = {
    Kind.LOAD: "load the model",
    Kind.CONFIGURE: "take the input's description",
    Kind.LEASE: "say whether the device is free",
    Kind.STATUS: "tell how the device fares",
}


def reported_error(name: str, code: str, message: str) -> EdgeFlareError:
    """Return the host's error for the code and message of an ERROR frame."""
    return MAPPED.get(code, DeviceError)(f"{name}: {message}")


def died_error(
    name: str, status: int | None, stderr: Sequence[str], printed: Sequence[str] = ()
) -> AgentDiedError:
    """Return the error for an agent whose stream ended.

    `status` is the exit status (negative or above 128: a signal; None: it is not known), `stderr`
    its last lines there, `printed` the lines that came on stdout in place of a handshake.
    """
    crashed = status is not None and status not in _ORDERLY
    text = f"the agent on {name} {_ending(status)}"
    for what, lines in (("printed", printed), ("its last lines on stderr", stderr)):
        if lines:
            text += f"; {what}:\n" + "\n".join(f"  {line}" for line in lines)
    return (AgentCrashedError if crashed else AgentDiedError)(text)


def damage_error(name: str, why: str) -> DeviceProtocolError:
    """Return the error for bytes that are no frame, from an agent that has greeted."""
    return DeviceProtocolError(
        f"what the agent on {name} said arrived damaged: {why}; try again, and check cable, adapter "
        "or Wi-Fi where it happens again"
    )


MORE_THAN_STATED = (
    "the model returns more than its file or its runtime there states, such as where its first axis "
    "is no batch, the link changed a byte of the reply's length, or the agent was tampered with: look "
    "at the shapes of the model's outputs, and check cable, adapter or Wi-Fi if it happens now and then"
)
"""What may be wrong where a reply is longer than the announced model can have.

Its checksum isn't known: that would mean to receive it.
"""


def wrong_value_error(name: str, what: str, advice: str = "") -> DeviceProtocolError:
    """Return the error for what is no reply of this host's agent: ``FIELD = VALUE, ...``.

    A link that changes bytes is found by their checksum, so it is the device that says so; but for a
    reply that is too long to be received, of which `advice` names the link, too.
    """
    another = (
        "its agent is another version than this host's, or was tampered with: run "
        f"`edgeflare devices prune --all {name}`, so that it is put there anew"
    )
    error = DeviceProtocolError(f"the agent on {name} sent {what}; {advice or another}")
    error.may_pass = False
    return error


def no_handshake_error(name: str, why: str, printed: Sequence[str]) -> DeviceProtocolError:
    """Return the error for a stream that begins with something else than an agent's handshake."""
    instead = f"; instead came: {' | '.join(printed)}" if printed else ""
    return DeviceProtocolError(
        f"no agent answers on {name}: {why}{instead}; see what its login shell prints, and what "
        "`python` in the inventory runs"
    )


def other_version_error(name: str, version: object) -> DeviceProtocolError:
    """Return the error for an agent of another version."""
    return DeviceProtocolError(
        f"the agent on {name} speaks protocol version {version}, this host {VERSION}: it belongs "
        "to another EdgeFlare; install EdgeFlare anew on this host, then run `edgeflare devices "
        f"prune --all {name}`"
    )


def hang_error(
    name: str, kind: Kind, allowance_s: float, printed: Sequence[str]
) -> DeviceTimeoutError:
    """Return the error for an agent that works for longer on a request than it may."""
    allowed = f"within {allowance_s:g} s"
    if kind is Kind.HELLO:
        instead = f"; instead came: {' | '.join(printed)}" if printed else ""
        return DeviceTimeoutError(f"the agent on {name} did not start {allowed}{instead}")
    text = f"the agent on {name} lives, but did not {_WORK.get(kind, 'infer')} {allowed}"
    if kind is Kind.LOAD:
        text += (
            "; a large model, or an engine that TensorRT builds, takes longer: raise `timeout_s` "
            "in the device's inventory entry"
        )
    return (InferenceTimeoutError if kind is Kind.INFER else DeviceTimeoutError)(text)


def heartbeat_error(name: str, seconds: float) -> DeviceTimeoutError:
    """Return the error for a heartbeat whose answer never came."""
    return DeviceTimeoutError(
        f"the agent on {name} did not answer a heartbeat within {seconds:g} s: the link loses data "
        "or is far too slow; try again"
    )


def silence_error(name: str, seconds: float) -> DeviceTimeoutError:
    """Return the error for an agent from which nothing comes any more."""
    return DeviceTimeoutError(
        f"nothing came from the agent on {name} for {seconds:.0f} s: the device hangs or the link "
        "is cut"
    )


def _ending(status: int | None) -> str:
    if status is None:
        return "closed its stream: was the link cut or the device switched off?"
    if status in _BY_STATUS:
        return _BY_STATUS[status]
    number = -status if status < 0 else status - _FIRST_SHELL_SIGNAL
    if not 0 < number <= _LAST_SIGNAL:
        return f"ended with exit status {status}"
    known = {int(Signal): Signal for Signal in signal.Signals}
    if number not in known:
        return f"was ended by signal {number}"
    cause = _BY_SIGNAL.get(known[number])
    return f"was ended by {known[number].name}" + (f": {cause}" if cause else "")

"""What the agent reports, and how it ended, as the host's errors."""

import signal
from collections.abc import Sequence

from edgeflare.errors import (
    AgentDiedError,
    DeviceError,
    DeviceProtocolError,
    DeviceRuntimeError,
    EdgeFlareError,
    ModelError,
    UsageError,
)
from edgeflare_agent import errors as agent
from edgeflare_agent import exits, wire
from edgeflare_agent.__main__ import EXIT_NO_NUMPY, EXIT_OLD_PYTHON

MAPPED: dict[str, type[EdgeFlareError]] = {
    agent.AgentError.code: DeviceError,
    agent.ProtocolError.code: DeviceProtocolError,
    wire.EndOfStreamError.code: DeviceProtocolError,
    agent.RequestError.code: UsageError,
    agent.ModelError.code: ModelError,
    agent.RuntimeMissingError.code: DeviceRuntimeError,
    agent.NumpyClashError.code: DeviceRuntimeError,
    agent.InferenceError.code: DeviceError,
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
    exits.BROKEN_STREAM: "ended: what reached it was not this program's protocol",
    exits.LOST_HEARTBEAT: "ended: it heard nothing from this host for too long; was the host "
    "suspended, or the link cut?",
    exits.FAULT: "ended by a fault of its own",
    126: "did not start: the Python command can't be run",
    127: "did not start: there is no such Python command on the device",
    -1: "ended without a status: it was killed (perhaps the device ran out of memory) or the "
    "connection was lost",
}
_FIRST_SHELL_SIGNAL = 128
_LAST_SIGNAL = 64


def reported(name: str, code: str, message: str) -> EdgeFlareError:
    """Return the host's error for the code and message of an ERROR frame."""
    return MAPPED.get(code, DeviceError)(f"{name}: {message}")


def died(
    name: str, status: int | None, stderr: Sequence[str], printed: Sequence[str] = ()
) -> AgentDiedError:
    """Return the error for an agent whose stream ended.

    `status` is the exit status (negative or above 128: a signal; None: it is not known), `stderr` its
    last lines there, `printed` the lines that came on stdout in place of a handshake.
    """
    text = f"the agent on {name} {_ending(status)}"
    for what, lines in (("printed", printed), ("its last lines on stderr", stderr)):
        if lines:
            text += f"; {what}:\n" + "\n".join(f"  {line}" for line in lines)
    return AgentDiedError(text)


def _ending(status: int | None) -> str:
    if status is None:
        return "closed its stream: was the link cut or the device switched off?"
    if status in _BY_STATUS:
        return _BY_STATUS[status]
    number = -status if status < 0 else status - _FIRST_SHELL_SIGNAL
    if not 0 < number <= _LAST_SIGNAL:
        return f"ended with exit status {status}"
    known = {int(one): one for one in signal.Signals}
    if number not in known:
        return f"was ended by signal {number}"
    cause = _BY_SIGNAL.get(known[number])
    return f"was ended by {known[number].name}" + (f": {cause}" if cause else "")

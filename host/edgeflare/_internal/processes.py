"""How processes end that do a part of the work, and those that are run again where they were killed."""

import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

MOST_DEATHS = 3
"""So many processes in a row end at one piece of work before that is given up, as devices' agents do
(`devices.session.pending`): a single death says nothing about the work, as memory may be short."""
PAUSE_S = 1.0
"""A pause before the last attempt after a SIGKILL: memory may be short for a moment only."""

MEMORY_ADVICE = "use fewer workers (--workers), a smaller model or smaller inputs"


def described_status(status: int) -> str:
    """Return how a process ended, by its exit status as `subprocess` has it."""
    if status == -signal.SIGKILL:
        return "signal 9, as the system does when memory is short"
    if status < 0:
        return next(
            (Signal.name for Signal in signal.Signals if Signal == -status), f"signal {-status}"
        )
    return f"exit status {status}"


def python_calling(function: Callable[[str], Any], argument: str) -> list[str]:
    """Return the command of a new Python that calls a function of a module with a text.

    It finds the modules that this one finds, but for those of the folder it is started in.
    """
    module, name = function.__module__, function.__name__
    code = (
        f"import sys; sys.path[:] = sys.argv[2:]; from {module} import {name}; {name}(sys.argv[1])"
    )
    return [sys.executable, "-c", code, argument, *filter(None, sys.path)]


def run_again_where_killed(
    command: Sequence[str], timeout_s: float
) -> "subprocess.CompletedProcess[bytes]":
    """Run a command to its end; where SIGKILL ends it, again, `MOST_DEATHS` times in all.

    It reads nothing; `stdout` is all that it printed. Raises OSError, subprocess.TimeoutExpired.
    """
    for deaths in range(1, MOST_DEATHS + 1):
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=timeout_s,
            check=False,
        )
        if done.returncode != -signal.SIGKILL:
            break
        if deaths == MOST_DEATHS - 1:
            time.sleep(PAUSE_S)
    return done


def how_it_failed(done: "subprocess.CompletedProcess[bytes]") -> str:
    """Return why a command failed: what killed it, else its last line, else its exit status."""
    printed = done.stdout.decode(errors="replace").strip()
    if done.returncode == -signal.SIGKILL:
        how = described_status(done.returncode)
        return f"it was killed {MOST_DEATHS} times by {how}; free memory, or take a smaller model"
    if printed:
        return printed.splitlines()[-1]
    return f"it ended with {described_status(done.returncode)}"

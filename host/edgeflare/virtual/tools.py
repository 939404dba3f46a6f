"""Programs that are run while building: their output goes to a log, their failure is a sentence."""

import os
import subprocess
from collections.abc import Collection, Sequence
from pathlib import Path

from edgeflare.errors import DeviceError

_LAST_LINES = 6
_LIMIT_S = 3600.0


def search_path() -> str:
    """Return where programs are looked for: PATH, and the folders that only root has on it."""
    return os.pathsep.join([os.environ.get("PATH", os.defpath), "/usr/sbin", "/sbin"])


class Log:
    """The file that takes what the programs print."""

    def __init__(self, path: Path) -> None:
        self.path = path
        path.write_text("", encoding="utf-8")

    def add(self, text: str) -> None:
        """Append text and a newline where it has none."""
        with self.path.open("a", encoding="utf-8") as file:
            file.write(text if text.endswith("\n") else text + "\n")


class ToolError(DeviceError):
    """A program failed; `output` is all that it printed."""

    def __init__(self, message: str, output: str) -> None:
        super().__init__(message)
        self.output = output


def run_tool(
    command: Sequence[str | Path],
    log: Log,
    *,
    doing: str,
    cwd: Path | None = None,
    text: str = "",
    fine: Collection[int] = (0,),
) -> str:
    """Run a program to its end and return what it printed, stdout and stderr together.

    `doing` begins the error's sentence, as in "fetching Debian's packages"; `fine` are the exit codes
    of success. Raises ToolError with the
    last lines and the log's place.
    """
    words = [str(word) for word in command]
    log.add("$ " + " ".join(words))
    try:
        done = subprocess.run(
            words,
            cwd=cwd,
            input=text,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            timeout=_LIMIT_S,
            env={**os.environ, "LC_ALL": "C.UTF-8", "PATH": search_path()},
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ToolError(f"{doing} failed: {error}; the log is {log.path}", "") from error
    log.add(done.stdout)
    if done.returncode not in fine:
        lines = [line.strip() for line in done.stdout.splitlines() if line.strip()]
        last = " | ".join(lines[-_LAST_LINES:]) or "it printed nothing"
        raise ToolError(
            f"{doing} failed ({words[0]} ended with {done.returncode}): {last}; "
            f"the whole log is {log.path}",
            done.stdout,
        )
    return done.stdout


def runs(command: Sequence[str]) -> bool:
    """Return whether a command can be run and succeeds within a minute."""
    try:
        return subprocess.run(command, capture_output=True, check=False, timeout=60).returncode == 0
    except (OSError, subprocess.TimeoutExpired):
        return False

"""Python programs of a test's own, in another process: to be killed, or to hold something meanwhile."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


def started(program: str, *arguments: object) -> "subprocess.Popen[str]":
    """Start a program that sees what this process imports."""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    command = [sys.executable, "-c", program, *map(str, arguments)]
    return subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
    )


def lines_before_kill(program: str, folder: Path, lines: int) -> list[list[str]]:
    """Kill a program once it has written so many lines; return the words of all whole ones."""
    with started(program, folder) as child:
        assert child.stdout is not None
        told = [child.stdout.readline() for _ in range(lines)]
        child.send_signal(signal.SIGKILL)
        told += child.stdout.readlines()
    assert child.returncode == -signal.SIGKILL
    return [line.split() for line in told if line.endswith("\n")]


@contextmanager
def holding(program: str, folder: Path) -> "Iterator[tuple[subprocess.Popen[str], str]]":
    """A program that holds something in the folder, until the block ends, and the first line that it wrote."""
    with started(program, folder) as holder:
        assert holder.stdout is not None
        line = holder.stdout.readline().strip()
        try:
            yield holder, line
        finally:
            holder.kill()

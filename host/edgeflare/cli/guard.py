"""Turns errors into one sentence on stderr and the right exit code."""

import functools
import os
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import ParamSpec

import typer

from edgeflare.cli.stopping import INTERRUPTED

P = ParamSpec("P")
_LIMIT_CROSSED = 1
_OWN_FAULT = 70
_PACKAGE = Path(__file__).parents[1]


class _Debug:
    on = False


def set_debug(on: bool) -> None:
    """Set whether tracebacks are shown."""
    _Debug.on = on


def _is_users(filename: object) -> bool:
    """Whether an unusable file is the user's, not one of the installed package."""
    return isinstance(filename, str | bytes) and not Path(os.fsdecode(filename)).is_relative_to(
        _PACKAGE
    )


def say(text: str) -> None:
    """Write one line for the user on stderr."""
    print(text, file=sys.stderr, flush=True)  # noqa: T201


def end_by(crossed: Sequence[str]) -> None:
    """End the command with exit code 1 if there are limits crossed, by their names."""
    if crossed:
        what = "a limit is" if len(crossed) == 1 else f"{len(crossed)} limits are"
        say(f"edgeflare: {what} crossed: {', '.join(crossed)}")
        raise typer.Exit(_LIMIT_CROSSED)


def guarded(command: Callable[P, None]) -> Callable[P, None]:
    """Wrap a command: an `EdgeFlareError` becomes its sentence and exit code, Ctrl-C 130, a file that
    can't be used 2, a fault 70."""

    @functools.wraps(command)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        try:
            told(*args, **kwargs)
        except KeyboardInterrupt as interrupt:
            if _Debug.on:
                raise
            with suppress(OSError):  # the terminal may be gone
                say("edgeflare: interrupted")
            raise typer.Exit(INTERRUPTED) from interrupt

    def told(*args: P.args, **kwargs: P.kwargs) -> None:
        from edgeflare import EdgeFlareError

        try:
            command(*args, **kwargs)
        except EdgeFlareError as error:
            if _Debug.on:
                raise
            say(f"edgeflare: {error}")
            raise typer.Exit(error.exit_code) from error
        except (typer.Exit, typer.Abort):
            raise
        except BrokenPipeError as closed:
            raise typer.Exit(0) from closed
        except Exception as fault:
            if _Debug.on:
                raise
            if isinstance(fault, OSError) and _is_users(fault.filename):
                say(f"edgeflare: {fault.filename} can't be used: {fault.strerror}; check the path")
                raise typer.Exit(EdgeFlareError.exit_code) from fault
            say(
                f"edgeflare: a fault of EdgeFlare's own, {type(fault).__name__}: {fault}; what was "
                "found so far is kept. Please report it with what `edgeflare --debug ...` prints."
            )
            raise typer.Exit(_OWN_FAULT) from fault

    return run

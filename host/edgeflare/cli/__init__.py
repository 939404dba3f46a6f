"""The command line: parses arguments, calls public functions, and prints results."""

import sys
import traceback

from edgeflare.cli.app import app
from edgeflare.cli.display.streams import end_of, guard_streams
from edgeflare.cli.terminal import echo_err


def main() -> None:
    """Run the command line (the console script ``edgeflare``)."""
    guard_streams()
    try:
        app()
        code = 0
    except SystemExit as end:
        code = _code_of(end)
    except Exception:  # noqa: BLE001 - of `--debug` alone: a command's own are sentences
        echo_err(traceback.format_exc().rstrip())
        code = 1
    sys.exit(end_of(code))


def _code_of(end: SystemExit) -> int:
    """Return what an exit states, as the interpreter would: a text is printed and is a failure."""
    if end.code is None or isinstance(end.code, int):
        return end.code or 0
    echo_err(str(end.code))
    return 1


__all__ = ["app", "main"]

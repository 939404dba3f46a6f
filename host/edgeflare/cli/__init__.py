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
        code = end.code if isinstance(end.code, int) else 0
    except Exception:  # noqa: BLE001 - of `--debug` alone: a command's own are sentences
        echo_err(traceback.format_exc().rstrip())
        code = 1
    sys.exit(end_of(code))


__all__ = ["app", "main"]

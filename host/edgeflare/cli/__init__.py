"""The command line: parses arguments, calls public functions, and prints results."""

import io
import sys

from edgeflare.cli.app import app


def main() -> None:
    """Run the command line (the console script ``edgeflare``)."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
    app()


__all__ = ["app", "main"]

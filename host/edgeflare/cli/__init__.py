"""The command line: it parses, calls one function of `edgeflare`, prints."""

from edgeflare.cli.app import app


def main() -> None:
    """Run the command line (the console script ``edgeflare``)."""
    app()


__all__ = ["app", "main"]

"""Asks the user for a passphrase or password; nothing is stored."""

import getpass
import sys


def ask(prompt: str) -> str | None:
    """Return what the user types without showing it; None where there is no terminal."""
    if not sys.stdin.isatty():
        return None
    return getpass.getpass(prompt)


def confirm(question: str) -> bool:
    """Return whether the user says yes; no terminal means no."""
    if not sys.stdin.isatty():
        return False
    print(f"{question} [y/N] ", end="", file=sys.stderr, flush=True)  # noqa: T201
    return sys.stdin.readline().strip().lower() in ("y", "yes")

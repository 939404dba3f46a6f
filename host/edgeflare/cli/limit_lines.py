"""A campaign's limits: a line for each, and what follows where one is crossed."""

from collections.abc import Sequence

import typer
from rich.console import Console
from rich.markup import escape

from edgeflare.analysis import LimitCheck
from edgeflare.cli.guard import say

CROSSED = 1
"""The exit code of a command whose result crosses a limit."""


def print_limits(console: Console, limits: Sequence[LimitCheck]) -> None:
    """Print whether each limit holds; nothing where there is none."""
    for one in limits:
        text = f"{_mark(one)} {escape(one.words)}"
        console.print(text, soft_wrap=True, highlight=False)


def end_by(crossed: Sequence[str]) -> None:
    """End the command with exit code 1 where limits of these names are crossed."""
    if crossed:
        what = "a limit is" if len(crossed) == 1 else f"{len(crossed)} limits are"
        say(f"edgeflare: {what} crossed: {', '.join(crossed)}")
        raise typer.Exit(CROSSED)


def _mark(one: LimitCheck) -> str:
    if not one.checked:
        return "[yellow]limit not checked[/]"
    return "[red]limit crossed    [/]" if one.crossed else "[green]limit holds      [/]"

"""A device's check: a line for each thing looked at, or one JSON object."""

from collections.abc import Iterable

from rich.console import Console
from rich.markup import escape

from edgeflare import CheckLine
from edgeflare.cli.tables import print_json

_MARKS = {"ok": "[green]ok  [/]", "note": "[yellow]note[/]", "fix": "[red]fix [/]"}


def print_check(lines: Iterable[CheckLine], as_json: bool) -> None:
    """Print the lines of a check, each with what to do below it."""
    listed = list(lines)
    if as_json:
        print_json(
            {
                "ready": all(line.ok for line in listed),
                "lines": [
                    {
                        "name": line.name,
                        "ok": line.ok,
                        "state": line.state,
                        "detail": line.detail,
                        "fix": line.fix,
                    }
                    for line in listed
                ],
            }
        )
        return
    console = Console(soft_wrap=True, highlight=False)
    for line in listed:
        console.print(f"{_MARKS[line.state]} {escape(f'{line.name}: {line.detail}')}")
        if line.fix:
            console.print(f"     -> {escape(line.fix)}")

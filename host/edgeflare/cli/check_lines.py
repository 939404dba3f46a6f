"""A device's check: a line for each thing looked at, or one JSON object."""

from collections.abc import Iterable

from rich.console import Console
from rich.markup import escape

from edgeflare.cli.tables import print_json
from edgeflare.devices import CheckLine

_MARKS = {"ok": "[green]ok  [/]", "note": "[yellow]note[/]", "fix": "[red]fix [/]"}


def print_line(line: CheckLine) -> None:
    """Print a line of a check, and what to do below it."""
    console = Console(soft_wrap=True, highlight=False)
    console.print(f"{_MARKS[line.state]} {escape(f'{line.name}: {line.detail}')}")
    if line.fix:
        console.print(f"     -> {escape(line.fix)}")


def print_lines_as_json(lines: Iterable[CheckLine]) -> None:
    """Print a check as one JSON object."""
    listed = list(lines)
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

"""Prints how a night came out."""

from collections.abc import Sequence

from rich.console import Console
from rich.text import Text

from edgeflare.cli.display.tables import print_json
from edgeflare.nightly import Night, NightRun

_STYLES = {
    "green": "green",
    "first": "green",
    "regression": "bold red",
    "away": "yellow",
    "failed": "yellow",
}
_WORDS = {"first": "green (first)", "regression": "red", "failed": "not run"}


def state_word(state: str) -> str:
    """Return how a run's state is called in the terminal."""
    return _WORDS.get(state, state)


def print_night(night: Night, json: bool) -> None:
    """Print how a night came out: a line for each run, with the reasons where it is not green."""
    if json:
        print_json(night.to_json())
        return
    console = Console(highlight=False)
    for run in night.runs:
        console.print(_line(run), soft_wrap=True)
        for words in run.words:
            console.print(Text(f"  {words}"), soft_wrap=True)
        for changed in run.changed:
            console.print(Text(f"  changed: {changed}", style="dim"), soft_wrap=True)
    console.print(Text(f"Night {night.number}: {night.verdict}", style="bold"), soft_wrap=True)


def print_accepted(lines: Sequence[str], json: bool) -> None:
    """Print what was taken for the new baseline."""
    if json:
        print_json({"accepted": list(lines)})
        return
    for line in lines:
        print(line)  # noqa: T201


def _line(run: NightRun) -> Text:
    line = Text(state_word(run.state), style=_STYLES[run.state])
    line.append(f"  {run.name}", style="not bold default")
    if run.figures:
        line.append(f": {run.figures}", style="not bold default")
    return line

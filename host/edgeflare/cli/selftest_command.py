"""``selftest``: whether the search raises false alarms on this machine."""

from typing import TYPE_CHECKING, Annotated

import typer

from edgeflare.cli.guard import say
from edgeflare.cli.options import Json

if TYPE_CHECKING:
    from edgeflare.campaign import SelfTest


def selftest(
    seeds: Annotated[int, typer.Option(min=1, max=100, help="How many seed images.")] = 20,
    json: Json = False,
) -> None:
    """Search where nothing is to be found (a model against itself), and where something is; exit 1 if not so."""
    from edgeflare.campaign import run_selftest
    from edgeflare.cli.stopping import stoppable
    from edgeflare.cli.watch import watching

    with stoppable() as stop, watching(stop) as progress:
        result = run_selftest(seeds=seeds, progress=progress)
    _print(result, json)
    for problem in result.problems:
        say(f"edgeflare: {problem}")
    if result.problems:
        raise typer.Exit(1)


def _print(result: "SelfTest", as_json: bool) -> None:
    from rich.console import Console

    from edgeflare.cli.tables import plain_table, print_json

    if as_json:
        print_json(result.to_json())
        return
    table = plain_table("pair", "searches", "triggers", "false alarms")
    for one in result.pairs:
        alarms = str(one.false_alarms) if one.of_one_model else "-"
        table.add_row(one.name, str(one.searches), str(one.triggers), alarms)
    console = Console()
    console.print(table)
    verdict = "[red]failed[/]" if result.problems else "[green]passed[/]"
    console.print(
        f"{verdict} in {result.seconds:.1f} s: {result.strategy}, margin floor {result.margin_floor:g}"
    )

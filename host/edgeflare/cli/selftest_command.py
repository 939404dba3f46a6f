"""``selftest``: whether the search raises false alarms on this machine."""

from typing import Annotated

import typer

from edgeflare.cli.guard import say
from edgeflare.cli.options import Json


def selftest(
    seeds: Annotated[int, typer.Option(min=1, max=100, help="How many seed images.")] = 20,
    json: Json = False,
) -> None:
    """Search where nothing is to be found (a model against itself), and where something is; exit 1 if not so."""
    from edgeflare.campaign import run_selftest
    from edgeflare.cli.stopping import stoppable
    from edgeflare.cli.tables import print_result
    from edgeflare.cli.watch import watching
    from edgeflare.reports import Text, table_of

    with stoppable() as stop, watching(stop) as progress:
        result = run_selftest(seeds=seeds, progress=progress)
    rows = [
        (
            one.name,
            str(one.searches),
            str(one.triggers),
            str(one.false_alarms) if one.of_one_model else "-",
        )
        for one in result.pairs
    ]
    told = (
        f"{'failed' if result.problems else 'passed'} in {result.seconds:.1f} s: {result.strategy}, "
        f"margin floor {result.margin_floor:g}"
    )
    header = ("pair", "searches", "triggers", "false alarms")
    verdict = Text(told, "bad" if result.problems else "good")
    print_result(json, result.to_json, lambda: [table_of(header, rows), verdict])
    for problem in result.problems:
        say(f"edgeflare: {problem}")
    if result.problems:
        raise typer.Exit(1)

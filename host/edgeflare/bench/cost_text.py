"""What searches cost, and false alarms on control pairs, as Markdown."""

from collections.abc import Sequence

from edgeflare.analysis.words import number_text, percent_text, plain, table
from edgeflare.bench import explanations
from edgeflare.bench.cell_figures import CellFigures
from edgeflare.bench.costs import DELAYS_MS, Costs
from edgeflare.bench.report import BenchReport

_HEADER = (
    *("pair, strategy", "searches", "queries of the search", "median", "all device queries"),
    *("round trips", "host queries", "median", "seconds"),
    *(f"+ {delay} ms" for delay in DELAYS_MS if delay),
)


def costs(cells: Sequence[CellFigures]) -> list[str]:
    """Return the part on device queries, host queries and seconds; nothing where nothing was searched."""
    searched = [cell for cell in cells if cell.searched]
    if not searched:
        return []
    found = [cell for cell in searched if cell.found]
    parts = ["## Costs", explanations.COSTS]
    if found:
        rows = [_row(cell, cell.costs) for cell in found]
        parts += [explanations.COSTS_FOUND, table(_HEADER, rows)]
    if any(cell.found < cell.searched for cell in searched):
        rows = [_row(cell, cell.costs_spent) for cell in searched]
        parts += [explanations.COSTS_SPENT, table(_HEADER, rows)]
    return parts


def _row(cell: CellFigures, one: Costs) -> list[str]:
    return [
        f"{plain(cell.pair)}, {plain(cell.strategy)}",
        f"{one.searches:,}",
        number_text(one.queries),
        number_text(one.queries_median, 1),
        number_text(one.device_queries),
        number_text(one.round_trips),
        number_text(one.host_queries, 0),
        number_text(one.host_queries_median, 0),
        *(number_text(one.seconds_at[str(delay)], 3) for delay in DELAYS_MS),
    ]


def false_alarms(report: BenchReport) -> list[str]:
    """Return the part on control pairs; nothing without any."""
    if not report.false_alarms:
        return []
    header = [
        "pair, strategy",
        "margin floor",
        "seed inputs",
        "never asked",
        "with a false alarm",
        "rate",
        "bound",
        "other endings",
    ]
    rows = [
        [
            f"{plain(one.pair)}, {plain(one.strategy)}",
            f"{one.margin_floor:g}",
            f"{one.seeds:,}",
            f"{one.unasked:,}",
            f"{one.seeds_with:,}",
            percent_text(one.rate),
            percent_text(one.upper_bound),
            ", ".join(f"{count:,} {name}" for name, count in one.endings.items()) or "0",
        ]
        for one in report.false_alarms
    ]
    return ["## False alarms", explanations.FALSE_ALARMS, table(header, rows, header[-1:])]

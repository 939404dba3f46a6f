"""What a bench found, as tables on stdout or as one JSON object."""

import shlex
from collections.abc import Sequence
from typing import Any

from rich.console import Console
from rich.markup import escape

from edgeflare.analysis import margin_text, number_text, p_value_text, percent_text
from edgeflare.bench import BenchReport, Correlation, SearchRow, SuiteAbout, query_limits
from edgeflare.cli.columns import Column, fitted
from edgeflare.cli.tables import plain_table, print_json

_NOTHING = "-"


def print_suites(suites: Sequence[SuiteAbout], as_json: bool) -> None:
    """Print the packaged suites."""
    if as_json:
        print_json([one._asdict() for one in suites])
        return
    table = plain_table("suite", "title", "needs")
    for one in suites:
        table.add_row(
            escape(one.name), escape(one.title), "--data FOLDER" if one.needs_data else "nothing"
        )
    Console().print(table)


def print_report(report: BenchReport, as_json: bool, *, searches: bool = False) -> None:
    """Print what a bench found so far; with `searches` each of them, too.

    What is too wide for the terminal is left out, the least needed figures first.
    """
    if as_json:
        values = report.to_json()
        if searches:
            values["searches"] = [row.to_json() for row in report.searches]
        print_json(values)
        return
    console = Console(highlight=False)

    def show(about: str, columns: Sequence[Column], rows: Sequence[Any]) -> None:
        if rows:
            console.print(about, soft_wrap=True)
            console.print(fitted(columns, rows, console))

    console.print(f"[bold]{escape(report.title)}[/]: {_progress(report)}", soft_wrap=True)
    tried = [one for one in report.cells if one.searches]
    show(
        "On control pairs every finding is a false alarm; the bound is that of 95 % confidence:",
        _FALSE_ALARMS,
        [one for one in report.false_alarms if one.seeds],
    )
    controls = {one.pair for one in report.false_alarms}
    told = [one for one in tried if one.found or one.pair not in controls]
    show("Queries and seconds of the searches that found a triggering input:", _COSTS, told)
    spent = [one for one in tried if one.searched]
    show("Means of all searches; seconds computed for a longer way to the device:", _SPENT, spent)
    show("What they found; medians over the triggering inputs:", _FINDINGS, told)
    show(
        f"Against {escape(str(report.baseline))}, by seed input; queries and seconds are ratios of "
        "means, in which a search that found nothing counts what it spent, and p is of their ranks, with such a search "
        "above all others (permutation test, of success the exact one; adjusted by Holm):",
        _COMPARISONS,
        report.comparisons,
    )
    published = [(one, theirs) for one in tried for theirs in one.published]
    show("Mean queries (then success, seconds) beside published figures:", _PUBLISHED, published)
    for sentence in query_limits(one for one, _ in published):
        console.print(escape(sentence), soft_wrap=True)
    show(
        "Pearson's correlation of x with the means of each pair; these leave out searches that found "
        "nothing, where the lowest success is below 100 %:",
        _CORRELATIONS,
        report.correlations,
    )
    if searches:
        show("Every search:", _SEARCHES, report.searches)
    for name, why in report.failed.items():
        console.print(escape(f"failed: {name}: {why}"), soft_wrap=True)
    for notice in report.notices:
        console.print(f"[yellow]note:[/] {escape(notice)}", soft_wrap=True)
    if report.unfinished or report.missing:
        command = shlex.join(["edgeflare", "bench", "resume", report.folder])
        console.print(escape(f"Not finished; go on with: {command}"), soft_wrap=True)


def _progress(report: BenchReport) -> str:
    states = {
        "unfinished": report.unfinished,
        "not begun": report.missing,
        "failed": report.failed,
    }
    total = len(report.finished) + sum(len(names) for names in states.values())
    rest = "".join(f", {len(names)} {state}" for state, names in states.items() if names)
    return f"{len(report.finished)} of {total} cells finished{rest}"


def number(value: float | None, digits: int = 1) -> str:
    """Return a figure with so many digits after the point."""
    return _NOTHING if value is None else number_text(value, digits)


def margin(value: float | None) -> str:
    """Return a margin with the digits that it needs."""
    return _NOTHING if value is None else margin_text(value)


def percent(share: float | None) -> str:
    """Return a share from 0 to 1 in percent."""
    return _NOTHING if share is None else percent_text(share)


def times(ratio: float | None) -> str:
    """Return how many times as much it is."""
    return _NOTHING if ratio is None else f"{ratio:.2f} x"


def probability(p: float | None) -> str:
    """Return a p-value as it is read: below a thousandth only that."""
    return _NOTHING if p is None else p_value_text(p)


def interval(ends: tuple[float, float] | None) -> str:
    """Return an interval as its two ends."""
    return _NOTHING if ends is None else f"{number(ends[0])} to {number(ends[1])}"


def _labels(row: SearchRow) -> str:
    labels = (row.original_label, row.deployed_label)
    return _NOTHING if None in labels else "{} / {}".format(*labels)


def _points(one: Correlation) -> str:
    return ", ".join(f"{point.x:g}: {number(point.queries)}" for point in one.points)


_WHERE = (
    Column("pair", 0, lambda one: one.pair, text=True),
    Column("strategy", 0, lambda one: one.strategy, text=True),
)
_COSTS = (
    *_WHERE,
    Column("success", 9, lambda one: percent(one.success_rate)),
    Column("found", 5, lambda one: f"{one.found}/{one.searched}"),
    Column("queries", 0, lambda one: number(one.queries)),
    Column("95 % interval", 6, lambda one: interval(one.queries_interval)),
    Column("median", 7, lambda one: number(one.queries_median, 0)),
    Column("seconds", 8, lambda one: number(one.seconds, 3)),
    Column("90th pct.", 4, lambda one: number(one.queries_p90, 0)),
)
_SPENT = (
    *_WHERE,
    Column("queries", 6, lambda one: number(one.costs_spent.queries)),
    Column("all device q.", 7, lambda one: number(one.costs_spent.device_queries)),
    Column("round trips", 8, lambda one: number(one.costs_spent.round_trips)),
    Column("host queries", 0, lambda one: number(one.costs_spent.host_queries, 0)),
    Column("median", 3, lambda one: number(one.costs_spent.host_queries_median, 0)),
    Column("seconds", 10, lambda one: number(one.costs_spent.seconds_at["0"], 3)),
    Column("+ 5 ms", 4, lambda one: number(one.costs_spent.seconds_at["5"], 3)),
    Column("+ 20 ms", 9, lambda one: number(one.costs_spent.seconds_at["20"], 3)),
    Column("+ 100 ms", 5, lambda one: number(one.costs_spent.seconds_at["100"], 3)),
)
_FALSE_ALARMS = (
    *_WHERE,
    Column("margin floor", 7, lambda one: f"{one.margin_floor:g}"),
    Column("seed inputs", 8, lambda one: str(one.seeds)),
    Column("never asked", 6, lambda one: str(one.unasked)),
    Column("false alarms", 0, lambda one: str(one.seeds_with)),
    Column("rate", 9, lambda one: percent(one.rate)),
    Column("bound", 10, lambda one: percent(one.upper_bound)),
)
_FINDINGS = (
    *_WHERE,
    Column("in 5 s", 6, lambda one: percent(one.within["5"])),
    Column("timeouts", 9, lambda one: str(one.timeouts)),
    Column("exhausted", 3, lambda one: str(one.exhausted)),
    Column("unique", 8, lambda one: percent(one.unique)),
    Column("L2", 0, lambda one: number(one.l2, 2)),
    Column("Linf", 4, lambda one: number(one.linf, 0)),
    Column("SSIM", 10, lambda one: number(one.ssim, 2)),
    Column("margin", 7, lambda one: margin(one.smaller_margin)),
    Column("label kept", 5, lambda one: percent(one.label_kept)),
)
_COMPARISONS = (
    *_WHERE,
    Column("seeds", 3, lambda one: str(one.seeds)),
    Column("queries", 0, lambda one: times(one.queries.ratio)),
    Column("p", 0, lambda one: probability(one.queries.p_holm)),
    Column("verdict", 11, lambda one: one.queries.verdict, text=True),
    Column("A12", 9, lambda one: number(one.queries.a12, 2)),
    Column("effect", 8, lambda one: one.queries.a12_size),
    Column("rank-biserial", 5, lambda one: f"{one.queries.rank_biserial:+.2f}"),
    Column("seconds", 7, lambda one: times(one.seconds.ratio)),
    Column("p", 6, lambda one: probability(one.seconds.p_holm)),
    Column("success", 10, lambda one: f"{one.success.verdict} ({probability(one.success.p_holm)})"),
)
_PUBLISHED = (
    Column("pair", 0, lambda both: both[0].pair, text=True),
    Column("strategy", 0, lambda both: both[0].strategy, text=True),
    Column("source", 0, lambda both: both[1].source, text=True),
    Column("published", 0, lambda both: number(both[1].queries)),
    Column("here", 0, lambda both: number(both[0].queries)),
    Column("success", 8, lambda both: percent(both[1].success)),
    Column("here", 7, lambda both: percent(both[0].success_rate)),
    Column("seconds", 4, lambda both: number(both[1].seconds, 3)),
    Column("here", 3, lambda both: number(both[0].seconds, 3)),
)
_CORRELATIONS = (
    Column("study", 0, lambda one: one.study, text=True),
    Column("strategy", 0, lambda one: one.strategy, text=True),
    Column("x with queries", 0, lambda one: number(one.queries, 3)),
    Column("x with seconds", 9, lambda one: number(one.seconds, 3)),
    Column("lowest success", 10, lambda one: percent(one.lowest_success)),
    Column("mean queries at x", 8, _points),
)
_SEARCHES = (
    *_WHERE,
    Column("repeat", 0, lambda row: str(row.repeat)),
    Column("seed", 0, lambda row: row.seed_id, text=True),
    Column("ended", 0, lambda row: row.status, text=True),
    Column("queries", 0, lambda row: str(row.queries)),
    Column("seconds", 9, lambda row: number(row.seconds, 3)),
    Column("L2", 8, lambda row: number(row.l2, 2)),
    Column("Linf", 6, lambda row: number(row.linf, 0)),
    Column("labels", 7, _labels),
)

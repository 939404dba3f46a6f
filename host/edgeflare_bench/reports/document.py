"""The report of a bench: its tables, each stated once for the terminal and for report.md."""

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Any

from edgeflare._internal.text import NOTHING, margin_text, number_text, p_value_text, percent_text
from edgeflare.answers.transcripts import spoken
from edgeflare.document import Block, Column, Heading, Item, Listing, Prose, Table, Text, table_of
from edgeflare.reports.document import plain
from edgeflare.types import Status
from edgeflare_bench.cell_figures import DELAYS_MS, WITHIN_SECONDS, CellFigures, Costs, is_shorter
from edgeflare_bench.comparisons import BaselineContrast, Comparison
from edgeflare_bench.report import BenchReport
from edgeflare_bench.searches import SearchRow
from edgeflare_bench.words import report as words

_EXAMPLES = 3


def bench_document(
    report: BenchReport,
    pictures: Mapping[str, str] | None = None,
    fronts: Mapping[str, str] | None = None,
) -> list[Block]:
    """Return the whole document; `pictures` and `fronts` are paths by pair, from its folder."""
    return [
        Heading(report.title, 1),
        Prose(report.about.strip()),
        *_body(report),
        *_repeats(report.cells),
        *_pictures("Histograms", words.HISTOGRAMS, "Queries", pictures or {}),
        *_pictures("Margins", words.FRONTS, "Margins", fronts or {}),
        *_left(report),
        Heading("How it was run", 2),
        Prose(words.settings(report)),
        *_models(report),
        *_devices(report),
        *_listed("Host", map(_versions, report.environments)),
        Prose(words.files(report.folder)),
    ]


def bench_summary(report: BenchReport, *, searches: bool = False) -> list[Block]:
    """Return the document for a terminal: without repeats, pictures and environment."""
    each: list[Block] = [Heading("Every search", 2), Table(_SEARCHES, report.searches)]
    return [Heading(report.title, 1), *_body(report), *(each if searches else []), *_left(report)]


def _body(report: BenchReport) -> list[Block]:
    """Return the results; other tables have control pairs only if anything was found there."""
    controls = {one.pair for one in report.false_alarms}
    tried = [cell for cell in report.cells if cell.searches]
    results = [cell for cell in tried if cell.pair not in controls]
    described = [cell for cell in tried if cell.found or cell.pair not in controls]
    open_cells = report.unfinished or report.missing or report.failed
    return [
        Text(words.state(report), "strong" if open_cells else "plain"),
        *(Text(notice, "warn", has_code=True) for notice in report.notices),
        *_section("False alarms", words.FALSE_ALARMS, _FALSE_ALARMS, report.false_alarms),
        *_section("Results", words.RESULTS, _RESULTS, results),
        *_published(results),
        *_costs([cell for cell in tried if cell.searched]),
        *_quality(described, report.audio),
        *_section("Time", words.TIME, _time_columns(described), described),
        *_section("Uniqueness", words.UNIQUENESS, _UNIQUENESS, described),
        *_examples(report.searches),
        *_comparisons(report),
        *_correlations(report),
    ]


def _section(
    title: str, about: Prose, columns: tuple[Column, ...], rows: Sequence[object]
) -> list[Block]:
    return [Heading(title, 2), about, Table(columns, rows)] if rows else []


def _listed(title: str, lines: Iterable[str], level: int = 3) -> list[Block]:
    items = tuple(map(Item, lines))
    return [Heading(title, level), Listing(items)] if items else []


def _named(*names: str, of: Callable[[Any], Any] = lambda row: row) -> tuple[Column, ...]:
    """Return columns of texts: these fields of a row, or of a part of it."""

    def column(name: str) -> Column:
        return Column(name, 0, lambda row: getattr(of(row), name), text=True)

    return tuple(map(column, names))


_WHERE = _named("pair", "strategy")
_WHERE_IN_PAIRS = _named("pair", "strategy", of=itemgetter(0))

_FALSE_ALARMS = (
    *_WHERE,
    Column("margin floor", 7, lambda one: f"{one.margin_floor:g}"),
    Column("seed inputs", 8, lambda one: f"{one.seeds:,}"),
    Column("never asked", 6, lambda one: f"{one.unasked:,}"),
    Column("with a false alarm", 0, lambda one: f"{one.seeds_with:,}"),
    Column("rate", 9, lambda one: percent_text(one.rate)),
    Column("bound", 10, lambda one: percent_text(one.upper_bound)),
    Column("other endings", 1, lambda one: _counts(one.endings), text=True),
)


def _counts(counts: Mapping[str, int], but: Collection[Status] = ()) -> str:
    shown = (f"{count:,} {name}" for name, count in counts.items() if count and name not in but)
    return ", ".join(shown) or "0"


# Results and costs


def _success(cell: CellFigures) -> str:
    if not cell.searched:
        return NOTHING
    return f"{percent_text(cell.success_rate)} ({cell.found:,} of {cell.searched:,})"


def _interval(ends: tuple[float, float] | None) -> str:
    return NOTHING if ends is None else f"{number_text(ends[0])} to {number_text(ends[1])}"


_RESULTS = (
    *_WHERE,
    Column("success", 9, _success),
    Column("queries: mean", 0, lambda cell: number_text(cell.queries)),
    Column("95 % interval", 6, lambda cell: _interval(cell.queries_interval)),
    Column("median", 7, lambda cell: number_text(cell.queries_median, 1)),
    Column("90th percentile", 4, lambda cell: number_text(cell.queries_p90, 1)),
    Column("spent", 3, lambda cell: number_text(cell.queries_spent)),
    Column("seconds: mean", 8, lambda cell: number_text(cell.seconds, 3)),
)

_PUBLISHED = (
    *_WHERE_IN_PAIRS,
    *_named("source", of=itemgetter(1)),
    Column("queries", 0, lambda row: number_text(row[1].queries)),
    Column("here", 0, lambda row: number_text(row[0].queries)),
    Column("success", 8, lambda row: percent_text(row[1].success)),
    Column("here", 7, lambda row: percent_text(row[0].success_rate)),
    Column("seconds", 4, lambda row: number_text(row[1].seconds, 3)),
    Column("here", 3, lambda row: number_text(row[0].seconds, 3)),
)


def _published(cells: Sequence[CellFigures]) -> list[Block]:
    """Return published means with ours; nothing without any."""
    rows = [(cell, theirs) for cell in cells for theirs in cell.published]
    limits = map(Text, words.query_limits(cells))
    return [Heading("Published figures"), Table(_PUBLISHED, rows), *limits] if rows else []


def _costs(searched: Sequence[CellFigures]) -> list[Block]:
    """Return device queries, host queries and seconds; nothing if nothing was searched."""
    found = [cell for cell in searched if cell.found]
    blocks: list[Block] = [Heading("Costs", 2), words.COSTS] if searched else []
    if found:
        columns = _cost_columns(lambda cell: cell.costs)
        blocks.append(Table(columns, found, words.COSTS_FOUND))
    if any(cell.found < cell.searched for cell in searched):
        columns = _cost_columns(lambda cell: cell.costs_spent)
        blocks.append(Table(columns, searched, words.COSTS_SPENT))
    return blocks


def _cost_columns(costs: Callable[[CellFigures], Costs]) -> tuple[Column, ...]:
    def column(heading: str, drop_order: int, name: str, digits: int = 2) -> Column:
        return Column(
            heading, drop_order, lambda cell: number_text(getattr(costs(cell), name), digits)
        )

    def delayed(delay: int) -> Column:
        return Column(
            f"+ {delay} ms" if delay else "seconds",
            4 if delay else 10,
            lambda cell: number_text(costs(cell).seconds_at[str(delay)], 3),
        )

    return (
        *_WHERE,
        column("searches", 1, "searches", 0),
        column("queries of the search", 6, "queries"),
        column("median", 2, "queries_median", 1),
        column("all device queries", 7, "device_queries"),
        column("round trips", 8, "round_trips"),
        column("host queries", 0, "host_queries", 0),
        column("median", 3, "host_queries_median", 0),
        *map(delayed, DELAYS_MS),
    )


# What was found


def _quality(cells: Sequence[CellFigures], audio: Collection[str]) -> list[Block]:
    if not cells:
        return []
    about = words.quality(
        images=any(cell.pair not in audio for cell in cells),
        audio=any(cell.pair in audio for cell in cells),
    )
    blocks: list[Block] = [about, Table(_QUALITY, cells)]
    if not any(cell.found for cell in cells):
        blocks = [Text(words.NOTHING_FOUND)]
    return [Heading("Quality of the triggering inputs", 2), *blocks]


_QUALITY = (
    *_WHERE,
    Column("L2", 0, lambda cell: number_text(cell.l2)),
    Column("Linf", 4, lambda cell: number_text(cell.linf, 0)),
    Column("SSIM", 10, lambda cell: number_text(cell.ssim, 3), optional=True),
    Column("margin of the original", 2, lambda cell: margin_text(cell.original_margin)),
    Column("of the deployed", 2, lambda cell: margin_text(cell.deployed_margin)),
    Column("the smaller one", 7, lambda cell: margin_text(cell.smaller_margin)),
    Column("seed's label kept", 5, lambda cell: percent_text(cell.label_kept)),
    Column("SNR (dB)", 8, lambda cell: number_text(cell.snr_db, 1), optional=True),
)

_UNIQUENESS = (
    *_WHERE,
    Column("triggering inputs", 0, lambda cell: f"{cell.found:,}"),
    Column("unique", 8, lambda cell: percent_text(cell.unique, 2)),
    Column("duplicates", 2, lambda cell: f"{cell.duplicates:,}"),
    Column("seeds with a tie", 1, lambda cell: f"{cell.ties:,}"),
)

_OF_THEIR_OWN = (Status.FOUND, Status.TIMEOUT, Status.EXHAUSTED)
"""Endings that have columns."""


def _time_columns(cells: Sequence[CellFigures]) -> tuple[Column, ...]:
    def within(limit: int) -> Column:
        heading = f"found within {limit} s"
        return Column(heading, 6, lambda cell: percent_text(cell.within[str(limit)]))

    def is_reached(limit: int) -> bool:
        return any(is_shorter(limit, cell.timeout_s) for cell in cells)

    return (
        *_WHERE,
        Column("seconds: mean", 7, lambda cell: number_text(cell.seconds, 3)),
        Column("median", 5, lambda cell: number_text(cell.seconds_median, 3)),
        *map(within, filter(is_reached, WITHIN_SECONDS)),
        Column("ran out of time", 9, lambda cell: f"{cell.timeouts:,}"),
        Column("of queries", 3, lambda cell: f"{cell.exhausted:,}"),
        Column("other endings", 1, lambda cell: _counts(cell.by_status, _OF_THEIR_OWN), text=True),
    )


def _examples(searches: Sequence[SearchRow]) -> list[Block]:
    """Return examples of both transcripts, a table for each pair; nothing if nothing was found."""
    transcribed = [row for row in searches if row.found and row.original_text is not None]
    blocks: list[Block] = [Heading("Examples", 2), words.EXAMPLES] if transcribed else []
    for pair, rows in groupby(transcribed, key=lambda row: row.pair):
        blocks += [Heading(pair), Table(_EXAMPLE, _nearest(list(rows)))]
    return blocks


_EXAMPLE = (
    *_named("strategy"),
    Column("text of the original", 0, lambda row: _spoken(row.original_text), text=True),
    Column("text of the deployed model", 0, lambda row: _spoken(row.deployed_text), text=True),
    Column("SNR (dB)", 0, lambda row: number_text(row.snr_db, 1)),
    Column("L2", 1, lambda row: number_text(row.l2)),
)


def _spoken(text: str | None) -> str:
    return " ".join(spoken(text or ""))


def _nearest(rows: Sequence[SearchRow]) -> list[SearchRow]:
    """Return each strategy's few triggers nearest to their seeds, one of each seed."""
    nearest: dict[str, dict[str, SearchRow]] = {row.strategy: {} for row in rows}
    for row in sorted(rows, key=_distance):
        nearest[row.strategy].setdefault(row.seed_id, row)
    return [row for of_seeds in nearest.values() for row in list(of_seeds.values())[:_EXAMPLES]]


def _distance(row: SearchRow) -> tuple[float, float, str, int]:
    nearness = -math.inf if row.snr_db is None else row.snr_db
    return -nearness, math.inf if row.l2 is None else row.l2, row.seed_id, row.repeat


# Comparisons and correlations

_SUCCESS = (
    *_WHERE,
    Column("seeds", 3, lambda one: str(one.seeds)),
    Column("success", 8, lambda one: percent_text(one.success.mean)),
    Column("baseline's", 7, lambda one: percent_text(one.success.baseline_mean)),
    Column("p", 1, lambda one: p_value_text(one.success.p)),
    Column("p (Holm)", 0, lambda one: p_value_text(one.success.p_holm)),
    Column("verdict", 0, lambda one: one.success.verdict, text=True),
)


def _comparisons(report: BenchReport) -> list[Block]:
    """Return each strategy against the baseline; nothing without a baseline."""
    if not report.comparisons:
        return []
    return [
        Heading(f"Comparison with {report.baseline}", 2),
        words.COMPARISON,
        Heading("Success"),
        Table(_SUCCESS, report.comparisons),
        Heading("Queries"),
        Table(_contrast_columns(lambda one: one.queries), report.comparisons),
        Heading("Seconds"),
        Table(_contrast_columns(lambda one: one.seconds), report.comparisons),
    ]


def _contrast_columns(contrast: Callable[[Comparison], BaselineContrast]) -> tuple[Column, ...]:
    def effect(one: Comparison, name: str, sign: str = "") -> str:
        found = contrast(one)
        return f"{getattr(found, name):{sign}.2f} {getattr(found, f'{name}_size')}"

    return (
        *_WHERE,
        Column("ratio of means", 7, lambda one: number_text(contrast(one).ratio)),
        Column("p", 1, lambda one: p_value_text(contrast(one).p)),
        Column("p (Holm)", 0, lambda one: p_value_text(contrast(one).p_holm)),
        Column("rank-biserial", 5, lambda one: effect(one, "rank_biserial", "+")),
        Column("A12", 6, lambda one: effect(one, "a12")),
        Column("verdict", 0, lambda one: contrast(one).verdict, text=True),
    )


def _correlations(report: BenchReport) -> list[Block]:
    """Return the studies; nothing without any."""
    found = report.correlations
    points = [(one, point) for one in found for point in one.points]
    blocks = _section("Correlations", words.CORRELATIONS, _CORRELATIONS, found)
    if any(one.leaves_out for one in found):
        blocks.insert(2, Text(words.LEFT_OUT))
    return [*blocks, Table(_POINTS, points)]


_CORRELATIONS = (
    *_named("study", "strategy"),
    Column("pairs", 3, lambda one: str(len(one.points))),
    Column("with queries", 0, lambda one: number_text(one.queries, 3)),
    Column("with seconds", 9, lambda one: number_text(one.seconds, 3)),
    Column("lowest success", 10, lambda one: percent_text(one.lowest_success)),
)
_POINTS = (
    *_named("study", "strategy", of=itemgetter(0)),
    Column("x", 0, lambda row: f"{row[1].x:g}"),
    Column("success", 2, lambda row: percent_text(row[1].success_rate)),
    Column("queries: mean", 0, lambda row: number_text(row[1].queries)),
    Column("seconds: mean", 1, lambda row: number_text(row[1].seconds, 3)),
)


# Single searches, pictures, what is left


def _labels(row: SearchRow) -> str:
    labels = (row.original_label, row.deployed_label)
    return NOTHING if None in labels else "{} / {}".format(*labels)


_SEARCHES = (
    *_WHERE,
    Column("repeat", 0, lambda row: str(row.repeat)),
    Column("seed", 0, lambda row: row.seed_id, text=True),
    Column("ended", 0, lambda row: row.status.value, text=True),
    Column("queries", 0, lambda row: str(row.queries)),
    Column("seconds", 9, lambda row: number_text(row.seconds, 3)),
    Column("L2", 8, lambda row: number_text(row.l2)),
    Column("Linf", 6, lambda row: number_text(row.linf, 0)),
    Column("labels", 7, _labels),
)

_REPEATS = (
    *_WHERE_IN_PAIRS,
    Column("repeat", 0, lambda row: str(row[1].repeat)),
    Column("found", 0, lambda row: f"{row[1].found:,} of {row[1].searched:,}"),
    Column("queries: mean", 0, lambda row: number_text(row[1].queries)),
    Column("seconds: mean", 0, lambda row: number_text(row[1].seconds, 3)),
)


def _repeats(cells: Sequence[CellFigures]) -> list[Block]:
    if all(len(cell.repeats) < 2 for cell in cells):
        return []
    rows = [(cell, repeat) for cell in cells for repeat in cell.repeats]
    return [Heading("Repeat by repeat", 2), Table(_REPEATS, rows)]


def _pictures(title: str, about: str, what: str, pictures: Mapping[str, str]) -> Iterable[Block]:
    if pictures:
        yield Heading(title, 2)
        yield Prose(about)
    for pair, path in pictures.items():
        yield Prose(f"![{what} of each strategy on {plain(pair)}]({path})")


def _left(report: BenchReport) -> list[Block]:
    failed = (f"{name}: {why}" for name, why in report.failed.items())
    blocks = [
        *_listed("Cells that can't be run", failed, 2),
        *_listed("Cells that are not finished", words.unfinished(report), 2),
    ]
    command = f"To go on: `{words.resume_command(report.folder)}`"
    return [*blocks, Text(command, has_code=True)] if blocks else []


# What it ran on


def _models(report: BenchReport) -> list[Block]:
    rows = [
        _model(pair, side, models.get(side) or {})
        for pair, several in report.models.items()
        for side in ("original", "deployed")
        for models in several
    ]
    header = ["pair", "model", "file", "runtime", "SHA-256 begins"]
    rows = list(dict.fromkeys(rows))
    return [Heading("Models"), table_of(header, rows, text=len(header))] if rows else []


def _model(pair: str, side: str, model: Mapping[str, Any]) -> tuple[str, ...]:
    runtime = model.get("runtime") or {}
    version = f"{runtime.get('name', '')} {runtime.get('version', '')}"
    return pair, side, str(model.get("name", NOTHING)), version, str(model.get("sha256", ""))[:16]


def _devices(report: BenchReport) -> list[Block]:
    blocks: list[Block] = [Heading("Devices")] if report.devices else []
    for device in report.devices:
        texts = ((name, _text(name, value)) for name, value in device.fingerprint.items())
        items = tuple(Item(f"{name}: {text}") for name, text in texts if text)
        blocks += [Text(", ".join(device.names), "strong"), Listing(items)]
    return blocks


def _text(name: str, value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {_text(key, part)}" for key, part in value.items())
    parts = value if isinstance(value, list | tuple) else str(value).split()
    if name == "cpu_flags":
        return f"{len(parts)} of them, in report.json"
    return " ".join(map(str, parts))


def _versions(environment: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} {value}" for name, value in environment.items())

"""A bench in figures: everything its report says."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from edgeflare.analysis.rows import jsonable
from edgeflare.bench.cell_figures import CellFigures, PublishedFigures, cell_figures
from edgeflare.bench.cells import Cell, cells
from edgeflare.bench.command import command
from edgeflare.bench.comparisons import Comparison, Correlation, adjusted, compare, correlate
from edgeflare.bench.false_alarms import FalseAlarms, false_alarms
from edgeflare.bench.opening import Bench, open_bench
from edgeflare.bench.rows import CellRecords, SearchRow, read_cell
from edgeflare.bench.sameness import distinct_models, sameness_notices
from edgeflare.bench.similarity import Similarities
from edgeflare.bench.suite import Suite


@dataclass(frozen=True)
class BenchDevice:
    """Devices of one fingerprint that took part, by name."""

    names: tuple[str, ...]
    fingerprint: dict[str, Any]


@dataclass(frozen=True)
class ResolvedSearch:
    """What a boundary search used on a pair of what it chooses by the cost of queries where it isn't stated."""

    pair: str
    strategy: str
    crossing: str
    effort: int
    tied_classes: int
    candidates: int


@dataclass(frozen=True)
class BenchReport:
    """What a bench found so far; figures, comparisons and correlations are over its finished cells.

    `suite` is the suite's name, `settings` the whole of it as JSON, `asked_devices` the devices that it
    was given, `command` the one that runs the same again (None where the suite is not a packaged one).
    `cells` has a row for each pair and strategy; `comparisons` one for each strategy but the
    `baseline` on each pair; `correlations` one for each study and strategy; `false_alarms` one for each
    strategy on each control pair. `finished`, `unfinished` and
    `missing` are cells by name (pair/strategy/repeat), `failed` those that can't be run, and why.
    `queries` counts by kind over all outcomes. `devices`, `environments` (versions on the host) and
    `models` (of each pair; several where cells had different ones) are what the searches ran on.
    `resolved` has a row for each pair and strategy of the boundary search (several where cells differ).
    `notices` say, among others, where cells of one pair don't belong together. `audio` names the pairs whose
    samples are audio. `searches` are all that have ended; they are
    not in the JSON.
    """

    suite: str
    title: str
    about: str
    folder: str
    baseline: str | None
    asked_devices: tuple[str, ...]
    command: str | None
    cells: tuple[CellFigures, ...]
    comparisons: tuple[Comparison, ...]
    correlations: tuple[Correlation, ...]
    false_alarms: tuple[FalseAlarms, ...]
    finished: tuple[str, ...]
    unfinished: tuple[str, ...]
    missing: tuple[str, ...]
    failed: dict[str, str]
    queries: dict[str, int]
    devices: tuple[BenchDevice, ...]
    environments: tuple[dict[str, Any], ...]
    models: dict[str, tuple[dict[str, Any], ...]]
    resolved: tuple[ResolvedSearch, ...]
    notices: tuple[str, ...]
    settings: dict[str, Any]
    searches: tuple[SearchRow, ...]
    audio: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Return a JSON object with the same names, but without `searches`."""
        values = asdict(replace(self, searches=()))
        del values["searches"]
        plain: dict[str, Any] = jsonable(values)
        return plain


def bench_report(bench: Bench | Path) -> BenchReport:
    """Read a bench, or its folder, finished or not.

    Without scikit-image SSIM is None; a notice says so. Raises
    UsageError or StoreError for a folder that is no bench, StoreError where a campaign can't be read.
    """
    if not isinstance(bench, Bench):
        bench = open_bench(Path(bench))
    suite = bench.suite
    similarities = Similarities(bench.folder)
    read = {cell: read_cell(bench, cell, similarities) for cell in cells(suite)}
    notices = [*sameness_notices(read), *([similarities.notice] if similarities.notice else [])]
    searches = tuple(row for records in read.values() for row in records.rows)
    states = {cell: bench.state(cell) for cell in read}
    whole = {cell: one for cell, one in read.items() if states[cell] == "finished"}
    notices += [
        f"{cell.name} is not finished: of its searches those that end first are the quick ones, so that "
        f"the {len(one.rows):,} so far are not counted"
        for cell, one in read.items()
        if cell not in whole and one.rows
    ]
    if suite.baseline is not None and suite.baseline not in {one.name for one in suite.strategies}:
        notices.append(f"without the baseline {suite.baseline} nothing can be compared with it")
    figures = _figures(suite, whole)
    comparisons = _comparisons(suite, [row for one in whole.values() for row in one.rows])
    failed = {name: why for name, why in bench.failed.items() if name in {c.name for c in read}}

    def named(state: str) -> tuple[str, ...]:
        return tuple(
            cell.name for cell, one in states.items() if one == state and cell.name not in failed
        )

    queries = sum((records.queries for records in read.values()), Counter[str]())
    return BenchReport(
        suite=suite.name,
        title=suite.title or suite.name,
        about=suite.about,
        folder=str(bench.folder),
        baseline=suite.baseline,
        asked_devices=tuple(bench.devices),
        command=command(suite, bench.devices),
        cells=figures,
        comparisons=comparisons,
        correlations=_correlations(suite, figures),
        false_alarms=_false_alarms(suite, whole),
        finished=named("finished"),
        unfinished=named("unfinished"),
        missing=named("missing"),
        failed=failed,
        queries={kind: queries[kind] for kind in ("seed", "search", "confirmation", "host_only")},
        devices=_devices(read.values()),
        environments=_environments(read.values()),
        models=distinct_models(read),
        resolved=_resolved(read),
        notices=tuple(notices),
        settings=suite.model_dump(mode="json"),
        searches=searches,
        audio=tuple(dict.fromkeys(cell.pair for cell, one in read.items() if one.sample_rate)),
    )


def _figures(suite: Suite, read: Mapping[Cell, CellRecords]) -> tuple[CellFigures, ...]:
    figures = []
    for pair in suite.pairs:
        for strategy in suite.strategies_of(pair.name):
            mine = [
                records
                for cell, records in read.items()
                if (cell.pair, cell.strategy) == (pair.name, strategy.name)
            ]
            published = [
                PublishedFigures(one.source, one.queries, one.success, one.seconds)
                for one in suite.published
                if (one.pair, one.strategy) == (pair.name, strategy.name)
            ]
            figures.append(
                cell_figures(
                    pair.name,
                    strategy.name,
                    [row for records in mine for row in records.rows],
                    max_queries=strategy.max_queries or 0,
                    timeout_s=strategy.timeout_s or 0.0,
                    ties=len(frozenset[str]().union(*(records.ties for records in mine))),
                    published=published,
                )
            )
    return tuple(figures)


def _false_alarms(suite: Suite, read: Mapping[Cell, CellRecords]) -> tuple[FalseAlarms, ...]:
    found = []
    for pair in (pair for pair in suite.pairs if pair.control):
        for strategy in suite.strategies_of(pair.name):
            rows = [
                row
                for cell, records in read.items()
                if (cell.pair, cell.strategy) == (pair.name, strategy.name)
                for row in records.rows
            ]
            found.append(false_alarms(pair.name, strategy.name, strategy.margin_floor or 0.0, rows))
    return tuple(found)


def _comparisons(suite: Suite, searches: Sequence[SearchRow]) -> tuple[Comparison, ...]:
    if suite.baseline is None:
        return ()
    groups: dict[tuple[str, str], list[SearchRow]] = {}
    for row in searches:
        groups.setdefault((row.pair, row.strategy), []).append(row)
    found = []
    for (pair, strategy), rows in groups.items():
        baseline = groups.get((pair, suite.baseline))
        if strategy == suite.baseline or baseline is None:
            continue
        comparison = compare(rows, baseline)
        if comparison is not None:
            found.append(comparison)
    return adjusted(found)


def _correlations(suite: Suite, figures: Sequence[CellFigures]) -> tuple[Correlation, ...]:
    studies: dict[str, dict[str, float]] = {}
    for pair in suite.pairs:
        if pair.study is not None and pair.x is not None:
            studies.setdefault(pair.study, {})[pair.name] = pair.x
    return tuple(
        correlate(study, strategy, xs, figures)
        for study, xs in studies.items()
        for strategy in dict.fromkeys(one.strategy for one in figures if one.pair in xs)
    )


def _resolved(read: Mapping[Cell, CellRecords]) -> tuple[ResolvedSearch, ...]:
    told = [
        ResolvedSearch(cell.pair, cell.strategy, **records.resolved)
        for cell, records in read.items()
        if records.resolved
    ]
    return tuple(dict.fromkeys(told))


def _devices(all_records: Iterable[CellRecords]) -> tuple[BenchDevice, ...]:
    known: dict[str, tuple[dict[str, None], dict[str, Any]]] = {}
    for records in all_records:
        for device in records.devices:
            names, _ = known.setdefault(device.digest, ({}, device.fingerprint))
            names[device.name] = None
    return tuple(BenchDevice(tuple(names), fingerprint) for names, fingerprint in known.values())


def _environments(all_records: Iterable[CellRecords]) -> tuple[dict[str, Any], ...]:
    merged: dict[str, dict[str, Any]] = {}
    for records in all_records:
        merged |= records.environments
    return tuple(merged.values())

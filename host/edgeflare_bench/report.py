"""All figures of a bench's report."""

import shlex
from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from edgeflare._internal.records import JsonRecord
from edgeflare.errors import UsageError
from edgeflare_bench.cell_figures import CellFigures, FalseAlarms, cell_figures, false_alarms
from edgeflare_bench.cells import Bench, Cell, cells, open_bench
from edgeflare_bench.comparisons import Comparison, Correlation, adjusted, compare, correlate
from edgeflare_bench.searches import CellRecords, SearchRow, Similarities, read_cell
from edgeflare_bench.suite import Suite, load_suite, suite_about, suite_names
from edgeflare_bench.words import report as words

_Cells = dict[Cell, CellRecords]


def _distinct_models(read: _Cells) -> dict[str, tuple[dict[str, Any], ...]]:
    """Return for each pair what its cells had as models, each once; wherever the files lay."""
    found: dict[str, list[dict[str, Any]]] = {}
    for cell, records in read.items():
        if not records.models:
            continue
        known = found.setdefault(cell.pair, [])
        if all(_content(records.models) != _content(models) for models in known):
            known.append(records.models)
    return {pair: tuple(models) for pair, models in found.items()}


def _content(models: Mapping[str, Any]) -> dict[str, Any]:
    return {
        side: {key: value for key, value in (model or {}).items() if key != "path"}
        for side, model in models.items()
    }


def _notices(
    suite: Suite, read: _Cells, finished: Collection[Cell], similarities: Similarities
) -> Iterator[str]:
    """Yield what is to be known of the figures, first where cells of one pair don't fit together."""
    for pair in dict.fromkeys(cell.pair for cell in read):
        own = {cell: records for cell, records in read.items() if cell.pair == pair}
        for key, sentence in ((_sums, words.other_models), (_digests, words.other_devices)):
            groups = _groups(own, key)
            if len(groups) > 1:
                yield sentence(pair, groups)
    for cell, records in read.items():
        yield from (f"{cell.name}: {text}" for text in records.forced)
    if similarities.notice:
        yield similarities.notice
    for cell, records in read.items():
        if cell not in finished and records.rows:
            yield words.UNFINISHED.format(cell.name, len(records.rows))
    if suite.baseline is not None and suite.baseline not in {one.name for one in suite.strategies}:
        yield words.NO_BASELINE.format(suite.baseline)


def _groups(read: _Cells, key: Callable[[CellRecords], Hashable]) -> list[_Cells]:
    """Return the cells of which something is known in groups of one `key`, the largest first."""
    groups: dict[Hashable, _Cells] = {}
    for cell, records in read.items():
        if key(records):
            groups.setdefault(key(records), {})[cell] = records
    return sorted(groups.values(), key=len, reverse=True)


def _sums(records: CellRecords) -> Hashable:
    sums = tuple(records.model(side).get("sha256") for side in ("original", "deployed"))
    return sums if any(sums) else None


def _digests(records: CellRecords) -> Hashable:
    return frozenset(device.digest for device in records.devices)


_DATA = Path(__file__).parent / "faults"  # stands in for the folder of --data: any without assets
_NUMBERS = ("seeds", "repeats", "max_queries")
_PATHS = {
    "pairs": {"__all__": {"original": {"path"}, "deployed": {"path"}, "seeds": {"path", "labels"}}}
}


def command(suite: Suite, devices: Sequence[str]) -> str | None:
    """Return the command that runs this suite on these devices; None of one that isn't packaged.

    It makes the same cells of the same files: paths may differ in the folders that --data named,
    and in where EdgeFlare is installed.
    """
    if suite.name not in suite_names():
        return None
    try:
        flags = _flags(suite, load_suite(suite.name, data=_DATA))
    except UsageError:
        return None
    if flags is None:
        return None
    if list(devices) != ["local"]:
        flags += [("device", device) for device in devices]
    parts = [part for flag, value in flags for part in (f"--{flag.replace('_', '-')}", str(value))]
    return shlex.join(["edgeflare", "bench", "run", suite.name, *parts])


def _flags(suite: Suite, packaged: Suite) -> list[tuple[str, Any]] | None:
    """Return a packaged suite's folders and the fewest flags that narrow it to this one, if any."""
    pairs = [pair.name for pair in suite.pairs]
    strategies = [strategy.name for strategy in suite.strategies]
    if len(pairs) == len(packaged.pairs):
        pairs = []
    if len(strategies) == len(packaged.strategies):
        strategies = []
    narrowed = packaged.narrowed(pairs=pairs, strategies=strategies)
    numbers = {
        name: getattr(suite, name)
        for name in _NUMBERS
        if _values(suite, name) != _values(narrowed, name)
    }
    narrowed = packaged.narrowed(pairs=pairs, strategies=strategies, **numbers)
    folders = _data_folders(suite, narrowed)
    if folders is None or suite.model_dump(exclude=_PATHS) != narrowed.model_dump(exclude=_PATHS):
        return None
    return [
        *[("data", "FOLDER")] * max(folders, suite_about(suite.name).needs_data),
        *(("pair", name) for name in pairs),
        *(("strategy", name) for name in strategies),
        *numbers.items(),
    ]


def _values(suite: Suite, name: str) -> list[Any]:
    """Return a number of the suite, and those of its strategies."""
    return [getattr(one, name) for one in (suite, *suite.strategies)]


def _data_folders(suite: Suite, packaged: Suite) -> int | None:
    """Return the number of --data folders with the packaged suite's files; None: in none."""
    folders = set()
    for own, its in zip(_paths(suite), _paths(packaged), strict=True):
        if own is None or its is None:
            if own is not its:
                return None
        elif its.is_relative_to(_DATA):
            rest = its.relative_to(_DATA).parts
            if own.parts[-len(rest) :] != rest:
                return None
            folders.add(own.parts[: -len(rest)])
        elif own.parts[-2:] != its.parts[-2:]:
            return None
    return len(folders)


def _paths(suite: Suite) -> Iterator[Path | None]:
    for pair in suite.pairs:
        yield pair.original.path
        yield None if pair.deployed is None else pair.deployed.path
        yield pair.seeds.path
        yield pair.seeds.labels


@dataclass(frozen=True)
class BenchDevice:
    """Devices of one fingerprint that took part, by name."""

    names: tuple[str, ...]
    fingerprint: dict[str, Any]


@dataclass(frozen=True)
class ResolvedSearch:
    """Options that a boundary search chose by the cost of queries, on one pair."""

    pair: str
    strategy: str
    crossing: str
    effort: int
    tied_classes: int
    candidates: int


@dataclass(frozen=True)
class BenchReport(JsonRecord):
    """What a bench found so far; figures, comparisons and correlations are over its finished cells.

    `suite` is the suite's name, `settings` the whole of it as JSON, `asked_devices` the devices
    that it was given, `command` the one that runs the same again (None where the suite is not a
    packaged one). `cells` has a row for each pair and strategy; `comparisons` one for each strategy
    but the `baseline` on each pair; `correlations` one for each study and strategy; `false_alarms`
    one for each strategy on each control pair. `finished`, `unfinished` and `missing` are cells by
    name (pair/strategy/repeat), `failed` those that can't be run, and why. `queries` counts by kind
    over all outcomes. `devices`, `environments` (versions on the host) and `models` (of each pair;
    several where cells had different ones) are what the searches ran on. `resolved` has a row for
    each pair and strategy of the boundary search (several where cells differ). `notices` say, among
    others, where cells of one pair don't belong together. `audio` names the pairs whose samples are
    audio. `searches` are all that have ended; they are not in the JSON.
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
    searches: Annotated[tuple[SearchRow, ...], Field(exclude=True)]
    audio: tuple[str, ...] = ()


def bench_report(bench: Bench | Path) -> BenchReport:
    """Read a bench, or its folder, finished or not.

    Without scikit-image SSIM is None; a notice says so. Raises UsageError or StoreError for a
    folder that is no bench, StoreError where a campaign can't be read.
    """
    if not isinstance(bench, Bench):
        bench = open_bench(Path(bench))
    suite = bench.suite
    similarities = Similarities(bench.folder)
    read = {cell: read_cell(bench, cell, similarities) for cell in cells(suite)}
    states = {cell: bench.state(cell) for cell in read}
    finished = {cell: one for cell, one in read.items() if states[cell] == "finished"}
    figures = _figures(suite, finished)
    names = {cell.name for cell in read}
    failed = {name: why for name, why in bench.failed.items() if name in names}

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
        comparisons=_comparisons(suite, finished),
        correlations=_correlations(suite, figures),
        false_alarms=_false_alarms(suite, finished),
        finished=named("finished"),
        unfinished=named("unfinished"),
        missing=named("missing"),
        failed=failed,
        queries={kind: queries[kind] for kind in ("seed", "search", "confirmation", "host_only")},
        devices=_devices(read.values()),
        environments=tuple(
            {
                key: one for records in read.values() for key, one in records.environments.items()
            }.values()
        ),
        models=_distinct_models(read),
        resolved=_resolved(read),
        notices=tuple(_notices(suite, read, finished, similarities)),
        settings=suite.model_dump(mode="json"),
        searches=tuple(row for records in read.values() for row in records.rows),
        audio=tuple(dict.fromkeys(cell.pair for cell, one in read.items() if one.sample_rate)),
    )


def _figures(suite: Suite, read: _Cells) -> tuple[CellFigures, ...]:
    return tuple(
        cell_figures(
            pair.name,
            strategy.name,
            _rows(read, pair.name, strategy.name),
            max_queries=strategy.max_queries or 0,
            timeout_s=strategy.timeout_s or 0.0,
            ties=len(
                {seed for one in _of_search(read, pair.name, strategy.name) for seed in one.ties}
            ),
            published=[
                one
                for one in suite.published
                if (one.pair, one.strategy) == (pair.name, strategy.name)
            ],
        )
        for pair in suite.pairs
        for strategy in suite.strategies_of(pair.name)
    )


def _of_search(read: _Cells, pair: str, strategy: str) -> list[CellRecords]:
    """Return the records of all repeats of a strategy on a pair."""
    return [one for cell, one in read.items() if (cell.pair, cell.strategy) == (pair, strategy)]


def _rows(read: _Cells, pair: str, strategy: str) -> list[SearchRow]:
    return [row for records in _of_search(read, pair, strategy) for row in records.rows]


def _false_alarms(suite: Suite, read: _Cells) -> tuple[FalseAlarms, ...]:
    return tuple(
        false_alarms(
            pair.name,
            strategy.name,
            strategy.margin_floor or 0.0,
            _rows(read, pair.name, strategy.name),
        )
        for pair in suite.pairs
        if pair.control
        for strategy in suite.strategies_of(pair.name)
    )


def _comparisons(suite: Suite, read: _Cells) -> tuple[Comparison, ...]:
    if suite.baseline is None:
        return ()
    found = (
        compare(_rows(read, pair, strategy), _rows(read, pair, suite.baseline))
        for pair, strategy in dict.fromkeys((cell.pair, cell.strategy) for cell in read)
        if strategy != suite.baseline
    )
    return adjusted([comparison for comparison in found if comparison is not None])


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
    resolved = [
        ResolvedSearch(cell.pair, cell.strategy, **records.resolved)
        for cell, records in read.items()
        if records.resolved
    ]
    return tuple(dict.fromkeys(resolved))


def _devices(all_records: Iterable[CellRecords]) -> tuple[BenchDevice, ...]:
    known: dict[str, BenchDevice] = {}
    for device in (device for records in all_records for device in records.devices):
        names = known[device.digest].names if device.digest in known else ()
        known[device.digest] = BenchDevice(
            tuple(dict.fromkeys((*names, device.name))), device.fingerprint
        )
    return tuple(known.values())

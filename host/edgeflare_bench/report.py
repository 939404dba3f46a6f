"""All figures of a bench's report."""

import shlex
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import combinations
from pathlib import Path
from typing import Any

from edgeflare.analysis.findings import jsonable
from edgeflare.devices.fingerprints import differences
from edgeflare.errors import UsageError
from edgeflare.store import DeviceRecord
from edgeflare_bench.cell_figures import (
    CellFigures,
    FalseAlarms,
    PublishedFigures,
    cell_figures,
    false_alarms,
)
from edgeflare_bench.cells import Bench, Cell, cells, open_bench
from edgeflare_bench.comparisons import Comparison, Correlation, adjusted, compare, correlate
from edgeflare_bench.searches import CellRecords, SearchRow, Similarities, read_cell
from edgeflare_bench.suite import Suite, load_suite, suite_about, suite_names

_SHOWN = 5
_SIDES = ("original", "deployed")

_Cells = dict[Cell, CellRecords]


def _distinct_models(read: Mapping[Cell, CellRecords]) -> dict[str, tuple[dict[str, Any], ...]]:
    """Return for each pair what its cells had as models, each once; wherever the files lay."""
    found: dict[str, list[dict[str, Any]]] = {}
    for cell, records in read.items():
        if not records.models:
            continue
        known = found.setdefault(cell.pair, [])
        if all(_content(records.models) != _content(one) for one in known):
            known.append(records.models)
    return {pair: tuple(models) for pair, models in found.items()}


def _consistency_notices(read: Mapping[Cell, CellRecords]) -> Iterator[str]:
    """Yield a sentence for each pair whose cells differ in models or devices, naming the cells.

    Last come the cells that went on with ``--force`` although something had changed.
    """
    for pair in dict.fromkeys(cell.pair for cell in read):
        own = {cell: one for cell, one in read.items() if cell.pair == pair}
        yield from _differing(pair, "with the same models", own, _models_key, _describe_models)
        yield from _differing(pair, "on the same devices", own, _devices_key, _describe_devices)
    for cell, records in read.items():
        yield from (f"{cell.name}: {text}" for text in records.forced)


def _differing(
    pair: str,
    how: str,
    read: _Cells,
    key: Callable[[CellRecords], Hashable],
    describe: Callable[[CellRecords, CellRecords], str],
) -> Iterator[str]:
    """Yield a sentence where `key` differs between cells; the largest group comes last."""
    groups: dict[Hashable, _Cells] = {}
    for cell, records in read.items():
        one = key(records)
        if one:
            groups.setdefault(one, {})[cell] = records
    if len(groups) < 2:
        return
    most, *others = sorted(groups.values(), key=len, reverse=True)
    usual = next(iter(most.values()))
    parts = [
        f"{', '.join(cell.name for cell in group)} {describe(next(iter(group.values())), usual)}"
        for group in others
    ]
    rest = f"{len(most)} others" if len(most) > 1 else next(iter(most)).name
    parts.append(f"{rest} {describe(usual, next(iter(others[0].values())))}")
    yield (
        f"the cells of {pair} were not all run {how}, so that their figures don't belong together: "
        + "; ".join(parts)
    )


def _models_key(records: CellRecords) -> Hashable:
    sums = tuple(_model(records, side).get("sha256") for side in _SIDES)
    return sums if any(sums) else None


def _describe_models(records: CellRecords, other: CellRecords) -> str:
    """Return the models that differ from the other cell's."""
    named = []
    for side in _SIDES:
        model = _model(records, side)
        if model.get("sha256") != _model(other, side).get("sha256"):
            name, start = model.get("name", "unknown"), str(model.get("sha256", ""))[:16]
            named.append(f"{side} {name}, SHA-256 {start}")
    return f"({'; '.join(named)})"


def _model(records: CellRecords, side: str) -> dict[str, Any]:
    return records.models.get(side) or {}


def _devices_key(records: CellRecords) -> Hashable:
    return frozenset(device.digest for device in records.devices)


def _describe_devices(records: CellRecords, other: CellRecords) -> str:
    """Return the devices, with their differences from the other cell's."""
    named = {device.name: device for device in other.devices}
    like = {device.digest for device in other.devices}
    parts = []
    for device in records.devices:
        fields = []
        if device.digest not in like:
            before = named.get(device.name, other.devices[0])
            fields = _fields(before, device)
        parts.append(f"{device.name}{' with ' if fields else ''}{', '.join(fields)}")
    return f"(on {'; '.join(parts)})"


def _fields(before: DeviceRecord, device: DeviceRecord) -> list[str]:
    found = differences(before.fingerprint, device.fingerprint)
    return [f"{name} {value}" for name, _, value in found[:_SHOWN]]


def _content(models: Mapping[str, Any]) -> dict[str, Any]:
    return {
        side: {key: value for key, value in (model or {}).items() if key != "path"}
        for side, model in models.items()
    }


_DATA = Path(__file__).parent / "faults"  # stands in for the folder of --data: any without assets
_NUMBERS = ("seeds", "repeats", "max_queries")


def command(suite: Suite, devices: Sequence[str]) -> str | None:
    """Return the command that runs this suite on these devices; None of one that isn't packaged.

    It makes the same cells of the same files: paths may differ in the folders that --data named,
    and in where EdgeFlare is installed.
    """
    if suite.name not in suite_names():
        return None
    try:
        packaged = load_suite(suite.name, data=_DATA)
        flags = _flags(suite, packaged)
    except UsageError:
        return None
    if flags is None:
        return None
    flags_of_devices = [
        part for device in devices if list(devices) != ["local"] for part in ("--device", device)
    ]
    return shlex.join(["edgeflare", "bench", "run", suite.name, *flags, *flags_of_devices])


def _flags(suite: Suite, packaged: Suite) -> list[str] | None:
    """Return a packaged suite's folders and the fewest flags that narrow it to this one, if any."""
    pairs = [pair.name for pair in suite.pairs]
    strategies = [strategy.name for strategy in suite.strategies]
    if len(pairs) == len(packaged.pairs):
        pairs = []
    if len(strategies) == len(packaged.strategies):
        strategies = []
    wanted = _compared(suite)
    choices = (some for count in range(len(_NUMBERS) + 1) for some in combinations(_NUMBERS, count))
    for chosen in choices:
        numbers = {key: getattr(suite, key) for key in chosen}
        narrowed = packaged.narrowed(pairs=pairs, strategies=strategies, **numbers)
        folders = _data_folders(suite, narrowed)
        if _compared(narrowed) == wanted and folders is not None:
            return [
                *(["--data", "FOLDER"] * max(folders, suite_about(suite.name).needs_data)),
                *(part for name in pairs for part in ("--pair", name)),
                *(part for name in strategies for part in ("--strategy", name)),
                *(
                    part
                    for key, value in numbers.items()
                    for part in (f"--{key.replace('_', '-')}", str(value))
                ),
            ]
    return None


def _compared(suite: Suite) -> dict[str, Any]:
    """Return a suite's values but for its paths."""
    values = suite.model_dump(mode="json")
    for pair in values["pairs"]:
        for key in ("original", "deployed", "seeds"):
            if pair[key]:
                pair[key].pop("path")
        pair["seeds"].pop("labels")
    return values


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
class BenchReport:
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

    Without scikit-image SSIM is None; a notice says so. Raises UsageError or StoreError for a
    folder that is no bench, StoreError where a campaign can't be read.
    """
    if not isinstance(bench, Bench):
        bench = open_bench(Path(bench))
    suite = bench.suite
    similarities = Similarities(bench.folder)
    read = {cell: read_cell(bench, cell, similarities) for cell in cells(suite)}
    notices = [*_consistency_notices(read), *([similarities.notice] if similarities.notice else [])]
    searches = tuple(row for records in read.values() for row in records.rows)
    states = {cell: bench.state(cell) for cell in read}
    whole = {cell: one for cell, one in read.items() if states[cell] == "finished"}
    notices += [
        f"{cell.name} is not finished: of its searches those that end first are the quick ones, so "
        f"that the {len(one.rows):,} so far are not counted"
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
        models=_distinct_models(read),
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
            mine = _of_search(read, pair.name, strategy.name)
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


def _of_search(read: Mapping[Cell, CellRecords], pair: str, strategy: str) -> list[CellRecords]:
    """Return the records of all repeats of a strategy on a pair."""
    return [one for cell, one in read.items() if (cell.pair, cell.strategy) == (pair, strategy)]


def _false_alarms(suite: Suite, read: Mapping[Cell, CellRecords]) -> tuple[FalseAlarms, ...]:
    found = []
    for pair in (pair for pair in suite.pairs if pair.control):
        for strategy in suite.strategies_of(pair.name):
            searches = _of_search(read, pair.name, strategy.name)
            rows = [row for records in searches for row in records.rows]
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
    resolved = [
        ResolvedSearch(cell.pair, cell.strategy, **records.resolved)
        for cell, records in read.items()
        if records.resolved
    ]
    return tuple(dict.fromkeys(resolved))


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

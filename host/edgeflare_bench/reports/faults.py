"""The fault suite's tables, each stated once for the terminal and for ``report.md``."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from edgeflare._internal.text import NOTHING, number_text, percent_text
from edgeflare.document import Block, Column, Heading, Item, Listing, Table, Text
from edgeflare.reports.document import to_markdown
from edgeflare.statistics import upper_bound
from edgeflare_bench.faults.evaluation import (
    FEW_QUERIES,
    QUERIES,
    SURVEY_QUERIES,
    Response,
    SearchResult,
    area_under_curve,
)
from edgeflare_bench.faults.suite import Evaluated, FaultBench
from edgeflare_bench.reports.writing import json_bytes, write_files
from edgeflare_bench.words import faults as words

_SIZES = {
    "large": ("large",),
    "medium": ("medium",),
    "large and medium": ("large", "medium"),
    "mild": ("mild",),
}


class FaultRow(NamedTuple):
    """Faults of a size found by a method with `budget` device queries a seed, of `faults` in all.

    `triggers`: how many have a trigger of any margin. `queries`: median up to the first confident
    deviation, of those found. `worse`, `undecided`: verdicts of the survey that has the budget for
    itself; `detected`: found, or called worse; `area`: under the curve of healthy against faulty, by
    its excess drift.
    """

    original: str
    size: str
    method: str
    budget: int
    faults: int
    found: int
    triggers: int
    queries: float | None
    worse: int | None = None
    undecided: int | None = None
    detected: int | None = None
    area: float | None = None


class HealthyRow(NamedTuple):
    """Verdicts on healthy models of one kind, or of all; `high`: the upper bound of the rate."""

    original: str
    kind: str
    references: str
    models: int
    sound: int
    worse: int
    high: float


def fault_rows(bench: FaultBench) -> list[FaultRow]:
    """Return the figures of all faults with a witness, by original, size and method."""
    found: list[FaultRow] = []
    for name in _originals(bench):
        own = [one for one in bench.evaluated if one.original == name]
        healthy = [one for one in own if not one.size]
        for size, sizes in _SIZES.items():
            faults = [one for one in own if one.size in sizes and not one.without]
            found += _rows(name, size, faults, healthy) if faults else ()
    return found


def _rows(
    name: str, size: str, faults: Sequence[Evaluated], healthy: Sequence[Evaluated]
) -> Iterator[FaultRow]:
    def row(
        method: str, results: Sequence[SearchResult], budget: int = QUERIES, **more: Any
    ) -> FaultRow:
        hits = [one.queries for one in results if one.found]
        counts = len(results), len(hits), sum(one.triggers for one in results)
        return FaultRow(name, size, method, budget, *counts, median(hits) if hits else None, **more)

    yield row("survey and pursuit", [one.searches["survey"] for one in faults])
    for count in (QUERIES, SURVEY_QUERIES, FEW_QUERIES):
        seen = [one.surveys[count] for one in faults]
        verdicts = [one.verdict for one in seen]
        yield row(
            "survey",
            [one.as_search for one in seen],
            count,
            worse=verdicts.count("worse"),
            undecided=verdicts.count("cannot-tell"),
            detected=sum(bool(one.first) or one.verdict == "worse" for one in seen),
            area=area_under_curve(
                [one.surveys[count].excess or 0.0 for one in healthy],
                [one.excess or 0.0 for one in seen],
            ),
        )
    for method in faults[0].searches:
        if method != "survey":
            yield row(method, [one.searches[method] for one in faults])


def healthy_rows(bench: FaultBench) -> list[HealthyRow]:
    """Return the verdicts with `QUERIES` queries a seed on healthy models, by original and kind."""
    found: list[HealthyRow] = []
    names = _originals(bench)
    for name in [*names, *([""] if len(names) > 1 else [])]:
        own = [one for one in bench.evaluated if not one.size and name in ("", one.original)]
        for kind in [*dict.fromkeys(one.kind for one in own if name), ""]:
            of_kind = [one for one in own if kind in ("", one.kind)]
            responses: dict[str, list[Response | None]] = {
                "its own float model": [one.surveys[QUERIES] for one in of_kind],
                "the original": [one.by_original for one in of_kind],
            }
            for references, seen in responses.items():
                verdicts = [one.verdict for one in seen if one is not None]
                worse, models = verdicts.count("worse"), len(verdicts)
                counts = (models, verdicts.count("sound"), worse)
                labels = (name or "all originals", kind or "all", references)
                if models:
                    found.append(HealthyRow(*labels, *counts, upper_bound(worse, models)))
    return found


def _of_all(row: FaultRow, count: int | None) -> str:
    return NOTHING if count is None else f"{count} of {row.faults}"


_FAULT_COLUMNS = (
    Column("original", 1, lambda row: row.original, text=True),
    Column("size", 0, lambda row: row.size, text=True),
    Column("method, queries a seed", 0, lambda row: f"{row.method}, {row.budget}", text=True),
    Column("found", 0, lambda row: f"{row.found} of {row.faults}"),
    Column("share", 2, lambda row: percent_text(row.found / row.faults, 0)),
    Column("any trigger", 6, lambda row: _of_all(row, row.triggers)),
    Column("median queries", 4, lambda row: number_text(row.queries, 0)),
    Column("worse", 0, lambda row: _of_all(row, row.worse)),
    Column("can't tell", 3, lambda row: _of_all(row, row.undecided)),
    Column("found or worse", 0, lambda row: _of_all(row, row.detected)),
    Column("AUC", 0, lambda row: number_text(row.area, 3)),
)
_HEALTHY_COLUMNS = (
    Column("original", 1, lambda row: row.original, text=True),
    Column("kind", 0, lambda row: row.kind, text=True),
    Column("int8 of", 2, lambda row: row.references, text=True),
    Column("models", 0, lambda row: str(row.models)),
    Column("sound", 0, lambda row: str(row.sound)),
    Column("can't tell", 0, lambda row: str(row.models - row.sound - row.worse)),
    Column("called worse", 0, lambda row: str(row.worse)),
    Column("at most", 0, lambda row: percent_text(row.high)),
)


def fault_document(bench: FaultBench) -> list[Block]:
    """Return the report of a bench of the fault suite."""
    healthy = [one for one in bench.evaluated if not one.size]
    faults = [one for one in bench.evaluated if one.size]
    counting = [one for one in faults if not one.without]
    worse = [one for one in healthy if one.surveys[QUERIES].verdict == "worse"]
    missed = [one for one in counting if not one.searches["survey"].found]
    not_worse = [one for one in counting if one.surveys[QUERIES].verdict != "worse"]
    return [
        Heading("Fault suite", 1),
        Text(words.about(bench)),
        Heading("Faults", 2),
        Table(_FAULT_COLUMNS, fault_rows(bench)),
        Heading("Healthy models", 2),
        Text(words.SURVEYED.format(QUERIES)),
        Table(_HEALTHY_COLUMNS, healthy_rows(bench)),
        *_listed(words.CALLED_WORSE, worse, _excess),
        *_listed(words.MISSED, missed, _excess),
        *_listed(
            words.NOT_WORSE.format(QUERIES),
            not_worse,
            lambda one: f"{one.surveys[QUERIES].verdict}, {_excess(one)}",
        ),
        *_listed(words.EQUIVALENT, [one for one in faults if one.without], lambda one: one.without),
    ]


def _excess(one: Evaluated) -> str:
    return words.excess(one, QUERIES)


def _listed(
    title: str, models: Sequence[Evaluated], why: Callable[[Evaluated], str]
) -> Iterator[Block]:
    if models:
        yield Heading(f"{title} ({len(models)})", 2)
        yield Listing(tuple(Item(f"{one.original}: {one.name} ({why(one)})") for one in models))


def _originals(bench: FaultBench) -> list[str]:
    return list(dict.fromkeys(one.original for one in bench.evaluated))


def fault_report(bench: FaultBench) -> dict[str, Any]:
    """Return the report as a JSON object: settings, rows and every model."""
    return {
        "suite": bench.suite.model_dump(mode="json"),
        "faults": [row._asdict() for row in fault_rows(bench)],
        "healthy": [row._asdict() for row in healthy_rows(bench)],
        "models": [one.to_json() for one in bench.evaluated],
    }


def write_fault_report(bench: FaultBench) -> Path:
    """Write ``report.md`` and ``report.json``; return the first. Raises StoreError."""
    text = f"{to_markdown(fault_document(bench))}\n"
    values = json_bytes(fault_report(bench))
    return write_files(bench.folder, {"report.md": text.encode(), "report.json": values})[0]

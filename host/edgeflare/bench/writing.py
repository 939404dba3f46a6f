"""The files of a bench's report."""

import csv
import io
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, fields, replace
from pathlib import Path
from typing import Any

import numpy as np

from edgeflare.analysis.written import written_to
from edgeflare.bench.cell_figures import WITHIN_SECONDS, CellFigures
from edgeflare.bench.cells import Cell
from edgeflare.bench.figures import histograms
from edgeflare.bench.markdown import markdown
from edgeflare.bench.report import BenchReport
from edgeflare.bench.rows import SearchRow
from edgeflare.bench.similarity import SEARCHES_NAME
from edgeflare.errors import UsageError
from edgeflare.store.samples import write_durably
from edgeflare.types import Status

SUMMARY_COLUMNS = (
    *("pair", "strategy", "seeds", "searches", "searched", "found", "success_rate"),
    *("queries_mean", "queries_low", "queries_high", "queries_median", "queries_p90"),
    *("queries_spent_mean", "seconds_mean", "seconds_median"),
    *(f"found_within_{limit}_s" for limit in WITHIN_SECONDS),
    *("unique", "duplicates", "ties", "l2_median", "linf_median", "ssim_median"),
    *("original_margin_median", "deployed_margin_median", "smaller_margin_median", "label_kept"),
    *(status.value.replace("-", "_") for status in Status if status is not Status.FOUND),
    *("published_source", "published_queries", "published_success", "published_seconds"),
)
"""The columns of summary.csv; empty where nothing is known."""

SEARCH_COLUMNS = tuple(field.name for field in fields(SearchRow))
"""The columns of searches.csv; see `SearchRow`."""


_HISTOGRAMS = "histograms"


def write_report(report: BenchReport, folder: Path) -> list[Path]:
    """Write report.md, report.json, summary.csv, searches.csv and a histogram a pair; return their paths.

    Each file takes the place of an earlier one once it is whole; histograms that an earlier report had
    and this one has not are removed. Without matplotlib there are no histograms, and
    the report says so. Raises StoreError where the folder can't be written, DiskFullError where no
    space is left.
    """
    pictures, notice = _histograms(report)
    if notice:
        report = replace(report, notices=(*report.notices, notice))
    links = {pair: f"{_HISTOGRAMS}/{_file_name(pair)}" for pair in pictures}
    summary = (line for cell in report.cells for line in _summary_lines(cell))
    files = {
        "report.md": markdown(report, links).encode(),
        "report.json": json.dumps(report.to_json(), indent=2, allow_nan=False).encode(),
        "summary.csv": _csv(SUMMARY_COLUMNS, summary),
        SEARCHES_NAME: _csv(SEARCH_COLUMNS, map(asdict, report.searches)),
        **{links[pair]: picture for pair, picture in pictures.items()},
    }
    with written_to(
        folder,
        untouched="the bench itself",
        again="run `edgeflare bench show` again",
        instead="check its permissions",
    ):
        for name, data in files.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            write_durably(path, data)
        for path in (folder / _HISTOGRAMS).glob("*.png"):
            if path.relative_to(folder).as_posix() not in files:
                path.unlink()
    return [folder / name for name in files]


def _histograms(report: BenchReport) -> tuple[dict[str, bytes], str]:
    """Return a PNG for each pair with a triggering input, and why there are none."""
    pictures = {}
    for pair in dict.fromkeys(row.pair for row in report.searches if row.found):
        strategies = [cell.strategy for cell in report.cells if cell.pair == pair]
        queries, seeds = {}, {}
        for strategy in strategies:
            groups: dict[str, list[int]] = {}
            for row in report.searches:
                if (row.pair, row.strategy) == (pair, strategy) and row.searched:
                    groups.setdefault(row.seed_id, []).extend([row.queries] if row.found else [])
            queries[strategy] = [float(np.mean(group)) for group in groups.values() if group]
            seeds[strategy] = len(groups)
        try:
            pictures[pair] = histograms(pair, queries, seeds)
        except UsageError as error:
            return {}, str(error)
    return pictures, ""


def _file_name(pair: str) -> str:
    """Return a picture's name, plain as the pair's folder is."""
    return f"{Cell(pair, 'x', 0).name.split('/')[0]}.png"


def _summary_lines(cell: CellFigures) -> Iterator[dict[str, Any]]:
    """Yield a line, and one more for each further source of published figures."""
    low, high = cell.queries_interval or (None, None)
    line = asdict(cell) | {
        "queries_mean": cell.queries,
        "queries_low": low,
        "queries_high": high,
        "queries_spent_mean": cell.queries_spent,
        "seconds_mean": cell.seconds,
        **{f"found_within_{limit}_s": cell.within[str(limit)] for limit in WITHIN_SECONDS},
        **{
            f"{name}_median": getattr(cell, name)
            for name in (
                *("l2", "linf", "ssim"),
                *("original_margin", "deployed_margin", "smaller_margin"),
            )
        },
        **{
            name.replace("-", "_"): count
            for name, count in cell.by_status.items()
            if name != "found"
        },
    }
    for one in cell.published or (None,):
        told = (
            {} if one is None else {f"published_{key}": part for key, part in asdict(one).items()}
        )
        yield line | told


def _csv(columns: Sequence[str], lines: Iterable[Mapping[str, Any]]) -> bytes:
    file = io.StringIO(newline="")
    writer = csv.DictWriter(file, columns, extrasaction="ignore", lineterminator="\n")
    writer.writeheader()
    writer.writerows(lines)
    return file.getvalue().encode()

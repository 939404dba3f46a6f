"""The files of a bench's report."""

import csv
import io
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import reduce
from pathlib import Path
from typing import Any

from edgeflare._internal.files import write_durably
from edgeflare._internal.records import as_json
from edgeflare.analysis.findings import csv_cell, jsonable
from edgeflare.reports.document import to_markdown
from edgeflare.reports.export import translate_write_errors
from edgeflare.types import Status
from edgeflare_bench.cell_figures import DELAYS_MS, WITHIN_SECONDS, CellFigures
from edgeflare_bench.report import BenchReport
from edgeflare_bench.reports.document import bench_document
from edgeflare_bench.reports.pictures import draw
from edgeflare_bench.searches import COLUMNS, SEARCHES_NAME
from edgeflare_bench.suite import plain
from edgeflare_bench.words.report import REPORT_ERRORS


def _same(*names: str, end: str = "") -> dict[str, str]:
    return {f"{name}{end}": name for name in names}


_SUMMARY = {
    **_same("pair", "strategy", "seeds", "searches", "searched", "found", "success_rate"),
    "queries_mean": "queries",
    "queries_low": "queries_interval.0",
    "queries_high": "queries_interval.1",
    **_same("queries_median", "queries_p90"),
    **_same("queries_spent", "seconds", end="_mean"),
    **_same("seconds_median"),
    **{f"found_within_{limit}_s": f"within.{limit}" for limit in WITHIN_SECONDS},
    "device_queries_mean": "costs.device_queries",
    "round_trips_mean": "costs.round_trips",
    "host_queries_mean": "costs.host_queries",
    "host_queries_median": "costs.host_queries_median",
    **{f"seconds_mean_at_{delay}_ms": f"costs.seconds_at.{delay}" for delay in DELAYS_MS if delay},
    **_same("unique", "duplicates", "ties"),
    **_same("l2", "linf", "ssim", "snr_db", end="_median"),
    **_same("original_margin", "deployed_margin", "smaller_margin", end="_median"),
    **_same("label_kept"),
    **{
        status.value.replace("-", "_"): f"by_status.{status.value}"
        for status in Status
        if status is not Status.FOUND
    },
}
"""The columns of summary.csv, and where their figures stand in the JSON of `CellFigures`; an unknown
one is empty."""

_PUBLISHED = ("source", "queries", "success", "seconds")
_HISTOGRAMS, _FRONTS = "histograms", "fronts"


def write_report(report: BenchReport, folder: Path) -> list[Path]:
    """Write the report's texts, tables and two pictures a pair; return the files' paths.

    These are ``report.md``, ``report.json``, ``summary.csv``, ``searches.csv``, and the pictures
    ``histograms/PAIR.png`` of queries and ``fronts/PAIR.png`` of margins. Each file takes the place
    of an earlier one once it is whole; pictures that an earlier report had and this one has not are
    removed. Without matplotlib there are no pictures, and the report says so.
    Raises StoreError where the folder can't be written, DiskFullError where no space is left.
    """
    *pictures, notice = draw(report)
    if notice:
        report = replace(report, notices=(*report.notices, notice))
    links, fronts = (
        {pair: f"{folder_name}/{plain(pair)}.png" for pair in drawn}
        for folder_name, drawn in zip((_HISTOGRAMS, _FRONTS), pictures, strict=True)
    )
    summary = (line for cell in report.cells for line in _summary_lines(cell))
    searches = (row.to_json() for row in report.searches)
    columns = (*_SUMMARY, *(f"published_{name}" for name in _PUBLISHED))
    paths = write_files(
        folder,
        {
            "report.md": f"{to_markdown(bench_document(report, links, fronts))}\n".encode(),
            "report.json": json_bytes(report.to_json()),
            "summary.csv": _csv(columns, summary),
            SEARCHES_NAME: _csv(
                COLUMNS, (line | {"front": json.dumps(line["front"])} for line in searches)
            ),
            **{links[pair]: picture for pair, picture in pictures[0].items()},
            **{fronts[pair]: picture for pair, picture in pictures[1].items()},
        },
    )
    with translate_write_errors(folder, **REPORT_ERRORS):
        for pictures_folder in (_HISTOGRAMS, _FRONTS):
            for path in (folder / pictures_folder).glob("*.png"):
                if path not in paths:
                    path.unlink()
    return paths


def write_files(folder: Path, files: Mapping[str, bytes]) -> list[Path]:
    """Write a report's files by name, each whole; return their paths. Raises StoreError."""
    paths = {folder / name: data for name, data in files.items()}
    with translate_write_errors(folder, **REPORT_ERRORS):
        for path, data in paths.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            write_durably(path, data)
    return list(paths)


def json_bytes(values: Any) -> bytes:
    """Return JSON data as the content of a file."""
    return json.dumps(jsonable(values), indent=2, allow_nan=False).encode()


def _summary_lines(cell: CellFigures) -> Iterator[dict[str, Any]]:
    """Yield a line, and one more for each further source of published figures."""
    figures = as_json(cell)
    line = {name: reduce(_part, place.split("."), figures) for name, place in _SUMMARY.items()}
    for one in cell.published or (None,):
        yield line | {f"published_{name}": getattr(one, name, None) for name in _PUBLISHED}


def _part(value: Any, key: str) -> Any:
    """Return a part of JSON data; None of None."""
    return value and value[int(key) if isinstance(value, list) else key]


def _csv(columns: Iterable[str], lines: Iterable[Mapping[str, Any]]) -> bytes:
    file = io.StringIO(newline="")
    writer = csv.DictWriter(file, list(columns), lineterminator="\n")
    writer.writeheader()
    writer.writerows({name: csv_cell(value) for name, value in line.items()} for line in lines)
    return file.getvalue().encode()

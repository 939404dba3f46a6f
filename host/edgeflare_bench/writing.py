"""The files of a bench's report."""

import csv
import io
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, fields, replace
from pathlib import Path
from typing import Any

from edgeflare._internal.files import write_durably
from edgeflare.analysis.findings import csv_cell
from edgeflare.reports.document import to_markdown
from edgeflare.reports.export import translate_write_errors
from edgeflare.types import Status
from edgeflare_bench.cell_figures import DELAYS_MS, WITHIN_SECONDS, CellFigures
from edgeflare_bench.cells import Cell
from edgeflare_bench.document import bench_document
from edgeflare_bench.pictures import draw
from edgeflare_bench.report import BenchReport
from edgeflare_bench.searches import SEARCHES_NAME, SearchRow

_SUMMARY_COLUMNS = (
    *("pair", "strategy", "seeds", "searches", "searched", "found", "success_rate"),
    *("queries_mean", "queries_low", "queries_high", "queries_median", "queries_p90"),
    *("queries_spent_mean", "seconds_mean", "seconds_median"),
    *(f"found_within_{limit}_s" for limit in WITHIN_SECONDS),
    *("device_queries_mean", "round_trips_mean", "host_queries_mean", "host_queries_median"),
    *(f"seconds_mean_at_{delay}_ms" for delay in DELAYS_MS if delay),
    *("unique", "duplicates", "ties", "l2_median", "linf_median", "ssim_median", "snr_db_median"),
    *("original_margin_median", "deployed_margin_median", "smaller_margin_median", "label_kept"),
    *(status.value.replace("-", "_") for status in Status if status is not Status.FOUND),
    *("published_source", "published_queries", "published_success", "published_seconds"),
)
"""The columns of summary.csv; an unknown figure is empty."""

_SEARCH_COLUMNS = tuple(field.name for field in fields(SearchRow))
"""The columns of searches.csv; see `SearchRow`. `front` is JSON."""

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
        {pair: f"{folder_name}/{_file_name(pair)}" for pair in drawn}
        for folder_name, drawn in zip((_HISTOGRAMS, _FRONTS), pictures, strict=True)
    )
    summary = (line for cell in report.cells for line in _summary_lines(cell))
    files = {
        "report.md": f"{to_markdown(bench_document(report, links, fronts))}\n".encode(),
        "report.json": json.dumps(report.to_json(), indent=2, allow_nan=False).encode(),
        "summary.csv": _csv(_SUMMARY_COLUMNS, summary),
        SEARCHES_NAME: _csv(_SEARCH_COLUMNS, map(_search_line, report.searches)),
        **{links[pair]: picture for pair, picture in pictures[0].items()},
        **{fronts[pair]: picture for pair, picture in pictures[1].items()},
    }
    with translate_write_errors(
        folder,
        untouched="the bench itself",
        again="run `edgeflare bench show` again",
        instead="check its permissions",
    ):
        for name, data in files.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            write_durably(path, data)
        for pictures_folder in (_HISTOGRAMS, _FRONTS):
            for path in (folder / pictures_folder).glob("*.png"):
                if path.relative_to(folder).as_posix() not in files:
                    path.unlink()
    return [folder / name for name in files]


def _search_line(row: SearchRow) -> dict[str, Any]:
    line = row.to_json()
    return line | {"front": json.dumps(line["front"])}


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
        "device_queries_mean": cell.costs.device_queries,
        "round_trips_mean": cell.costs.round_trips,
        "host_queries_mean": cell.costs.host_queries,
        "host_queries_median": cell.costs.host_queries_median,
        **{
            f"seconds_mean_at_{delay}_ms": cell.costs.seconds_at[str(delay)]
            for delay in DELAYS_MS
            if delay
        },
        **{
            f"{name}_median": getattr(cell, name)
            for name in (
                *("l2", "linf", "ssim", "snr_db"),
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
        published = (
            {} if one is None else {f"published_{key}": part for key, part in asdict(one).items()}
        )
        yield line | published


def _csv(columns: Sequence[str], lines: Iterable[Mapping[str, Any]]) -> bytes:
    file = io.StringIO(newline="")
    writer = csv.DictWriter(file, columns, extrasaction="ignore", lineterminator="\n")
    writer.writeheader()
    writer.writerows({name: csv_cell(one) for name, one in line.items()} for line in lines)
    return file.getvalue().encode()

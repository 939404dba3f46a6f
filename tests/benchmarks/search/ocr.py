"""Lines of text that PP-OCRv4's int8 file reads differently: what each search finds, and by how many device queries.

python tests/benchmarks/search/ocr.py WHEELS [--seeds 60] [--max-queries 200] [--out FOLDER]

WHEELS is a folder with the wheel of rapidocr-onnxruntime (`pip download --no-deps rapidocr-onnxruntime`), whose model
is quantised here: static QDQ int8 per channel. A line a strategy: seeds on which both models read the same words, those
from which an input was found, device queries for one (mean, of all seeds searched), queries of the original, median L2
of pixels from 0 to 1, median smaller margin, and the share of the findings that differ in spaces alone. The last line is
the original against itself, from 10 seeds: whatever is found there is a false alarm. `--out` keeps the files, the seeds, the campaigns and a page of each.
"""

import argparse
import statistics
import sys
import tempfile
from pathlib import Path
from typing import Any

from edgeflare import config_from, run_campaign
from edgeflare.answers.transcripts import spoken
from edgeflare.reports import write_html_report
from edgeflare.store import Store
from edgeflare.types import Status, Transcript

sys.path.insert(0, str(Path(__file__).parents[2] / "helpers"))

from text_models import LINE_INPUT, Readers, make_readers, write_lines

SEARCHES: dict[str, dict[str, Any]] = {
    "boundary": {"strategy": "boundary"},
    "boundary, L2 at most 6": {"strategy": "boundary", "options": {"max_l2": 6.0}},
    "dflare": {"strategy": "dflare"},
    "diffchaser": {"strategy": "diffchaser"},
}
CONTROL_SEEDS = 10


def run(
    folder: Path, readers: Readers, name: str, max_queries: int, limit: int | None = None
) -> str:
    """Run a search over the lines in a folder, the first `limit`, and return its line of the table."""
    model = {"input": LINE_INPUT, "options": {"threads": 1}}
    out = folder / name.replace(",", "").replace(" ", "-")
    config = config_from(
        {
            "original": {"path": readers.original, **model},
            "deployed": {"path": readers.deployed, **model},
            "seeds": {"path": folder / "lines", "limit": limit},
            "search": {"max_queries": max_queries, "timeout_s": 0, **SEARCHES[name]},
            "survey": {"enabled": False},
            "out": out,
        },
        "the benchmark",
    )
    run_campaign(config)
    write_html_report(out, out.with_suffix(".html"))
    with Store.open(out) as store:
        outcomes = list(store.outcomes())
    searched = [one for one in outcomes if one.status is not Status.SEED_DEVIATES]
    found = [one for one in searched if one.status is Status.FOUND]
    spaces = 0
    for one in found:
        assert isinstance(one.original, Transcript)
        assert isinstance(one.deployed, Transcript)
        texts = ("".join(spoken(text.text)) for text in (one.original, one.deployed))
        spaces += len(set(texts)) == 1
    queries = [one.search_queries for one in searched]
    host = [one.host_only_queries for one in searched]
    l2s = [one.l2 for one in found if one.l2 is not None]
    margins = [one.severity for one in found if one.severity is not None]
    median = statistics.median
    return (
        f"{name:<24} {len(outcomes)} seeds, {len(searched)} read alike, {len(found)} found, "
        f"{statistics.mean(queries):.2f} device queries, {statistics.mean(host):.0f} host queries"
        + (f", L2 {median(l2s):.2f}, margin {median(margins):.3f}, " if found else "")
        + (f"{spaces / len(found):.0%} spaces alone" if found else "")
    )


def main() -> None:
    """Print a line for each search."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("wheels", type=Path)
    parser.add_argument("--seeds", type=int, default=60)
    parser.add_argument("--max-queries", type=int, default=200)
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    folder = arguments.out or Path(tempfile.mkdtemp())
    readers = make_readers(arguments.wheels, folder)
    write_lines(folder / "lines", arguments.seeds)
    for name in SEARCHES:
        print(run(folder, readers, name, arguments.max_queries), flush=True)
    itself = Readers(readers.original, readers.original)
    SEARCHES["control"] = SEARCHES["boundary"]
    print(run(folder, itself, "control", arguments.max_queries, CONTROL_SEEDS), flush=True)


if __name__ == "__main__":
    main()

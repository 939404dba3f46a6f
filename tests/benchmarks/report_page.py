"""The report's page with 500 and with 5,000 triggers: how long it takes to write, how large it is, how fast it opens.

python tests/benchmarks/report_page.py [--triggers 500 5000] [--opens 5]

The triggers are digits under seeded noise, found by two made-up boards. The page is opened from its file in
Chromium without network, as often as --opens says; medians. First paint is the browser's own first contentful
paint; the first cards are there when the frame after the first of them is drawn; the heap is JavaScript's after
its garbage was collected, with what the first screen needs. All times count from the start of the navigation.
"""

import argparse
import statistics
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from rich.console import Console
from rich.table import Table

from edgeflare import write_html_report

sys.path.insert(0, str(Path(__file__).parents[1] / "helpers"))

from browser import Browser, browser
from page_stores import many_triggers

WATCH = """
new MutationObserver((_, observer) => {
  if (!document.querySelector('#gallery article')) return;
  observer.disconnect();
  requestAnimationFrame(() => requestAnimationFrame(() => { window.firstCards = performance.now(); }));
}).observe(document, {childList: true, subtree: true});
"""


class Opened(NamedTuple):
    """One opening of a page: milliseconds to the first paint, to the first cards and to the load event; heap in MB."""

    paint_ms: float
    cards_ms: float
    load_ms: float
    heap_mb: float


def opened(page: Path, window: Browser) -> Opened:
    """Open a page and measure it."""
    window.open(page)
    paint = "performance.getEntriesByName('first-contentful-paint')[0]?.startTime"
    paint_ms = window.wait(paint)
    cards_ms = window.wait("window.firstCards")
    load_ms = window.wait("performance.getEntriesByType('navigation')[0].loadEventEnd")
    window.driver.execute_cdp_cmd("HeapProfiler.collectGarbage", {})
    heap = window.driver.execute_cdp_cmd("Runtime.getHeapUsage", {})["usedSize"]
    return Opened(paint_ms, cards_ms, load_ms, heap / 1e6)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--triggers", type=int, nargs="+", default=[500, 5_000])
    parser.add_argument("--opens", type=int, default=5)
    arguments = parser.parse_args()
    table = Table(title=f"The report's page, medians of {arguments.opens} opens")
    for column in (
        "triggers",
        "written [s]",
        "page [MB]",
        "pictures beside",
        "beside [MB]",
        "first paint [ms]",
        "first cards [ms]",
        "loaded [ms]",
        "JS heap [MB]",
    ):
        table.add_column(column, justify="right")
    with TemporaryDirectory() as folder, browser() as window:
        window.driver.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": WATCH})
        for triggers in arguments.triggers:
            campaign = many_triggers(Path(folder) / str(triggers), triggers)
            page = campaign / "report.html"
            began = time.monotonic()
            write_html_report(campaign, page)
            seconds = time.monotonic() - began
            beside = [path for path in (campaign / "report-pictures").rglob("*") if path.is_file()]
            every = [opened(page, window) for _ in range(arguments.opens)]
            medians = [statistics.median(values) for values in zip(*every, strict=True)]
            table.add_row(
                f"{triggers:,}",
                f"{seconds:.1f}",
                f"{page.stat().st_size / 1e6:.1f}",
                f"{len(beside):,}",
                f"{sum(path.stat().st_size for path in beside) / 1e6:.1f}",
                *(f"{value:.0f}" for value in medians[:3]),
                f"{medians[3]:.1f}",
            )
    Console(width=130).print(table)


if __name__ == "__main__":
    main()

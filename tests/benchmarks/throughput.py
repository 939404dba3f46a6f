"""How busy a device is kept: seconds of a campaign at several concurrencies, as a ratio to one search at a time.

python tests/benchmarks/throughput.py [--device local] [--repeats 3]

Uses the demo's models; the searches, and so the queries, are the same in every run.
"""

import argparse
import statistics
import tempfile
import time
from pathlib import Path

from rich.console import Console
from rich.table import Table

from edgeflare import run_campaign, summarize
from edgeflare.campaign import demo_config

CONCURRENCIES = (1, 2, 4, 8, 16, 32)


def campaign_seconds(device: str, concurrency: int) -> tuple[float, int]:
    """Return the wall-clock seconds and the queries of one campaign."""
    with tempfile.TemporaryDirectory() as folder:
        config = demo_config({"devices": [device]}, seeds=40, out=Path(folder) / "campaign")
        began = time.monotonic()
        campaign = run_campaign(config.model_copy(update={"concurrency": concurrency}))
        seconds = time.monotonic() - began
        return seconds, sum(summarize(campaign).total_queries.values())


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="local")
    parser.add_argument("--repeats", type=int, default=3)
    arguments = parser.parse_args()
    seconds: dict[int, list[float]] = {concurrency: [] for concurrency in CONCURRENCIES}
    queries = 0
    for _ in range(arguments.repeats):
        for concurrency, taken in seconds.items():
            one, queries = campaign_seconds(arguments.device, concurrency)
            taken.append(one)
    baseline = statistics.median(seconds[1])
    table = Table("searches in flight", "median s", "queries/s", "speed against 1")
    for concurrency, taken in seconds.items():
        median = statistics.median(taken)
        table.add_row(
            str(concurrency), f"{median:.2f}", f"{queries / median:.0f}", f"{baseline / median:.2f}"
        )
    Console().print(table)


if __name__ == "__main__":
    main()

"""How busy a device is kept: seconds of a campaign at several concurrencies, as a ratio to one search at a time.

python tests/benchmarks/throughput.py [--device local] [--repeats 3] [--seeds 40] [--workers 0 1 2 4]

With `--workers`: at several numbers of worker processes, as a ratio to the first.

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


def campaign_seconds(device: str, seeds: int, changes: dict[str, int]) -> tuple[float, int]:
    """Return the wall-clock seconds and the queries of one campaign."""
    with tempfile.TemporaryDirectory() as folder:
        config = demo_config({"devices": [device]}, seeds=seeds, out=Path(folder) / "campaign")
        began = time.monotonic()
        campaign = run_campaign(config.model_copy(update=changes))
        seconds = time.monotonic() - began
        return seconds, sum(summarize(campaign).total_queries.values())


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="local")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--seeds", type=int, default=40)
    parser.add_argument("--workers", type=int, nargs="+")
    arguments = parser.parse_args()
    setting = "workers" if arguments.workers else "concurrency"
    numbers = arguments.workers or CONCURRENCIES
    seconds: dict[int, list[float]] = {number: [] for number in numbers}
    queries = 0
    for _ in range(arguments.repeats):
        for number, taken in seconds.items():
            changes = {"workers": 0, setting: number}
            one, queries = campaign_seconds(arguments.device, arguments.seeds, changes)
            taken.append(one)
    baseline = statistics.median(seconds[numbers[0]])
    table = Table(setting, "median s", "queries/s", f"speed against {numbers[0]}")
    for number, taken in seconds.items():
        median = statistics.median(taken)
        table.add_row(
            str(number), f"{median:.2f}", f"{queries / median:.0f}", f"{baseline / median:.2f}"
        )
    Console().print(table)


if __name__ == "__main__":
    main()

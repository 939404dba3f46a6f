"""How busy a device is kept: seconds of a campaign's searches at several concurrencies, as a ratio to one at a time.

python tests/benchmarks/throughput.py [--device local] [--repeats 3] [--seeds 40] [--workers 0 1 2 4]

With `--workers`: at several numbers of worker processes, their start included, as a ratio to the first. The seeds'
queries and the survey, which come before the searches, are not counted.

Uses the demo's models; the searches, and so the queries, are the same in every run.
"""

import argparse
import statistics
import tempfile
import time
from pathlib import Path

from rich.console import Console
from rich.table import Table

from edgeflare import Event, run_campaign, summarize
from edgeflare.campaign import Stage, demo_config

CONCURRENCIES = (1, 2, 4, 8, 16, 32)


def search_seconds(device: str, seeds: int, changes: dict[str, int]) -> tuple[float, int]:
    """Return the wall-clock seconds and the device queries of one campaign's searches."""
    began = 0.0

    def watch(event: Event) -> None:
        nonlocal began
        if isinstance(event, Stage) and event.name == "search":
            began = time.monotonic()

    with tempfile.TemporaryDirectory() as folder:
        config = demo_config({"devices": [device]}, seeds=seeds, out=Path(folder) / "campaign")
        campaign = run_campaign(config.model_copy(update=changes), progress=watch)
        seconds = time.monotonic() - began
        return seconds, summarize(campaign).total_queries["search"]


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
            one, queries = search_seconds(arguments.device, arguments.seeds, changes)
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

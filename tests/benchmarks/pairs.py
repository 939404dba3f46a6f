"""Success rate, queries and seconds on DiffChaser's three pairs (needs the shared models and data).

python tests/benchmarks/pairs.py --data FOLDER [--seeds 50] [--device local] [--campaign-seeds 0 1 2]
"""

import argparse
import tempfile
import time
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table
from shared_models import PAIRS

from edgeflare import Summary, config_from, run_campaign, summarize

MODELS = ("LeNet-1", "LeNet-5", "ResNet-20")


def measure(
    data: Path, name: str, seeds: int, device: str, campaign_seed: int
) -> tuple[Summary, float]:
    """Run one campaign; return its summary and its wall-clock seconds."""
    pair = PAIRS[name]
    with tempfile.TemporaryDirectory() as folder:
        config = config_from(
            {
                "original": {"path": data / pair.original, "input": pair.entry},
                "deployed": {"path": data / pair.deployed, "input": pair.entry},
                "seeds": {"path": data / pair.images, "limit": seeds},
                "search": {"seed": campaign_seed},
                "devices": device,
                "out": Path(folder) / "campaign",
            },
            "benchmark",
        )
        began = time.monotonic()
        campaign = run_campaign(config)
        return summarize(campaign), time.monotonic() - began


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--seeds", type=int, default=50)
    parser.add_argument("--device", default="local")
    parser.add_argument("--campaign-seeds", type=int, nargs="+", default=[0, 1, 2])
    arguments = parser.parse_args()
    table = Table("pair", "seeds", "success", "mean queries", "median", "s per seed", "wall s")
    for name in MODELS:
        runs = [
            measure(arguments.data, name, arguments.seeds, arguments.device, campaign_seed)
            for campaign_seed in arguments.campaign_seeds
        ]
        found = sum(summary.found for summary, _ in runs)
        searched = sum(summary.searched for summary, _ in runs)
        spreads = [s.queries_found for s, _ in runs if s.queries_found]
        seconds = [s.seconds_found for s, _ in runs if s.seconds_found]
        table.add_row(
            name,
            f"{arguments.seeds} x {len(runs)}",
            f"{found} / {searched} = {100 * found / searched:.1f} %",
            f"{sum(s.mean * s.count for s in spreads) / found:.1f}",
            f"{np.median([s.median for s in spreads]):.0f}",
            f"{sum(s.mean * s.count for s in seconds) / found:.3f}",
            f"{np.median([wall for _, wall in runs]):.1f}",
        )
    Console().print(table)


if __name__ == "__main__":
    main()

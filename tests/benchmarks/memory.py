"""Memory of the host's process over campaigns of 1,000 and of 10,000 seeds: it must not grow with them.

python tests/benchmarks/memory.py --data FOLDER [--seeds 1000 10000] [--repeats 3]

Each campaign runs in a process of its own; the seeds are the shared digits under seeded noise, the pair is
LeNet-1's, and a search ends after a few queries. Peak resident memory, medians.
"""

import argparse
import json
import resource
import statistics
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from machine import own_home
from rich.console import Console
from rich.table import Table
from shared_models import PAIRS, images_of

from edgeflare import config_from, run_campaign

PAIR = PAIRS["LeNet-1"]
QUERIES = 3
_STATUS = Path("/proc/self/status")


def write_seeds(data: Path, count: int, path: Path) -> None:
    """Write so many made-up digits."""
    rng = np.random.default_rng(0)
    images = images_of(data, PAIR)
    chosen = images[np.arange(count) % len(images)].astype(np.int16)
    noisy = chosen + rng.integers(-8, 9, chosen.shape)
    np.savez(path, images=np.clip(noisy, 0, 255).astype(np.uint8))


def peak_bytes() -> int:
    """Return this process's peak resident memory.

    Where the system has it, that of the program itself: getrusage's holds the parent's, too.
    """
    if _STATUS.is_file():
        lines = _STATUS.read_text().splitlines()
        return 1024 * next(int(line.split()[1]) for line in lines if line.startswith("VmHWM:"))
    unit = 1 if sys.platform == "darwin" else 1024
    return unit * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def campaign(data: Path, seeds: Path) -> None:
    """Run a campaign; print peak memory and seconds as JSON."""
    began = time.monotonic()
    with TemporaryDirectory() as folder:
        run_campaign(
            config_from(
                {
                    "original": {"path": data / PAIR.original, "input": PAIR.entry},
                    "deployed": {"path": data / PAIR.deployed, "input": PAIR.entry},
                    "seeds": {"path": seeds},
                    "search": {"strategy": "dflare", "max_queries": QUERIES, "timeout_s": 0},
                    "allow_disagreement": True,
                    "out": Path(folder) / "campaign",
                },
                "benchmark",
            )
        )
    print(json.dumps([peak_bytes(), time.monotonic() - began]))


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--seeds", type=int, nargs="+", default=[1_000, 10_000])
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--campaign", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.campaign:
        campaign(arguments.data, arguments.campaign)
        return
    runs: dict[int, list[list[float]]] = {count: [] for count in arguments.seeds}
    with own_home(), TemporaryDirectory() as folder:
        for count in arguments.seeds:
            write_seeds(arguments.data, count, Path(folder) / f"{count}.npz")
        for _ in range(arguments.repeats):
            for count, several in runs.items():
                command = [sys.executable, __file__, "--data", str(arguments.data)]
                command += ["--campaign", str(Path(folder) / f"{count}.npz")]
                ran = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
                several.append(json.loads(ran.stdout))
    table = Table("seeds", "peak MB", "of the first", "least", "most", "s")
    first = statistics.median(peak for peak, _ in runs[arguments.seeds[0]])
    for count, several in runs.items():
        peaks = [peak for peak, _ in several]
        median = statistics.median(peaks)
        table.add_row(
            f"{count:,}",
            f"{median / 1e6:.1f}",
            f"{median / first:.3f}",
            f"{min(peaks) / 1e6:.1f}",
            f"{max(peaks) / 1e6:.1f}",
            f"{statistics.median(seconds for _, seconds in several):.1f}",
        )
    Console().print(table)


if __name__ == "__main__":
    main()

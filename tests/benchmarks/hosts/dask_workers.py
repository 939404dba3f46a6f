"""What Dask workers cost and bring: one process against one worker, and one worker against two.

python tests/benchmarks/hosts/dask_workers.py [--seeds 1500] [--far-seeds 200] [--repeats 3]

The demo's models on seeds made of its 100 by noise, without a survey; searches run in the worker's own process, and
each worker is kept on a processor of its own with its agent, as is the one process. "Far devices" have a link that
brings each answer 20 ms late, and one search at a time, so that the devices and not the processors are waited for.
Wall-clock time of all stages from the open devices on, medians in ms a seed; "added" is what one worker costs more
than one process (at most 5 ms), "times" how much faster two workers are than one (at least 1.7 on two idle cores).
Repeats alternate between the three.
"""

import argparse
import shutil
import statistics
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from rich.console import Console
from rich.table import Table

sys.path.insert(0, str(Path(__file__).parents[2] / "helpers"))

from command import DEMO
from dask_lab import Lab, device

from edgeflare.store import Store

FIXED = ("crossing=least-l2", "effort=16", "tied_classes=2", "candidates=1")
RELAY = """
import subprocess, sys, threading, time
from queue import Queue

late, child = Queue(), subprocess.Popen(sys.argv[2:], stdin=subprocess.PIPE, stdout=subprocess.PIPE)

def read():
    while data := child.stdout.read1(1 << 16):
        late.put((time.monotonic() + float(sys.argv[1]), data))
    late.put((0, b""))

def send():
    while data := sys.stdin.buffer.read1(1 << 16):
        child.stdin.write(data)
        child.stdin.flush()
    child.stdin.close()

for work in (read, send):
    threading.Thread(target=work, daemon=True).start()
while True:
    due, data = late.get()
    if not data:
        sys.exit(child.wait())
    time.sleep(max(0.0, due - time.monotonic()))
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()
"""
FAR_S = 0.02


def seeds_file(path: Path, count: int) -> Path:
    """Write so many seeds, each unlike the others."""
    with np.load(DEMO / "seeds.npz") as demo:
        images, labels = demo["images"], demo["labels"]
    rng = np.random.default_rng(0)
    places = np.arange(count) % len(images)
    noise = rng.integers(0, 2, (count, *images.shape[1:]), dtype=np.uint8)
    made = np.minimum(images[places], 254) + noise
    np.savez(path, images=made.astype(np.uint8), labels=labels[places])
    return path


def measured(lab: Lab, seeds: Path, device_flags: list[object], *, core: str) -> float:
    """Run a campaign; return the seconds of its stages."""
    out = lab.folder / "campaign"
    shutil.rmtree(out, ignore_errors=True)
    command = [
        *(sys.executable, "-m", "edgeflare.cli", "run", "--seeds", seeds, "--out", out),
        *("--original", DEMO / "original.onnx", "--deployed", DEMO / "deployed.tflite"),
        *("--no-survey", "--workers", 0, "--strategy", "boundary", *device_flags),
        *(word for option in FIXED for word in ("--option", option)),
    ]
    pinned = ["taskset", "-c", core, *command] if core else command
    subprocess.run(list(map(str, pinned)), env=lab.env, check=True, capture_output=True)
    with Store.open(out) as store:
        return float(store.state.wall_s)


def compare(folder: Path, seeds: Path, repeats: int, far: bool) -> dict[str, list[float]]:
    """Return the seconds of each way, several times."""
    relay = folder / "relay.py"
    relay.write_text(RELAY)
    python = {"python": f"{sys.executable} {relay} {FAR_S} {sys.executable}"} if far else {}
    more: list[object] = ["--concurrency", 1] if far else []
    found: dict[str, list[float]] = {"process": [], "one": [], "two": []}
    inventory = folder / "own.toml"
    inventory.write_text(device("board", folder / "cache", **python))
    own = [*more, "--inventory", inventory, "--device", "board"]
    for _ in range(repeats):
        lab = Lab(folder)
        try:
            found["process"].append(measured(lab, seeds, own, core="0"))
            lab.start_scheduler()
            for core, way in enumerate(("one", "two")):
                entry = device("board", folder / f"cache-{way}", **python)
                lab.start_worker(way, entry, before=("taskset", "-c", str(core)))
                dask = [*more, "--dask", lab.address]
                found[way].append(measured(lab, seeds, dask, core=""))
        finally:
            lab.close()
    return found


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=1500)
    parser.add_argument("--far-seeds", type=int, default=200)
    parser.add_argument("--repeats", type=int, default=3)
    chosen = parser.parse_args()
    table = Table("devices", "one process", "one worker", "added", "two workers", "times")
    with TemporaryDirectory() as name:
        folder = Path(name)
        for what, count, far in (
            ("here", chosen.seeds, False),
            ("far", chosen.far_seeds, True),
        ):
            seeds = seeds_file(folder / "seeds.npz", count)
            found = compare(folder, seeds, chosen.repeats, far)
            each = {way: statistics.median(times) * 1000 / count for way, times in found.items()}
            times = statistics.median(
                one / two for one, two in zip(found["one"], found["two"], strict=True)
            )
            table.add_row(
                what,
                *(f"{each[way]:.1f}" for way in ("process", "one")),
                f"{each['one'] - each['process']:+.1f}",
                f"{each['two']:.1f}",
                f"{times:.2f}",
            )
    Console(width=100).print(table)


if __name__ == "__main__":
    main()

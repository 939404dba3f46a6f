"""What a repair costs on a device: microseconds an answer, and bytes.

python tests/benchmarks/repair/cost.py [--device virtual] [--seeds 200] [--times 5]

The demo's model on its digits, as it is, with DRepair and with an abstention, in turn: medians of
the device's own time for an answer, preprocessing included, over all times. DRepair is trained on the
answers of a search by `dflare` from the first 40 digits.
"""

import argparse
import sys
import tempfile
from pathlib import Path
from statistics import median
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "helpers"))

from command import DEMO

from edgeflare import search
from edgeflare.answers.outputs import save_repair
from edgeflare.repair import examples_of, train_repair
from edgeflare.store import Store
from edgeflare_agent.repair import Repair

_MODEL: dict[str, Any] = {"path": DEMO / "deployed.tflite"}


def seconds(folder: Path, device: str, seeds: int, repair: Path | None) -> list[float]:
    """Return the device's median time for an answer to a seed input, of each minute."""
    search(
        DEMO / "original.onnx",
        _MODEL if repair is None else {**_MODEL, "repair": repair},
        {"path": DEMO / "seeds.npz", "limit": seeds},
        device,
        strategy="none",
        folder=folder,
        allow_disagreement=True,
    )
    with Store.open(folder) as store:
        return [one.latency_median_s for one in store.telemetry() if one.latency_median_s]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--device", default="local")
    parser.add_argument("--seeds", type=int, default=200)
    parser.add_argument("--times", type=int, default=5)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        limited = {"path": DEMO / "seeds.npz", "limit": 40}
        search(DEMO / "original.onnx", _MODEL, limited, strategy="dflare", folder=folder / "made")
        repairs: dict[str, Path | None] = {"as it is": None}
        trained = train_repair(examples_of(folder / "made"), random_seeds=1).repair
        for what, repair in (
            ("DRepair", trained),
            ("abstention", Repair(10, "probabilities", 0.3)),
        ):
            save_repair(repair, folder / f"{what}.npz")
            repairs[what] = folder / f"{what}.npz"
        found: dict[str, list[float]] = {what: [] for what in repairs}
        for time in range(arguments.times):
            for what, path in repairs.items():
                place = folder / f"{what}-{time}"
                found[what] += seconds(place, arguments.device, arguments.seeds, path)
        plain = median(found["as it is"])
        print("| repair | bytes | microseconds an answer | more |\n|---|---|---|---|")
        for what, path in repairs.items():
            size = "" if path is None else f"{path.stat().st_size:,}"
            each = median(found[what])
            print(f"| {what} | {size} | {1e6 * each:.0f} | {1e6 * (each - plain):.0f} |")


if __name__ == "__main__":
    main()

"""What looking for the cause costs on this machine, from LeNet to a detector of 640 x 640 and to Whisper.

python tests/benchmarks/explanation/triage_costs.py --data FOLDER [--whisper FOLDER2] [--only NAME ...] [--seeds 24]

Of each pair: healthy, fed otherwise, and with a fault of conversion (ONNX: a tenth of the weights of the middle operator are 0). Each is
a campaign that asks its seeds and searches nothing, in a process of its own; the triage is a process below it. Seconds are the
triage's, without the start of its process; calls are inferences of both models; peak resident memory is that of either process. FOLDER2 is what
deploy/speech/export_whisper.py wrote; the detector is made here, with random weights.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import cv2
import numpy as np
import onnx
from onnx import numpy_helper
from rich.console import Console
from rich.table import Table

from edgeflare import config_from, run_campaign
from edgeflare.campaign.pair.triage import stored_triage
from edgeflare.models.quantized import Recipe, make_quantized
from edgeflare.store import Store
from edgeflare.triage import process

sys.path.insert(0, str(Path(__file__).parents[1]))
sys.path.insert(0, str(Path(__file__).parents[2] / "helpers"))

from large_detector import SIZE, large_detector
from machine import own_home
from memory import peak_bytes
from shared_models import PAIRS

CASES = ("healthy", "feed", "conversion")
_COST = "EDGEFLARE_TRIAGE_COST"
_WEIGHTS_LOST = 0.1
_HEAVY = ("Conv", "MatMul", "Gemm")


class Files(NamedTuple):
    """A pair to triage. `entry` holds for both models, `otherwise` feeds the deployed one in another way."""

    original: Path
    deployed: Path
    seeds: Path
    entry: dict[str, Any]
    otherwise: dict[str, Any]
    task: str = "auto"
    decoder: str = ""


def triage_at_cost(folder: str) -> None:
    """Triage as a campaign does; write seconds and peak memory where the environment says."""
    began = time.monotonic()
    process.triage_here(folder)
    cost = {"seconds": time.monotonic() - began, "peak": peak_bytes()}
    Path(os.environ[_COST]).write_text(json.dumps(cost))


def measure(values: dict[str, Any]) -> None:
    """Run one campaign; print what its triage found and cost as JSON."""
    import triage_costs  # by its module's name, for the process below

    process.triage_here = triage_costs.triage_at_cost
    with TemporaryDirectory() as name:
        os.environ[_COST] = str(Path(name) / "cost.json")
        config = config_from({**values, "out": Path(name) / "campaign"}, "benchmark")
        with Store.open(run_campaign(config)) as store:
            found = stored_triage(store, config, lambda _: None)
        cost = json.loads(Path(os.environ[_COST]).read_text())
    first = next(iter(found.causes), None)
    told = "-" if first is None else f"{first.kind} ({first.proof})"
    print(json.dumps(cost | {"host": peak_bytes(), "calls": found.calls, "first": told}))


def settings(files: Files, deployed: Path, case: str, seeds: int) -> dict[str, Any]:
    """Return the campaign of one case."""
    fed = files.entry | (files.otherwise if case == "feed" else {})
    decoder = {"decoder": {"kind": files.decoder}} if files.decoder else {}
    return {
        "original": {"path": str(files.original), "input": files.entry, **decoder},
        "deployed": {"path": str(deployed), "input": fed, **decoder},
        "seeds": {"path": str(files.seeds), "limit": seeds},
        "search": {"strategy": "none"},
        "survey": {"enabled": False},
        "allow_disagreement": True,
        "task": files.task,
    }


def faulty(original: Path, path: Path) -> Path:
    """Write an ONNX file of which a tenth of the weights of the middle operator are 0."""
    model = onnx.load(original)
    weights = {tensor.name: tensor for tensor in model.graph.initializer}
    kernels = [
        weights[name]
        for node in model.graph.node
        if node.op_type in _HEAVY
        for name in node.input[1:2]
        if name in weights
    ]
    middle = kernels[len(kernels) // 2]
    values = numpy_helper.to_array(middle).copy()
    values[np.random.default_rng(0).random(values.shape) < _WEIGHTS_LOST] = 0
    middle.CopyFrom(numpy_helper.from_array(values, middle.name))
    onnx.save(model, path)
    return path


def _images(data: Path, size: tuple[int, int], out: Path) -> Path:
    out.mkdir(exist_ok=True)
    for path in sorted((data / "images" / "photos_detection").glob("*.jpg")):
        cv2.imwrite(str(out / f"{path.stem}.png"), cv2.resize(cv2.imread(str(path)), size))
    return out


def _detector(data: Path, name: str, size: tuple[int, int], out: Path) -> Files:
    folder = data / "models" / "detection"
    entry = (
        {"scale": "1/255", "color": "BGR"} if name == "fastestdet" else {"mean": 127, "std": 128}
    )
    return Files(
        folder / f"{name}_fp32.onnx",
        folder / f"{name}_int8_perchannel.onnx",
        _images(data, size, out / name),
        entry,
        {"color": "RGB" if name == "fastestdet" else "BGR"},
        "detection",
        "fastestdet" if name == "fastestdet" else "",
    )


def _made_detector(data: Path, out: Path) -> Files:
    """Return the large detector and an int8 copy of it, calibrated on the photographs."""
    original = out / "detector.onnx"
    onnx.save(large_detector(), original)
    photos = _images(data, (SIZE, SIZE), out / "large")
    inputs = [
        np.ascontiguousarray(cv2.imread(str(path))[None, ..., ::-1].transpose(0, 3, 1, 2))
        / np.float32(255)
        for path in sorted(photos.iterdir())[:8]
    ]
    made = make_quantized(
        original, [Recipe("int8", per_channel=True)], inputs, out, lambda *_: None
    )
    return Files(
        *(original, made["int8"], photos, {"scale": "1/255"}, {"color": "BGR"}),
        "detection",
    )


def pairs(data: Path, whisper: Path | None, out: Path) -> dict[str, Callable[[], Files]]:
    """Return what makes each pair, from small to large."""

    def shared(name: str) -> Files:
        pair = PAIRS[name]
        seeds = out / f"{name}.npz"
        with np.load(data / pair.images) as stored:
            images = (
                stored["mfcc_int8"].astype(np.int16) + 128 if name == "KWS" else stored["images"]
            )
            np.savez(seeds, images=images.astype(np.uint8))
        colours = name not in ("LeNet-1", "LeNet-5", "KWS")
        otherwise = {"color": "BGR"} if colours else {"orientation": "flip"}
        entry = {key: value for key, value in pair.entry.items() if key != "size"}
        return Files(data / pair.original, data / pair.deployed, seeds, entry, otherwise)

    found: dict[str, Callable[[], Files]] = {
        name: (lambda name=name: shared(name)) for name in PAIRS
    }
    found["RFB-320"] = lambda: _detector(data, "rfb320", (320, 240), out)
    found["FastestDet"] = lambda: _detector(data, "fastestdet", (352, 352), out)
    found["detector 640 x 640"] = lambda: _made_detector(data, out)
    if whisper is not None:
        found["Whisper tiny.en"] = lambda: Files(
            *(whisper / "whisper-tiny-en.onnx", whisper / "whisper-tiny-en.int8.onnx"),
            *(data / "audio" / "speech", {}, {"mel_scale": "htk"}),
        )
    return found


def run(values: dict[str, Any]) -> dict[str, Any]:
    """Measure one campaign in a process of its own; {} where it fails, and why is printed."""
    command = [sys.executable, __file__, "--measure", json.dumps(values, default=str)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        print(done.stderr.strip().splitlines()[-1])
        return {}
    cost: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return cost


def _row(name: str, costs: Sequence[dict[str, Any]], at: float) -> tuple[str, ...]:
    def figure(key: str, unit: float, digits: int) -> str:
        return f"{np.quantile([cost[key] for cost in costs], at) / unit:,.{digits}f}"

    return (
        name,
        "",
        figure("seconds", 1, 1),
        figure("calls", 1, 0),
        figure("peak", 1e6, 0),
        figure("host", 1e6, 0),
        "",
    )


def main() -> None:
    """Print a line for each case, then the median, the 90 % quantile and the largest of all."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path)
    parser.add_argument("--whisper", type=Path)
    parser.add_argument("--only", nargs="+", help="names of pairs")
    parser.add_argument("--seeds", type=int, default=24)
    parser.add_argument("--measure", type=json.loads, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.measure:
        measure(arguments.measure)
        return
    if arguments.data is None or not arguments.data.is_dir():
        print("skipped: --data names no folder with the shared models and data")
        return
    table = Table("pair", "case", "s", "calls", "triage MB", "host MB", "first cause")
    costs = []
    with own_home(), TemporaryDirectory(prefix="edgeflare-benchmark-") as name:
        out = Path(name)
        for title, make in pairs(arguments.data, arguments.whisper, out).items():
            if arguments.only and title not in arguments.only:
                continue
            files = make()
            for case in CASES:
                if case == "conversion" and files.original.suffix != ".onnx":
                    continue
                deployed = files.deployed
                if case == "conversion":
                    deployed = faulty(files.original, out / "faulty.onnx")
                cost = run(settings(files, deployed, case, arguments.seeds))
                if cost:
                    costs.append(cost)
                    print(title, case, cost, flush=True)
                    table.add_row(title, case, *_row("", [cost], 0.5)[2:6], cost["first"])
    for name, at in (("median", 0.5), ("90 %", 0.9), ("largest", 1.0)):
        table.add_row(*_row(name, costs, at))
    Console(width=120).print(table)


if __name__ == "__main__":
    main()

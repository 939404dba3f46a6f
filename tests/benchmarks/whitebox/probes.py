"""Reading a model's activations by units: images a second against plain inference, and peak memory.

python tests/benchmarks/whitebox/probes.py [--data FOLDER] [--images 1000] [--repeats 15]

The model is EfficientNet-Lite0 with seeded crops of the shared photographs, the demo's original where --data isn't given.
Each repeat goes through some of the images in turn, first with the bare model, then with its layers
probed, then with coverage updated as well; the ratio is of images a second within one repeat, and its median is
shown with the least and the most. Seconds are those of this process on the CPU, in which there is one thread, so that what
else the machine does counts less. Then all images are streamed once, each cut when it is needed, and peak resident memory
is that of this process, libraries and photographs included.
"""

import argparse
import sys
import time
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "helpers"))

from command import DEMO
from memory import peak_bytes
from seed_files import crop
from shared_models import PAIRS, Pair, images_of, input_of

from edgeflare.models import Spec, prepare
from edgeflare.models.tensors import ModelGraph, open_graph
from edgeflare_agent.runtimes import load
from edgeflare_whitebox import KMNC, NC, TKNC, activations_of, default_layers, model_digest

MOST = 20
"""Images of one repeat."""
Images = Callable[[], Iterator[NDArray[np.uint8]]]


def chosen(data: Path | None) -> tuple[Pair, Path, Images]:
    """Return the pair, its original, and what begins an endless stream of its images."""
    if data is None:
        pair = Pair("original.onnx", "", "seeds.npz", {"scale": "1/255"})
        images = images_of(DEMO, pair)
        return pair, DEMO / pair.original, lambda: (one for _ in iter(int, 1) for one in images)
    pair = PAIRS["EfficientNet-Lite0"]
    photographs = images_of(data, pair)

    def crops() -> Iterator[NDArray[np.uint8]]:
        rng = np.random.default_rng(0)
        while True:
            for place in rng.permutation(len(photographs)):
                yield crop(photographs[place], rng)

    return pair, data / pair.original, crops


def plain(path: Path, spec: Spec) -> Callable[[Iterator[Any]], None]:
    """Return what runs the bare model on images, as a campaign does."""
    runtime = load(str(path), "onnx", {"threads": 1})

    def run(images: Iterator[Any]) -> None:
        for image in images:
            runtime.run(prepare(image, spec))

    return run


def probed(graph: ModelGraph, spec: Spec) -> Callable[[Iterator[Any]], None]:
    """Return what reads the layers' activations."""

    def run(images: Iterator[Any]) -> None:
        for _ in activations_of(graph, spec, images):
            pass

    return run


def covered(graph: ModelGraph, spec: Spec, path: Path, images: Images) -> Callable[[Any], None]:
    """Return what updates three criteria, fitted on ten images."""
    layers, model = default_layers(graph), model_digest(path)
    criteria = [NC(model, layers), KMNC(model, layers), TKNC(model, layers)]
    for one in activations_of(graph, spec, islice(images(), 10)):
        for criterion in criteria:
            criterion.fit([one])

    def run(images: Iterator[Any]) -> None:
        for one in activations_of(graph, spec, images):
            for criterion in criteria:
                criterion.update([one])

    return run


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path)
    parser.add_argument("--images", type=int, default=1000)
    parser.add_argument("--repeats", type=int, default=15)
    arguments = parser.parse_args()
    pair, path, images = chosen(arguments.data)
    spec = input_of(path, pair.entry)
    graph = open_graph(path, "onnx", {"threads": 1})
    before = peak_bytes()
    ways = {
        "plain inference": plain(path, spec),
        "activations": probed(graph, spec),
        "activations and coverage": covered(graph, spec, path, images),
    }
    count = min(MOST, arguments.images)
    cut = list(islice(images(), count))
    rates: dict[str, list[float]] = {name: [] for name in ways}
    for way in ways.values():
        way(iter(cut[:3]))
    for _ in range(arguments.repeats):
        for name, way in ways.items():
            began = time.process_time()
            way(iter(cut))
            rates[name].append(count / (time.process_time() - began))
    table = Table("way", "images/CPU s", "of plain", "least", "most")
    for name, several in rates.items():
        ratios = [a / b for a, b in zip(several, rates["plain inference"], strict=True)]
        shown = (median(ratios), min(ratios), max(ratios))
        table.add_row(name, f"{median(several):.1f}", *(f"{one:.2f}" for one in shown))
    ways["activations and coverage"](islice(images(), arguments.images))
    console = Console()
    console.print(
        f"{path.name}, {len(default_layers(graph))} layers, {arguments.repeats} x {count}"
    )
    console.print(table)
    console.print(
        f"peak memory: {peak_bytes() / 1e6:.0f} MB after {arguments.images:,} images more, "
        f"{before / 1e6:.0f} MB before the first"
    )


if __name__ == "__main__":
    main()

"""What a query costs against a plain loop: DFLARE by the rules of its authors' code, without agent and store.

python tests/benchmarks/search/plain_loop.py --data FOLDER [--pairs LeNet-1 ...] [--seeds 40] [--repeats 5]
    [--workers N ...] [--baseline CHECKOUT]

The plain loop runs the original in ONNX Runtime and the deployed model in LiteRT in its own process,
one search after the other. A campaign searches from the same seeds with `dflare`, on the local agent,
with its store and confirmations; its search stage counts, up to the campaign's end. Both have 2,000
queries a seed at most, no time limit and no margin floor. Each run is a process of its own, and the
runs take turns; the figures are medians. CPU is that of the process and its children. `--workers`:
with so many worker processes, too, their start and the imports in them included; else with none. `--baseline`: the
campaign of another checkout, too, in the same run.
"""

import argparse
import json
import math
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import cv2
import numpy as np
import onnxruntime
from ai_edge_litert.interpreter import Interpreter
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).parents[1]))

from shared_models import CIFAR, PAIRS, Pair, images_of

REPOSITORY = Path(__file__).parents[3]
QUERIES = 2000
DELTA, NEAR, EPSILON = 1e-3, 0.5, 1e-7
Image = NDArray[np.uint8]
Scores = NDArray[Any]
Model = Callable[[NDArray[np.float32]], Scores]


def wrapped(values: NDArray[np.float64]) -> Image:
    """Cast as the authors' code does: values beyond a byte wrap around."""
    return values.astype(np.int64).astype(np.uint8)


def changed(image: Image, places: NDArray[np.int64], levels: Any) -> Image:
    """Return the image with these values at these places."""
    image = image.copy()
    image.reshape(-1)[places] = levels
    return image


def salted(image: Image, rng: np.random.Generator) -> Image:
    """Return the image with 0.2 % of its values set to 255, and as many to 0."""
    count = math.ceil(0.002 * image.size)
    image = changed(image, rng.integers(0, image.size, count), 255)
    return changed(image, rng.integers(0, image.size, count), 0)


def with_pixels(image: Image, rng: np.random.Generator) -> Image:
    """Return the image with up to nine values drawn anew."""
    count = int(rng.integers(0, 10))
    return changed(image, rng.integers(0, image.size, count), rng.integers(0, 256, count))


OPERATORS: list[Callable[[Image, np.random.Generator], Any]] = [
    lambda image, rng: wrapped(image + rng.normal(0, math.sqrt(0.1), image.shape)),
    lambda image, rng: wrapped(
        image
        + image * rng.normal(rng.uniform(-0.5, 0.5), math.sqrt(rng.uniform(0, 0.05)), image.shape)
    ),
    salted,
    with_pixels,
    lambda image, rng: cv2.blur(image, (int(rng.integers(1, 6)),) * 2),
    lambda image, rng: cv2.GaussianBlur(image, (int(rng.choice((1, 3, 5, 7))),) * 2, 0),
    lambda image, rng: cv2.medianBlur(image, int(rng.choice((1, 3, 5, 7)))),
]


def choose(rates: list[float], begun: bool, rng: np.random.Generator) -> int:
    """Return an operator: by its rank among all, any of them until an input was accepted."""
    if not begun:
        return int(rng.integers(len(rates)))
    shuffled = rng.permutation(len(rates)).tolist()
    ranked = sorted(shuffled, key=rates.__getitem__, reverse=True)
    while True:
        rank = int(rng.integers(len(ranked)))
        if rng.random() < (1 - 1 / len(ranked)) ** (rank + 1):
            return int(ranked[rank])


def search(
    seed: Image, both: Callable[[Image], tuple[Scores, Scores]], rng: np.random.Generator
) -> int:
    """Return how many queries a search took to its trigger, QUERIES without one."""
    ours, theirs = both(seed)
    states = [np.concatenate((ours, theirs))]
    best, difference, begun = seed, 0.0, False
    drawn, accepted = [0] * len(OPERATORS), [0] * len(OPERATORS)
    for query in range(1, QUERIES + 1):
        rates = [one / (of + EPSILON) for one, of in zip(accepted, drawn, strict=True)]
        operator = choose(rates, begun, rng)
        drawn[operator] += 1
        image = OPERATORS[operator](best, rng).reshape(seed.shape)
        ours, theirs = both(image)
        if ours.argmax() != theirs.argmax():
            return query
        state, here = np.concatenate((ours, theirs)), abs(float(ours.max()) - float(theirs.max()))
        new = bool(np.square(np.array(states) - state).sum(axis=1).min() > NEAR)
        if new:
            states.append(state)
        if new or abs(here - difference) > DELTA:
            best, difference, begun = image, here, True
            accepted[operator] += 1
    return QUERIES


def original_model(path: Path) -> Model:
    """Return an ONNX model on one thread."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    name = session.get_inputs()[0].name
    return lambda values: np.asarray(session.run(None, {name: values})[0])[0]


def deployed_model(path: Path) -> Model:
    """Return a TFLite model on one thread."""
    interpreter: Any = Interpreter(str(path), num_threads=1)
    interpreter.allocate_tensors()
    given = interpreter.get_input_details()[0]["index"]
    taken = interpreter.get_output_details()[0]["index"]

    def answer(values: NDArray[np.float32]) -> Scores:
        interpreter.set_tensor(given, values)
        interpreter.invoke()
        return np.asarray(interpreter.get_tensor(taken))[0]

    return answer


class Cost(NamedTuple):
    """Of one run: queries, and seconds by the clock and of the processor."""

    queries: int
    wall_s: float
    cpu_s: float


def processor_s() -> float:
    """Return the seconds of this process and its children, living ones by the kernel's list."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    ticks = 0
    for task in Path("/proc/self/task").iterdir():
        for child in (task / "children").read_text().split():
            fields = Path(f"/proc/{child}/stat").read_text().rpartition(")")[2].split()
            ticks += int(fields[11]) + int(fields[12])
    return sum(one.ru_utime + one.ru_stime for one in used) + ticks / os.sysconf("SC_CLK_TCK")


def plain(data: Path, pair: Pair, seeds: int) -> Cost:
    """Search from every seed in a plain loop."""
    original = original_model(data / pair.original)
    deployed = deployed_model(data / pair.deployed)
    cifar = pair.entry == CIFAR
    mean, std = (
        np.float32(CIFAR[one] if cifar else empty) for one, empty in (("mean", 0), ("std", 255))
    )

    def both(image: Image) -> tuple[Scores, Scores]:
        values = ((image.astype(np.float32) - mean) / std)[np.newaxis]
        return original(values), deployed(values)

    images = images_of(data, pair)[:seeds]
    both(images[0])
    began, used = time.perf_counter(), processor_s()
    queries = 0
    for number, seed in enumerate(images):
        ours, theirs = both(seed)
        if ours.argmax() == theirs.argmax():
            queries += search(seed, both, np.random.default_rng(number))
    return Cost(queries, time.perf_counter() - began, processor_s() - used)


def campaign(data: Path, pair: Pair, seeds: int, workers: int) -> Cost:
    """Search from every seed in a campaign, in so many worker processes."""
    from edgeflare import Event, config_from, run_campaign
    from edgeflare.campaign import Stage
    from edgeflare.store import Store

    began = used = 0.0

    def watch(event: Event) -> None:
        nonlocal began, used
        if isinstance(event, Stage) and event.name == "search":
            began, used = time.perf_counter(), processor_s()

    with tempfile.TemporaryDirectory() as folder:
        values: dict[str, Any] = {
            "original": {"path": data / pair.original, "input": pair.entry},
            "deployed": {"path": data / pair.deployed, "input": pair.entry},
            "seeds": {"path": data / pair.images, "limit": seeds},
            "search": {
                "strategy": "dflare",
                "max_queries": QUERIES,
                "timeout_s": 0,
                "margin_floor": 0,
            },
            "survey": {"enabled": False},
            "workers": workers,
            "devices": ["local"],
            "out": Path(folder) / "campaign",
        }
        made = run_campaign(config_from(values, "benchmark"), progress=watch)
        cost = time.perf_counter() - began, processor_s() - used
        with Store.open(made) as store:
            outcomes = list(store.outcomes())
    return Cost(sum(one.search_queries + one.confirmation_queries for one in outcomes), *cost)


def measured(way: str, checkout: Path, name: str, chosen: argparse.Namespace) -> Cost:
    """Run one way in a process of its own, with a checkout's packages."""
    paths = [str(checkout / folder) for folder in ("host", "agent", "mutators")]
    command = [sys.executable, __file__, "--data", str(chosen.data), "--seeds", str(chosen.seeds)]
    done = subprocess.run(
        [*command, "--pairs", name, "--way", way],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return Cost(*json.loads(done.stdout.splitlines()[-1]))


def main() -> None:
    """Print a line for each pair and way."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--pairs", nargs="+", default=["LeNet-1", "LeNet-5", "ResNet-20"])
    parser.add_argument("--seeds", type=int, default=40)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--baseline", type=Path)
    parser.add_argument("--workers", type=int, nargs="+", default=[])
    parser.add_argument("--way", help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.way:
        pair = PAIRS[chosen.pairs[0]]
        if chosen.way == "plain":
            cost = plain(chosen.data, pair, chosen.seeds)
        else:
            cost = campaign(chosen.data, pair, chosen.seeds, int(chosen.way))
        print(json.dumps(cost))
        return
    ways = {"plain loop": ("plain", REPOSITORY), "campaign": ("0", REPOSITORY)}
    ways |= {f"{number} workers": (str(number), REPOSITORY) for number in chosen.workers}
    if chosen.baseline is not None:
        ways["baseline"] = ("0", chosen.baseline)
    print(f"{'':22} {'queries':>8} {'wall ms':>8} {'CPU ms':>8}   of the plain loop: wall, CPU")
    for name in chosen.pairs:
        costs: dict[str, list[Cost]] = {label: [] for label in ways}
        for _ in range(chosen.repeats):
            for label, (way, checkout) in ways.items():
                costs[label].append(measured(way, checkout, name, chosen))
        medians = {
            label: [
                statistics.median(
                    1e3 * seconds / one.queries for one in runs for seconds in [one[n]]
                )
                for n in (1, 2)
            ]
            for label, runs in costs.items()
        }
        for label, (wall, cpu) in medians.items():
            ratios = [
                ours / base for ours, base in zip((wall, cpu), medians["plain loop"], strict=True)
            ]
            queries = costs[label][0].queries
            print(
                f"{name:10} {label:11} {queries:8} {wall:8.3f} {cpu:8.3f}   {ratios[0]:.2f} {ratios[1]:.2f}",
                flush=True,
            )


if __name__ == "__main__":
    main()

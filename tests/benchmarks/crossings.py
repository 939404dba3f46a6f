"""How many queries each crossing of the boundary search needs, and how near its triggers are.

python tests/benchmarks/crossings.py --data FOLDER [--seeds N] [--pair NAME ...]

On the shared pairs and keyword spotting, from the first N seeds on which both models agree, without
a fleet: the models run in this process, one input at a time. Beside the median L2 is the ratio to
the smallest of the pair's crossings.
"""

import argparse
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from shared_models import PAIRS, Pair, images_of, input_of, runtime_of

from edgeflare.metrics import l2
from edgeflare.models.outputs import softmax
from edgeflare.oracles import LabelOracle
from edgeflare.scheduler.job import Budget
from edgeflare.scheduler.search_job import SearchJob, SearchJobResult, SearchSettings
from edgeflare.strategies import build_strategy
from edgeflare.types import (
    Answer,
    Decision,
    KnownAnswers,
    Outputs,
    Sample,
    Scores,
    Seed,
    Status,
)
from edgeflare_agent.preprocess import dequantize, prepare
from edgeflare_agent.runtimes import load

FLOOR = 1e-3
PARTNERS = 32
_TINY = "models/mlperf-tiny/kws_dscnn"
KWS = Pair(f"{_TINY}_float.tflite", f"{_TINY}_int8.tflite", "", {"mean": 211, "std": 1.7102703})
OPTIONS: dict[str, dict[str, Any]] = {
    **{
        f"least-l2, effort {effort}, {tied} tied": {
            "crossing": "least-l2",
            "effort": effort,
            "tied_classes": tied,
        }
        for effort in (64, 96, 128)
        for tied in (2, 3)
    },
    "mutants, effort 32": {"crossing": "mutants", "effort": 32, "tied_classes": 2},
    "line": {"crossing": "line", "effort": 128, "tied_classes": 2},
    "natural, effort 32": {"crossing": "natural", "effort": 32, "tied_classes": 2},
}
Model = Callable[[Sample], Scores]


def model_of(path: Path, entry: dict[str, Any]) -> Model:
    """Return a model as a function of one sample; its outputs are logits where any is not in [0, 1]."""
    spec = input_of(path, entry)
    runtime = load(str(path), runtime_of(path), {"threads": 1})
    tensor = runtime.outputs[0]
    probe = np.zeros((*spec.size, spec.channels), np.uint8)

    def raw(sample: Sample) -> Scores:
        output = runtime.run(prepare(sample, spec))[0]
        return np.asarray(dequantize(output, tensor.quantization).reshape(-1), np.float64)

    first = raw(probe)
    if first.min() >= 0 and first.max() <= 1:
        return raw
    return lambda sample: softmax(raw(sample))


class LastSample:
    """Has the sample that was put last, under any digest."""

    def put_sample(self, sample: Sample) -> str:
        """Keep a sample."""
        self._sample = sample
        return "last"

    def get_sample(self, digest: str) -> Sample:
        """Return the sample that was kept."""
        del digest
        return self._sample


@dataclass(frozen=True)
class Result:
    """One search: whether it found a trigger, what it asked, and the trigger's distance."""

    found: bool
    queries: int
    host_queries: int
    l2: float


class PairSearch:
    """Searches from the seeds of one pair."""

    def __init__(self, original: Model, deployed: Model, images: list[Sample], seeds: int) -> None:
        self._models = original, deployed
        self._oracle = LabelOracle(FLOOR)
        answers = [self._outputs(one, "both") for one in images[: 3 * seeds]]
        self._partners = images[:PARTNERS]
        first = answers[:PARTNERS]
        self._known = KnownAnswers(
            np.array([one.original for one in first]), np.array([one.deployed for one in first])
        )
        agreed = [place for place, one in enumerate(answers) if one.decision is Decision.AGREE]
        self._seeds = [(place, images[place], answers[place]) for place in agreed[:seeds]]

    def run(self, options: dict[str, Any]) -> list[Result]:
        """Search from every seed with these options of `boundary`."""
        budget = Budget(2000, None, None)
        strategy = build_strategy("boundary", options)
        settings = SearchSettings(strategy, budget, 1, 0, LastSample(), self._oracle)
        return [self._search(*one, settings) for one in self._seeds]

    def _search(
        self, place: int, sample: Sample, outputs: Outputs, settings: SearchSettings
    ) -> Result:
        seed = Seed(
            str(place),
            sample,
            outputs,
            others=self._partners,
            margin_floor=FLOOR,
            known=self._known,
        )
        steps = SearchJob(seed, settings).run()
        answer: Answer | None = None
        while True:
            try:
                ask = next(steps) if answer is None else steps.send(answer)
            except StopIteration as stop:
                result: SearchJobResult = stop.value
                break
            answer = Answer([self._outputs(one, ask.of) for one in ask.samples])
        found = result.status is Status.FOUND and result.sample is not None
        distance = l2(sample, result.sample) if found and result.sample is not None else np.nan
        return Result(found, result.counters.search, result.counters.host_only, distance)

    def _outputs(self, sample: Sample, of: str) -> Outputs:
        original, deployed = self._models
        ours = None if of == "deployed" else original(sample)
        theirs = None if of == "original" else deployed(sample)
        both = ours is not None and theirs is not None
        decision = self._oracle.decide(ours, theirs) if both else Decision.UNDECIDED
        return Outputs(ours, theirs, decision)


def pairs(data: Path) -> Iterator[tuple[str, Model, Model, list[Sample]]]:
    """Yield each pair's name, both models and images."""
    for name, pair in PAIRS.items():
        if name != "EfficientNet-Lite0":
            models = (model_of(data / one, pair.entry) for one in (pair.original, pair.deployed))
            yield name, *models, list(images_of(data, pair))
    with np.load(data / "audio" / "speech_commands_mfcc_1000.npz") as archive:
        words = (archive["mfcc_int8"].astype(np.int16) + 128).astype(np.uint8)
    models = (model_of(data / one, KWS.entry) for one in (KWS.original, KWS.deployed))
    yield "KWS", *models, list(words.reshape(-1, 49, 10, 1))


def main() -> None:
    """Print a table for each pair."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--seeds", type=int, default=30)
    parser.add_argument("--pair", action="append")
    arguments = parser.parse_args()
    for name, original, deployed, images in pairs(arguments.data):
        if arguments.pair and name not in arguments.pair:
            continue
        search = PairSearch(original, deployed, images, arguments.seeds)
        results = {label: search.run(options) for label, options in OPTIONS.items()}
        medians = {
            label: float(np.nanmedian([one.l2 for one in found]))
            for label, found in results.items()
        }
        print(f"\n{name}\n\n| crossing | found | queries | host queries | L2 | ratio |")
        print("|---|---|---|---|---|---|")
        for label, found in results.items():
            ratio = medians[label] / min(medians.values())
            counts = np.mean([(one.found, one.queries, one.host_queries) for one in found], axis=0)
            print(
                f"| {label} | {counts[0]:.0%} | {counts[1]:.2f} | {counts[2]:.0f} "
                f"| {medians[label]:.3g} | {ratio:.2f} |",
                flush=True,
            )


if __name__ == "__main__":
    main()

"""Searches on two detectors' photographs: findings, device queries, distance, margin and kinds.

python tests/benchmarks/search/detection_search.py --data FOLDER [--detectors fastestdet rfb320]
    [--strategies boundary dflare random] [--budget 10] [--only 5] [--control 200] [--confirm OUT]

FOLDER has the shared models and photographs. Each float model against its int8 copies, per channel
and per tensor; photographs on which they differ already are counted apart. `random`: one random
corruption of the seed a query, or noise. dflare and random get as many device queries as `--budget`
says; boundary stops at the first finding, or with `--severity` goes on to that many queries.
`--control`: boundary (of 16 directions, both sides of each crossing) against the float model without
graph optimisations, until as many inputs as stated were asked about: none may deviate.
`--confirm`: found inputs with both answers are written as .npz, for `confirm_detections.py`.
"""

import argparse
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import cv2
import numpy as np

from edgeflare._internal import exact
from edgeflare.answers.detections.matching import differences, worst
from edgeflare.answers.oracles import DetectionOracle
from edgeflare.metrics import l2, ssim
from edgeflare.strategies import build_strategy
from edgeflare.types import (
    Answer,
    Ask,
    Decision,
    Detections,
    Outcome,
    Outputs,
    Sample,
    Search,
    Seed,
)
from edgeflare_mutators import SampleSpec, corruptions

sys.path.insert(0, str(Path(__file__).parent))

from detection_pairs import DETECTORS, model, photographs

FLOOR = 1e-3
Model = Callable[[Sample], Detections]


@dataclass
class Tally:
    """What the searches of one row came to."""

    deviating: int = 0
    searched: int = 0
    queries: list[int] = field(default_factory=list)
    spent: list[int] = field(default_factory=list)
    host: list[int] = field(default_factory=list)
    l2: list[float] = field(default_factory=list)
    ssim: list[float] = field(default_factory=list)
    margins: list[float] = field(default_factory=list)
    kinds: Counter[str] = field(default_factory=Counter)
    seconds: float = 0.0

    def row(self, name: str) -> str:
        """Return a row of a table."""
        found = len(self.queries)
        share = 100.0 * found / max(self.searched, 1)
        cells = [
            name,
            str(self.deviating),
            f"{found} / {self.searched} ({share:.0f} %)",
            f"{np.mean(self.spent or [0]):.2f}",
            f"{np.median(self.queries or [0]):.0f} / {max(self.queries, default=0)}",
            f"{np.mean(self.host or [0]):.0f}",
            f"{np.median(self.l2 or [0]):.2f}",
            f"{np.median(self.ssim or [0]):.4f}",
            f"{np.median(self.margins or [0]):.4f}",
            ", ".join(f"{kind} {number}" for kind, number in sorted(self.kinds.items())),
            f"{self.seconds / max(self.searched, 1):.1f}",
        ]
        return "| " + " | ".join(cells) + " |"


HEAD = (
    "| pair, strategy | seeds deviate | found | queries mean | median / max | host | L2 | SSIM | "
    "margin | kinds | s |\n" + "|---" * 11 + "|"
)


@dataclass
class Run:
    """Answers a search's queries in this process; `budget`: of device queries."""

    original: Model
    deployed: Model
    budget: int
    queries: int = 0
    host: int = 0
    best: Outcome | None = None
    deviations: int = 0

    def outputs(self, sample: Sample) -> Outputs:
        """Return both models' answers and the decision."""
        answers = self.original(sample), self.deployed(sample)
        return Outputs(*answers, DetectionOracle(FLOOR).decide(*answers))

    def finish(self, search: Search) -> Outcome:
        """Return how a search ends."""
        answer: Answer | None = None
        while True:
            try:
                ask = next(search) if answer is None else search.send(answer)
            except StopIteration as stop:
                ended: Outcome = stop.value
                return ended
            if ask.of == "original":
                self.host += len(ask.samples)
                answer = Answer(
                    [Outputs(self.original(one), None, Decision.UNDECIDED) for one in ask.samples]
                )
                continue
            if self.queries + len(ask.samples) > self.budget:
                return ask.best or Outcome(None)
            self.queries += len(ask.samples)
            answer = Answer([self.outputs(one) for one in ask.samples])
            self.deviations += sum(one.decision is Decision.DEVIATION for one in answer.outputs)


def random_search(seed: Seed, rng: np.random.Generator) -> Search:
    """Ask about one random corruption of the seed at a time, every fourth one plain noise."""
    pool = list(corruptions("image").values())
    spec = SampleSpec.of(seed.sample, None)
    while True:
        if rng.integers(4) == 0:
            size = 10 ** exact.uniform(rng, 0.0, 1.3)
            noise = rng.normal(0.0, size, seed.sample.shape)
            sample = np.clip(np.rint(seed.sample + noise), 0, 255).astype(np.uint8)
        else:
            one = pool[int(rng.integers(len(pool)))]
            params = one.graded(one.draw(rng, spec), exact.uniform(rng, 0.05, 0.6))
            sample = one.apply(seed.sample, params)
        answer = yield Ask((sample,))
        if answer.outputs[0].decision is Decision.DEVIATION:
            return Outcome(sample)


def strategy_of(name: str, options: dict[str, Any]) -> Any:
    """Return a strategy by its name."""
    return random_search if name == "random" else build_strategy(name, options)


def seeds_of(pair: tuple[Model, Model], photos: Sequence[tuple[str, Sample]]) -> Iterator[Seed]:
    """Yield the photographs as seeds."""
    run = Run(*pair, 0)
    others = [sample for _, sample in photos][:32]
    for name, sample in photos:
        yield Seed(name, sample, run.outputs(sample), others=others, margin_floor=FLOOR)


def searched(
    pair: tuple[Model, Model],
    photos: Sequence[tuple[str, Sample]],
    strategy: Any,
    budget: int,
    keep: Callable[[str, Sample, Outputs], None] | None = None,
    say: bool = False,
) -> Tally:
    """Return what searches from all photographs come to."""
    tally = Tally()
    for number, seed in enumerate(seeds_of(pair, photos)):
        if seed.outputs.decision is Decision.DEVIATION:
            tally.deviating += 1
            continue
        tally.searched += 1
        run = Run(*pair, budget)
        begin = time.process_time()
        outcome = run.finish(strategy(seed, np.random.default_rng(number)))
        tally.seconds += time.process_time() - begin
        tally.host.append(run.host)
        tally.spent.append(run.queries)
        if outcome.sample is None:
            if say:
                print(seed.id, run.queries, run.host, "-", outcome.reason, flush=True)
            continue
        outputs = run.outputs(outcome.sample)
        assert outputs.decision is Decision.DEVIATION
        tally.queries.append(run.queries)
        tally.l2.append(l2(seed.sample, outcome.sample))
        tally.ssim.append(ssim(seed.sample, outcome.sample) or 0.0)
        found = worst(differences(outputs.original, outputs.deployed))  # type: ignore[arg-type]
        assert found is not None
        tally.kinds[found.kind] += 1
        tally.margins.append(found.margin)
        if say:
            print(
                seed.id, run.queries, run.host, found.kind, f"{found.margin:.4f}",
                f"{tally.l2[-1]:.2f} {tally.ssim[-1]:.4f}", flush=True,
            )  # fmt: skip
        if keep is not None:
            keep(seed.id, outcome.sample, outputs)
    return tally


def keeper(folder: Path, name: str, copy: str) -> Callable[[str, Sample, Outputs], None]:
    """Return what writes a finding to a folder."""

    def keep(seed: str, sample: Sample, outputs: Outputs) -> None:
        arrays: dict[str, Any] = {"sample": sample, "detector": name, "copy": copy, "seed": seed}
        for side in ("original", "deployed"):
            answer: Any = getattr(outputs, side)
            arrays |= {
                f"{side}_boxes": answer.boxes,
                f"{side}_labels": answer.labels,
                f"{side}_scores": answer.scores,
            }
        np.savez_compressed(folder / f"{name}-{copy}-{seed}.npz", **arrays)

    return keep


def controlled(pair: tuple[Model, Model], photos: Sequence[tuple[str, Sample]], count: int) -> str:
    """Return how many of `count` inputs that a search sends to a float copy deviate."""
    asked = alarms = 0
    for number, seed in enumerate(seeds_of(pair, photos)):
        budget = 2 * (count // len(photos) // 2 + 1)
        strategy = build_strategy(
            "boundary", {"device_budget": budget, "candidates": 2, "effort": 16}
        )
        run = Run(*pair, count - asked)
        run.finish(strategy(seed, np.random.default_rng(number)))
        asked += run.queries
        alarms += run.deviations
        if asked >= count:
            break
    return f"{alarms} of {asked} inputs deviate"


def main() -> None:
    """Print a table of all searches."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--detectors", nargs="+", default=list(DETECTORS))
    parser.add_argument("--copies", nargs="*", default=["perchannel", "pertensor"])
    parser.add_argument("--strategies", nargs="*", default=["boundary", "dflare", "random"])
    parser.add_argument("--budget", type=int, default=10)
    parser.add_argument("--severity", type=int, help="boundary's device_budget")
    parser.add_argument("--only", type=int)
    parser.add_argument("--control", type=int, default=0)
    parser.add_argument("--confirm", type=Path)
    parser.add_argument("--crops", action="store_true", help="two parts of each photograph")
    parser.add_argument("--say", action="store_true")
    arguments = parser.parse_args()
    cv2.setNumThreads(1)
    print(HEAD, flush=True)
    for name in arguments.detectors:
        detector = DETECTORS[name]
        folder = arguments.data / "models" / "detection"
        photos = photographs(
            arguments.data / "images" / "photos_detection", detector.size, cropped=arguments.crops
        )
        photos = photos[: arguments.only]
        original = model(folder / f"{name}_fp32.onnx", detector)
        for copy in arguments.copies:
            pair = original, model(folder / f"{name}_int8_{copy}.onnx", detector)
            for one in arguments.strategies:
                options = {}
                if one == "boundary" and arguments.severity:
                    options["device_budget"] = arguments.severity
                keep = None
                if arguments.confirm and one == "boundary":
                    arguments.confirm.mkdir(parents=True, exist_ok=True)
                    keep = keeper(arguments.confirm, name, copy)
                most = max(arguments.budget, arguments.severity or 0)
                tally = searched(pair, photos, strategy_of(one, options), most, keep, arguments.say)
                print(tally.row(f"{name} {copy}, {one}"), flush=True)
        if arguments.control:
            copied = model(folder / f"{name}_fp32.onnx", detector, optimised=False)
            print(f"control {name}:", controlled((original, copied), photos, arguments.control))


if __name__ == "__main__":
    main()

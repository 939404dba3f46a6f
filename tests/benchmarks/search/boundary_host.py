"""Processor time a seed of `boundary`, here and with the code of another checkout, and whether both search alike.

python tests/benchmarks/search/boundary_host.py --data FOLDER [--baseline CHECKOUT] \\
    [--pairs LeNet-5 KWS ...] [--seeds 20] [--rounds 5] [--made]
python tests/benchmarks/search/boundary_host.py --data FOLDER --gradients [--pairs LeNet-5 ...] [--seeds 20] [--rounds 5]

No campaign, agent or store: each model runs in the process that a campaign has for its original. A row a pair,
medians of the rounds in processor milliseconds a seed, both models and all processes included: `boundary`, its part
in the strategy's own process and in that of the original, the original's own inferences alone, and `dflare`. With
`--baseline` each round runs the code of both checkouts, one after the other, and `ratio` is the median of a round's
new time over its old. A search's inputs, the order in which either model gets them, and how it ends make up a digest,
which must be equal; with `--made` it is compared on made models too, with options and kinds of samples that the
pairs don't have.

`--gradients`: a row for each of `boundary`, `boundary` with gradients of the original (the extra `torch`; pairs with an
ONNX original) and `dflare`: triggers found, device and host queries a seed, the median L2, processor milliseconds a
seed, and the median of a round's time over that of `dflare`.
"""

import argparse
import hashlib
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

ROOT = Path(__file__).parents[3]
FLOOR = 1e-3
GRADIENTS = "gradients"
PARTNERS = 32
SECOND_SEED = 10**6
TICK_S = 1 / os.sysconf("SC_CLK_TCK")
MADE: dict[str, Sequence[dict[str, Any]]] = {
    "grey 28 x 28": [
        {}, {"device_budget": 12}, {"crossing": "line"}, {"crossing": "mutants", "effort": 16},
        {"crossing": "natural", "effort": 8}, {"candidates": 4},
        {"max_l2": 1.5, "device_budget": 8}, {"max_linf": 20}, {"min_ssim": 0.9}, {"effort": 8},
    ],
    "colours 20 x 12": [{}, {"device_budget": 12}, {"effort": 300}],
    "colours 72 x 80": [{}, {"effort": 16}, {"device_budget": 10}],
    "row of features": [{}, {"device_budget": 10}],
    "labels only": [{}, {"device_budget": 10}],
    "recording": [{}, {"device_budget": 10}, {"crossing": "line"}, {"effort": 40}],
    "speech": [{}, {"candidates": 4}, {"max_linf": 2000}],
}  # fmt: skip
"""Options with which searches on made models are compared, by what the samples are."""


class Digest:
    """Of everything that searches ask and how they end."""

    def __init__(self) -> None:
        self._sum = hashlib.sha256()
        self.seconds = 0.0

    def add(self, *parts: Any) -> None:
        """Add arrays by their type, shape and bytes, anything else by its text; count the seconds that takes."""
        since = time.process_time()
        for part in parts:
            if isinstance(part, np.ndarray):
                self._sum.update(f"{part.dtype}{part.shape}".encode())
                self._sum.update(np.ascontiguousarray(part).data)
            else:
                self._sum.update(repr(part).encode())
        self.seconds += time.process_time() - since

    def __str__(self) -> str:
        return self._sum.hexdigest()[:16]


class Models(NamedTuple):
    """A pair's original and deployed model, each in a process of its own, and its images."""

    original: Any
    deployed: Any
    images: list[Any]


def loaded(data: Path, name: str) -> Models:
    """Return a pair's models and images."""
    from shared_models import PAIRS, images_of, input_of, runtime_of

    from edgeflare.answers.outputs import OutputReader
    from edgeflare.models.original import OriginalModel

    pair = PAIRS[name]
    found = []
    for file in (pair.original, pair.deployed):
        path = data / file
        model = OriginalModel(path, runtime_of(path), {})
        model.configure(input_of(path, pair.entry), None)
        kind = "logits" if name.startswith("EfficientNet") else "probabilities"
        model.read_with(OutputReader(model.outputs[0], kind))
        found.append(model)
    return Models(*found, list(images_of(data, pair)))


def processor_s(pid: int | str) -> float:
    """Return the processor seconds of a process so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) * TICK_S


def settings_for(strategy: str, side: int) -> Any:
    """Return the settings of a search with the default's options for images of this side."""
    from search_models import Shelf

    from edgeflare.answers.oracles import LabelOracle
    from edgeflare.scheduler.job import Budget
    from edgeflare.scheduler.search_job import SearchSettings
    from edgeflare.strategies import build_strategy
    from edgeflare.strategies.boundary import BoundaryOptions, resolve_options

    options: dict[str, Any] = {}
    if strategy != "dflare":
        stated = BoundaryOptions.model_validate(
            {"gradients": True} if strategy == GRADIENTS else {}
        )
        options = resolve_options(stated, side, one_trip=False).model_dump(exclude_none=True)
        strategy = "boundary"
    oracle = LabelOracle(FLOOR)
    return SearchSettings(build_strategy(strategy, options), Budget(), 1, 0, Shelf(), oracle)


def seeds_of(models: Models, count: int) -> list[Any]:
    """Return seeds on which both models agree; images count again, under another name, where there are too few."""
    from edgeflare.answers.oracles import LabelOracle
    from edgeflare.types import Decision, KnownAnswers, Outputs, Seed

    oracle = LabelOracle(FLOOR)
    partners = models.images[:PARTNERS]
    known = KnownAnswers(
        *(np.array(one.scores(partners)) for one in (models.original, models.deployed))
    )
    found: list[Any] = []
    for number in range(SECOND_SEED):
        sample = models.images[number % len(models.images)]
        both = models.original.scores([sample])[0], models.deployed.scores([sample])[0]
        outputs = Outputs(*both, oracle.decide(*both))
        if outputs.decision is not Decision.DEVIATION:
            found.append(
                Seed(
                    f"s{number}", sample, outputs, others=partners, margin_floor=FLOOR, known=known
                )
            )
        if len(found) == count:
            break
    return found


def driven(steps: Generator[Any, Any, Any], models: Models, oracle: Any, digest: Digest) -> Any:
    """Answer a search's requests as the scheduler does; return its result and the original's seconds."""
    from edgeflare.types import Answer, Decision, Outputs

    inferring, reply = 0.0, None
    while True:
        try:
            ask = next(steps) if reply is None else steps.send(reply)
        except StopIteration as stop:
            return stop.value, inferring
        digest.add(ask.of, *ask.samples)
        if ask.want == "gradient":
            nothing = Outputs(None, None, Decision.UNDECIDED)
            gradients, _ = models.original.probe(ask)
            reply = Answer([nothing] * len(ask.samples), gradients)
            continue
        ours: Sequence[Any] = [None] * len(ask.samples)
        theirs = ours
        if ask.of != "deployed":
            ours, seconds = models.original.answer(ask.samples)
            inferring += sum(seconds)
        if ask.of != "original":
            theirs, _ = models.deployed.answer(ask.samples)
        reply = Answer(
            [
                Outputs(
                    one,
                    other,
                    Decision.UNDECIDED
                    if one is None or other is None
                    else oracle.decide(one, other),
                )
                for one, other in zip(ours, theirs, strict=True)
            ]
        )


def measured(data: Path, name: str, strategy: str, count: int) -> dict[str, Any]:
    """Return milliseconds a seed, by where they were spent, queries a seed, and the digest of all searches."""
    from edgeflare.metrics import l2
    from edgeflare.scheduler.search_job import SearchJob
    from edgeflare.types import Ask

    models = loaded(data, name)
    settings = settings_for(strategy, max(models.images[0].shape[:2]))
    seeds = seeds_of(models, count)
    if strategy == GRADIENTS:
        first = Ask((seeds[0].sample,), "original", "gradient", classes=(0, 1))
        models.original.probe(first)  # imports PyTorch, once a process
    distances = []
    children = Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
    began = [processor_s(pid) for pid in ("self", *children)]
    digest, inferring, host, device, since = Digest(), 0.0, 0, 0, time.process_time()
    for seed in seeds:
        job = SearchJob(seed, settings)
        result, seconds = driven(job.run(), models, settings.oracle, digest)
        inferring += seconds
        host, device = host + result.counters.host_only, device + result.counters.search
        digest.add(result.status, result.counters.search, result.counters.host_only, result.detail)
        digest.add(result.sample, result.mutations, result.front)
        if result.sample is not None and result.status.value == "found":
            distances.append(l2(seed.sample, result.sample))
    own = time.process_time() - since - digest.seconds
    original, deployed = (
        processor_s(pid) - before for pid, before in zip(children, began[1:], strict=True)
    )
    spent = {
        "all": own + original + deployed,
        "own": own,
        "original": original,
        "inferring": inferring,
    }
    models.original.close()
    models.deployed.close()
    return {
        **{place: 1000 * seconds / count for place, seconds in spent.items()},
        "host": host / count,
        "device": device / count,
        "found": len(distances),
        "l2": statistics.median(distances),
        "digest": str(digest),
    }


def made(what: str) -> Iterator[tuple[Any, Callable[[Any], Any]]]:
    """Yield a seed of a made pair of models, and what drives a search to its outcome and requests."""
    from search_models import Listened, Pair, Run, affine, agreed, hearers, played, quantised
    from search_models import recording as speech

    def searched(pair: Pair) -> Callable[[Any], Any]:
        def drive(steps: Any) -> Any:
            run = Run()
            return played(steps, pair, run), run.asks

        return drive

    if what == "speech":
        for number in range(20):
            listened = Listened(*hearers(1.0, number))
            yield (
                listened.seed(speech(number)),
                lambda steps, one=listened: (one.answer(steps).outcome, one.asks),
            )
        return
    if what == "recording":
        sys.path.insert(0, str(ROOT / "tests" / "unit" / "strategies" / "boundary"))
        import test_audio

        pair = test_audio.pair()
        for sample in test_audio.agreed(pair, 20):
            others = [sample, *(test_audio.recording(one) for one in range(40, 46))]
            yield replace(pair.seed(sample, others), rate=test_audio.RATE), searched(pair)
        return
    shape = {
        "grey 28 x 28": (28, 28, 1),
        "colours 20 x 12": (20, 12, 3),
        "colours 72 x 80": (72, 80, 3),
        "row of features": (1, 40, 1),
        "labels only": (16, 16, 1),
    }[what]
    original = affine(shape, 6)
    pair = Pair(original, quantised(original), labels_only=what == "labels only")
    samples = agreed(pair, shape, 20)
    for sample in samples:
        yield pair.seed(sample, samples[:12], 12), searched(pair)


def digests(what: str) -> list[str]:
    """Return the digest of all searches on made models of a kind of samples, for each of its options."""
    from edgeflare.strategies import build_strategy
    from edgeflare.strategies.boundary import BoundaryOptions, resolve_options

    kinds = {"recording": "audio", "speech": "transcript"}
    found = []
    for stated in MADE[what]:
        digest = Digest()
        for number, (seed, drive) in enumerate(made(what)):
            options = resolve_options(
                BoundaryOptions.model_validate(stated),
                max(seed.sample.shape[:2]),
                one_trip=False,
                of=kinds.get(what, "image"),
            ).model_dump(exclude_none=True)
            steps = build_strategy("boundary", options)(seed, np.random.default_rng(number))
            outcome, asks = drive(steps)
            for ask in asks:
                digest.add(ask.of, *ask.samples)
            digest.add(outcome and outcome.sample, outcome and (outcome.mutations, outcome.reason))
        found.append(str(digest))
    return found


def of_code(checkout: Path, *arguments: str) -> Any:
    """Return what a run of this file with the code of a checkout prints, from JSON."""
    paths = [checkout / one for one in ("host", "agent", "mutators")]
    run = subprocess.run(
        [sys.executable, __file__, *arguments],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(map(str, paths))},
        stdout=subprocess.PIPE,
        check=True,
    )
    return json.loads(run.stdout.splitlines()[-1])


def row(name: str, new: list[Any], other: list[Any], old: list[Any]) -> str:
    """Return a row of the table; `other`: those of `dflare`, `old`: those of the baseline, or none."""

    def middle(runs: list[Any], place: str) -> float:
        return statistics.median(one[place] for one in runs)

    text = f"{name:20} {new[0]['host']:6.0f} {new[0]['device']:6.2f}"
    text += "".join(f"{middle(new, one):9.1f}" for one in ("all", "own", "original", "inferring"))
    text += f"{middle(other, 'all'):9.1f}"
    if old:
        ratio = statistics.median(
            one["all"] / before["all"] for one, before in zip(new, old, strict=True)
        )
        alike = {one["digest"] for one in new} == {one["digest"] for one in old}
        text += f"{middle(old, 'all'):9.1f} {ratio:6.3f}  {'alike' if alike else 'DIFFERENT'}"
    return text


def compare_gradients(data: Path, name: str, seeds: int, rounds: int) -> None:
    """Print a pair's rows with and without gradients, and of `dflare`."""
    strategies = ("boundary", GRADIENTS, "dflare")
    common = ["--data", str(data), "--seeds", str(seeds), "--measure", name]
    runs: dict[str, list[Any]] = {one: [] for one in strategies}
    for _ in range(rounds):
        for strategy in strategies:
            runs[strategy].append(of_code(ROOT, *common, strategy))
    for strategy, results in runs.items():
        first = results[0]
        spent = statistics.median(one["all"] for one in results)
        ratio = statistics.median(
            one["all"] / other["all"] for one, other in zip(results, runs["dflare"], strict=True)
        )
        print(
            f"{name:20} {strategy:10} {first['found']:4}/{seeds:<4} {first['device']:8.2f} "
            f"{first['host']:7.0f} {first['l2']:8.3f} {spent:9.1f} {ratio:9.2f}",
            flush=True,
        )


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path)
    parser.add_argument("--baseline", type=Path)
    parser.add_argument("--pairs", nargs="*")
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--made", action="store_true")
    parser.add_argument("--gradients", action="store_true")
    parser.add_argument("--measure", nargs=2, help=argparse.SUPPRESS)
    parser.add_argument("--digests", help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    sys.path[:0] = [str(ROOT / "tests" / "helpers"), str(ROOT / "tests" / "benchmarks")]
    if chosen.digests:
        print(json.dumps(digests(chosen.digests)))
        return
    if chosen.measure:
        print(json.dumps(measured(chosen.data, *chosen.measure, chosen.seeds)))
        return
    if chosen.gradients:
        print(f"{'pair':31} {'found':>9} {'device':>8} {'host':>7} {'L2':>8} {'ms':>9} / dflare")
        for name in chosen.pairs or ["LeNet-1", "LeNet-5", "ResNet-20", "EfficientNet-Lite0"]:
            compare_gradients(chosen.data, name, chosen.seeds, chosen.rounds)
        return
    print(
        f"{'pair':20} {'host':>6} {'device':>6}     all      own original    infer   dflare"
        + ("      old  ratio" if chosen.baseline else "")
    )
    common = ["--data", str(chosen.data), "--seeds", str(chosen.seeds), "--measure"]
    for name in chosen.pairs or ["LeNet-5", "ResNet-8", "KWS", "EfficientNet-Lite0"]:
        new, other, old = [], [], []
        for _ in range(chosen.rounds):
            if chosen.baseline:
                old.append(of_code(chosen.baseline, *common, name, "boundary"))
            new.append(of_code(ROOT, *common, name, "boundary"))
            other.append(of_code(ROOT, *common, name, "dflare"))
        print(row(name, new, other, old), flush=True)
    if chosen.made and chosen.baseline:
        for what, options in MADE.items():
            both = [of_code(one, "--digests", what) for one in (ROOT, chosen.baseline)]
            for stated, new_one, old_one in zip(options, *both, strict=True):
                alike = "alike" if new_one == old_one else "DIFFERENT"
                print(f"{what:20} {alike:10} {stated or ''}", flush=True)


if __name__ == "__main__":
    main()

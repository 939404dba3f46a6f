"""Queries, distance and margin of searches on many pairs, in one process without a campaign.

python tests/benchmarks/search/boundary_pairs.py --data FOLDER [--made FOLDER2] \\
    [--pairs lenet5 same ...] [--seeds 30]

FOLDER has the shared models and images, FOLDER2 what `deploy/models/build_sure_pairs.py` makes.
`same` is LeNet-5 against its own file, `fp16` against itself with weights rounded to half
precision. `--crossings`: each pair with the default's options and with those of other crossings;
`--efforts`: with as many slopes measured, and by `dflare`: the front of distance against seconds. A
line a pair: triggers found, device queries a seed (mean and largest), host queries, median L2,
median smaller margin, processor seconds a seed. Both models run on this machine; seeds on which
they differ already are left out. Options that are not stated follow from the images.
"""

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import onnx
import onnxruntime
from ai_edge_litert.interpreter import Interpreter
from onnx import numpy_helper

from edgeflare.answers.oracles import LabelOracle, margins
from edgeflare.answers.outputs import shares_of_sigmoids, softmax
from edgeflare.metrics import l2
from edgeflare.scheduler.job import Budget
from edgeflare.scheduler.search_job import SearchJob, SearchJobResult, SearchSettings
from edgeflare.strategies import build_strategy
from edgeflare.strategies.boundary import BoundaryOptions, resolve_options
from edgeflare.types import Answer, Decision, KnownAnswers, Outputs, Sample, Scores, Seed, Status

sys.path.insert(0, str(Path(__file__).parents[2] / "helpers"))

from search_models import Shelf

FLOOR = 1e-3
CROSSINGS: list[dict[str, Any]] = [
    {},
    *(
        {"crossing": "least-l2", "effort": effort, "tied_classes": tied}
        for effort, tied in ((64, 2), (96, 2), (96, 3), (128, 2), (128, 3))
    ),
    *({"crossing": one, "tied_classes": 2} for one in ("mutants", "line", "natural")),
]
PARTNERS = 32
Model = Callable[[Sample], Scores]
Head = Callable[[Scores], Scores]


class Scale(NamedTuple):
    """How bytes become a model's input: (byte - mean) / std."""

    mean: tuple[float, ...] = (0.0,)
    std: tuple[float, ...] = (255.0,)

    def __call__(self, sample: Sample) -> Any:
        """Return the input, float32."""
        return (sample.astype(np.float32) - np.float32(self.mean)) / np.float32(self.std)


def sigmoids(values: Scores) -> Scores:
    """Return the scores of independent sigmoids, or of a single one."""
    return shares_of_sigmoids(values, logits=False)


def as_they_are(values: Scores) -> Scores:
    """Return probabilities."""
    return values


def onnx_model(path: Path, scale: Scale, head: Head = as_they_are) -> Model:
    """Return a model of one thread."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    tensor = session.get_inputs()[0]
    channels_first = tensor.shape[1] in (1, 3) and tensor.shape[-1] not in (1, 3)

    def answer(sample: Sample) -> Scores:
        values = scale(sample)[None]
        values = np.ascontiguousarray(values.transpose(0, 3, 1, 2)) if channels_first else values
        found: Any = session.run(None, {tensor.name: values})[0]
        return head(np.asarray(found, np.float64).reshape(-1))

    return answer


def tflite_model(path: Path, scale: Scale, head: Head = as_they_are) -> Model:
    """Return a model of one thread, its state reset before each input."""
    interpreter: Any = Interpreter(str(path), num_threads=1)
    interpreter.allocate_tensors()
    given, taken = interpreter.get_input_details()[0], interpreter.get_output_details()[0]

    def answer(sample: Sample) -> Scores:
        values = scale(sample).reshape(given["shape"])
        step, zero = given["quantization"]
        if step:
            limits = np.iinfo(given["dtype"])
            values = np.clip(np.rint(values / step) + zero, limits.min, limits.max)
        interpreter.reset_all_variables()
        interpreter.set_tensor(given["index"], values.astype(given["dtype"]))
        interpreter.invoke()
        found = interpreter.get_tensor(taken["index"]).reshape(-1).astype(np.float64)
        step, zero = taken["quantization"]
        return head((found - zero) * step if step else found)

    return answer


def half_precision(path: Path, folder: Path) -> Path:
    """Write the model with its weights rounded to half precision; return the file."""
    model = onnx.load(path)
    for weights in model.graph.initializer:
        values = numpy_helper.to_array(weights)
        if values.dtype == np.float32:
            rounded = values.astype(np.float16).astype(np.float32)
            weights.CopyFrom(numpy_helper.from_array(rounded, weights.name))
    onnx.save(model, folder / "half.onnx")
    return folder / "half.onnx"


def images(path: Path, name: str = "images") -> list[Sample]:
    """Return the images of an archive, uint8 [height, width, channels] each."""
    with np.load(path) as archive:
        found = archive[name]
    if found.dtype == np.int8:
        found = (found.astype(np.int16) + 128).astype(np.uint8)
    return list(found if found.ndim == 4 else found[..., None])


class Pair(NamedTuple):
    """Two models and the inputs to search from."""

    original: Model
    deployed: Model
    inputs: list[Sample]


def pairs(data: Path, made: Path | None, temporary: Path) -> dict[str, Callable[[], Pair]]:
    """Return how each pair is loaded, by its name."""
    chaser, tiny = data / "models" / "diffchaser", data / "models" / "mlperf-tiny"
    net = data / "models" / "imagenet" / "imagenet_efficientnet_lite0"
    digits, cifar = data / "images/mnist_test_0_499.npz", data / "images/cifar10_test_500_jpeg.npz"
    plain, bytes_ = Scale(), Scale(std=(1.0,))
    colours = Scale((125.307, 122.95, 113.865), (62.9932, 62.0887, 66.7048))
    speech, photographs = Scale((211.0,), (1.7102703,)), Scale((127.0,), (128.0,))

    def chased(name: str, scale: Scale, seeds: Path) -> Callable[[], Pair]:
        return lambda: Pair(
            onnx_model(chaser / f"{name}.onnx", scale),
            tflite_model(chaser / f"{name}.quant.tflite", scale),
            images(seeds),
        )

    def against(other: Callable[[], Path]) -> Callable[[], Pair]:
        file = chaser / "lenet5.onnx"
        return lambda: Pair(onnx_model(file, plain), onnx_model(other(), plain), images(digits))

    def both(
        stem: Path,
        ends: tuple[str, str],
        scale: Scale,
        seeds: Path,
        *,
        head: Head = as_they_are,
        key: str = "images",
    ) -> Callable[[], Pair]:
        load = onnx_model if ends[0].endswith("onnx") else tflite_model
        return lambda: Pair(
            *(load(stem.parent / f"{stem.name}{end}", scale, head) for end in ends),
            images(seeds, key),
        )

    lite = ("_float.tflite", "_int8.tflite")
    spoken = data / "audio" / "speech_commands_mfcc_1000.npz"
    found = {
        "lenet1": chased("lenet1", plain, digits),
        "lenet5": chased("lenet5", plain, digits),
        "resnet20": chased("resnet20", colours, cifar),
        "resnet8": both(tiny / "cifar10_resnet8", lite, bytes_, cifar),
        "kws": both(tiny / "kws_dscnn", lite, speech, spoken, key="mfcc_int8"),
        "efficientnet": both(
            net, ("_fp32.onnx", "_int8_perchannel.onnx"), photographs,
            data / "images" / "photos_coral_10.npz", head=softmax,
        ),
        "same": against(lambda: chaser / "lenet5.onnx"),
        "fp16": against(lambda: half_precision(chaser / "lenet5.onnx", temporary)),
    }  # fmt: skip
    if made is not None:
        found |= {
            "two-classes": both(made / "even_odd", lite, plain, made / "even_odd.npz"),
            "one-sigmoid": both(
                made / "even_odd_sigmoid", lite, plain, made / "even_odd.npz", head=sigmoids
            ),
            "sigmoids": both(made / "labels", lite, plain, made / "even_odd.npz", head=sigmoids),
            "lstm": both(made / "rows_lstm", lite, plain, made / "rows.npz"),
        }
    return found


def searched(pair: Pair, seed: Seed, settings: SearchSettings) -> tuple[SearchJobResult, float]:
    """Return how a search ended, and its processor seconds."""
    job = SearchJob(seed, settings)
    began, steps = time.process_time(), job.run()
    reply: Answer | None = None
    while True:
        try:
            ask = next(steps) if reply is None else steps.send(reply)
        except StopIteration as stop:
            return stop.value, time.process_time() - began
        found = []
        for sample in ask.samples:
            ours = None if ask.of == "deployed" else pair.original(sample)
            theirs = None if ask.of == "original" else pair.deployed(sample)
            decision = Decision.UNDECIDED
            if ours is not None and theirs is not None:
                decision = settings.oracle.decide(ours, theirs)
            found.append(Outputs(ours, theirs, decision))
        reply = Answer(found)


def line(name: str, results: Sequence[tuple[SearchJobResult, float]]) -> str:
    """Return a row of the table."""
    asked = [one.counters.search for one, _ in results]
    found = [one for one, _ in results if one.status is Status.FOUND]
    distances = [l2(one.seed.sample, one.sample) for one in found if one.sample is not None]
    smaller = [
        margins(one.outputs.original, one.outputs.deployed).smaller or 0.0
        for one in found
        if one.outputs is not None
        and one.outputs.original is not None
        and one.outputs.deployed is not None
    ]
    host = np.mean([one.counters.host_only for one, _ in results])
    seconds = np.mean([took for _, took in results])
    near = f"{np.median(distances):.2f} {np.median(smaller):.4f}" if found else "- -"
    reasons = {one.detail for one, _ in results if one.status is not Status.FOUND}
    return (
        f"{name:13} {len(found):3}/{len(results):<3} {np.mean(asked):7.2f} {max(asked):4} "
        f"{host:6.0f} {near} {seconds:.2f} {next(iter(sorted(reasons)), '')}"
    )


def search_pair(
    pair: Pair, name: str, options: dict[str, Any], seeds: int, floor: float
) -> list[tuple[SearchJobResult, float]]:
    """Return how the searches from the first `seeds` inputs on which both models agree ended."""
    if name == "boundary":
        side = max(pair.inputs[0].shape[:2])
        stated = BoundaryOptions.model_validate(options)
        options = resolve_options(stated, side, one_trip=False).model_dump(exclude_none=True)
    oracle = LabelOracle(floor)
    settings = SearchSettings(build_strategy(name, options), Budget(), 1, 0, Shelf(), oracle)
    partners = pair.inputs[:PARTNERS]
    known = [(pair.original(one), pair.deployed(one)) for one in partners]
    answers = KnownAnswers(*(np.array(scores, np.float64) for scores in zip(*known, strict=True)))
    results: list[tuple[SearchJobResult, float]] = []
    for number, sample in enumerate(pair.inputs):
        both = pair.original(sample), pair.deployed(sample)
        decision = oracle.decide(*both)
        if decision is Decision.DEVIATION or len(results) == seeds:
            continue
        outputs = Outputs(*both, decision)
        seed = Seed(
            f"s{number}", sample, outputs, others=partners, margin_floor=floor, known=answers
        )
        results.append(searched(pair, seed, settings))
    return results


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--made", type=Path)
    parser.add_argument("--pairs", nargs="+")
    parser.add_argument("--seeds", type=int, default=30)
    parser.add_argument("--strategy", default="boundary")
    parser.add_argument("--options", type=json.loads, default={})
    parser.add_argument("--floor", type=float, default=FLOOR)
    parser.add_argument("--crossings", action="store_true")
    parser.add_argument("--efforts", type=int, nargs="+")
    chosen = parser.parse_args()
    print("pair            found  queries  max   host  L2 margin seconds")
    with tempfile.TemporaryDirectory() as folder:
        loaders = pairs(chosen.data, chosen.made, Path(folder))
        for name in chosen.pairs or loaders:
            pair = loaders[name]()
            ways = [(chosen.strategy, one) for one in CROSSINGS if chosen.crossings]
            if chosen.efforts:
                ways = [("dflare", {}), *(("boundary", {"effort": one}) for one in chosen.efforts)]
            for strategy, stated in ways or [(chosen.strategy, chosen.options)]:
                results = search_pair(pair, strategy, stated, chosen.seeds, chosen.floor)
                print(line(name, results), strategy, stated or "", flush=True)


if __name__ == "__main__":
    main()

"""A pair's two files as the triage is told of them, what its device answers, and whether a fault can be seen.

`EverydayPair.device` names how the device departs from what is stated; its kernels are always others than
the host's. ``input``: what samples are prepared by; ``picture``: one of `PICTURES`, before that; ``codes``:
one of `CODES`, what an integer input is given instead; ``file``: the file that it runs; ``noise``: how far
repeated answers are apart, as a share of their deviation; ``turned``: whether it overlooks how images are
stored.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from edgeflare.devices.runtimes import runtime_for
from edgeflare.errors import ModelError
from edgeflare.triage.agreement import stacked
from edgeflare.triage.cause import Triage
from edgeflare.triage.model import HostModel, ModelFile
from edgeflare.triage.pair import DeviceAnswers, PairSeeds
from edgeflare.triage.process import triage_apart
from edgeflare.triage.ways import Way
from edgeflare.types import Sample
from edgeflare_agent.configuration.fixed_inputs import FixedInputs, GivenInputs
from edgeflare_agent.preprocess import RULES, prepare
from edgeflare_agent.runtimes import load
from edgeflare_bench.everyday.records import EverydayPair, input_spec
from edgeflare_bench.words.everyday import NOT_WORSE

Answers = tuple[NDArray[np.float64], ...]
Both = tuple[Answers, Answers]

DEVICE_SEEDS = 24
OTHER_KERNELS: Mapping[str, Mapping[str, Any]] = {
    "onnx": {"graph_optimization": "none"},
    "tflite": {"kernels": "reference"},
}
SEEN = {
    "float32": 0.01,
    "float16": 0.1,
    "int8": 0.1,
    "int8-tensor": 0.1,
    "tflite": 0.01,
    "tflite-int8": 0.1,
}
"""From so much error on, in deviations of the answers, a fault of a pair of this chain can be seen."""
_TIMES = 3.0
"""A fault's error is at least so often that of the healthy pair."""
_LOST_ACCURACY = 0.2
_GREY = 128
_STORED = "rotate-90"
"""How images are stored that a device takes as they are."""


def model_file(
    side: Literal["original", "deployed"],
    path: Path,
    stated: Mapping[str, str],
    given: GivenInputs,
    options: Mapping[str, Any] | None = None,
) -> ModelFile:
    """Return a model as a triage is told of it. Raises AgentError, UsageError where it can't be read."""
    runtime = runtime_for(path)
    opened = load(str(path), runtime, {"threads": 1})
    tensor = FixedInputs.of(opened.inputs, given).tensor
    opened.close()
    return ModelFile(side, path, runtime, dict(options or {}), input_spec(tensor, stated), given)


def files_of(pair: EverydayPair) -> tuple[ModelFile, ModelFile]:
    """Return both models of a pair."""
    return (
        model_file("original", pair.original, pair.original_input, pair.original_given),
        model_file("deployed", pair.deployed, pair.deployed_input, pair.deployed_given),
    )


def seeds_of(pair: EverydayPair) -> PairSeeds:
    """Return a pair's seeds, with what the device answered where one is asked."""
    device = answers_of_device(pair) if pair.device else None
    turned = range(len(pair.samples)) if pair.device.get("turned") else ()
    return PairSeeds(
        list(pair.samples), list(pair.labels), (), device, dict.fromkeys(turned, _STORED)
    )


def triaged(pair: EverydayPair) -> Triage:
    """Return why a pair differs, found by processes of their own. Raises ModelError, UsageError."""
    return triage_apart(files_of(pair), seeds_of(pair), pair.kind)


# The device


def _letterboxed(image: Sample, size: tuple[int, int]) -> Sample:
    inner = RULES["bilinear"](image, (size[0] // 2, size[1]))
    box = np.full((*size, image.shape[2]), _GREY, np.uint8)
    box[size[0] // 4 : size[0] // 4 + inner.shape[0]] = inner
    return box


def _cropped(image: Sample, size: tuple[int, int]) -> Sample:
    top, left = ((have - need) // 2 for have, need in zip(image.shape, size, strict=False))
    return image[top : top + size[0], left : left + size[1]]


PICTURES: Mapping[str, Callable[[Sample, tuple[int, int]], Sample]] = {
    "letterbox": _letterboxed,
    "crop": _cropped,
    "planes": lambda image, _: np.moveaxis(image, 2, 0).reshape(image.shape),
    "pixels": lambda image, _: np.moveaxis(image.reshape(image.shape[2], *image.shape[:2]), 0, 2),
    "grey": lambda image, _: np.repeat(
        image.mean(axis=2, keepdims=True).astype(np.uint8), image.shape[2], axis=2
    ),
    "inverted": lambda image, _: 255 - image,
}
"""What becomes of an image before a device prepares it: the image, and the model's (height, width)."""


CODES: Mapping[str, Callable[[NDArray[Any], NDArray[Any]], NDArray[Any]]] = {
    "unsigned": lambda codes, _: (codes.astype(np.int16) + 128).astype(np.uint8).view(np.int8),
    "pixels": lambda _, pixels: np.rint(pixels).astype(np.uint8).view(np.int8),
    "pixels-128": lambda _, pixels: (np.rint(pixels) - 128).astype(np.int8),
}
"""What an int8 input is given: the codes of the values that are right, and the pixels."""


def _on_device(pair: EverydayPair) -> HostModel:
    path = Path(pair.device.get("file", pair.deployed))
    stated = pair.device.get("input", pair.deployed_input)
    kernels = OTHER_KERNELS[runtime_for(path)]
    return HostModel(model_file("deployed", path, stated, pair.deployed_given, kernels))


def given_on_device(pair: EverydayPair, samples: Sequence[Sample]) -> list[list[NDArray[Any]]]:
    """Return what a pair's device gives each input of its model, for each sample."""
    departs, model = pair.device, _on_device(pair)
    spec: Any = model.spec
    if "picture" in departs:
        make = PICTURES[departs["picture"]]
        samples = [np.ascontiguousarray(make(image, spec.upright_size)) for image in samples]
    if departs.get("turned"):
        spec = spec._replace(orientation=_STORED)
    given = [model.tensors(sample, Way(spec)) for sample in samples]
    if "codes" in departs:
        if model.inputs[0].dtype != "int8":
            raise ModelError("the input doesn't store int8")
        plain = {"scale": (1.0, 1.0), "mean": (0.0,), "std": (1.0,)}
        pixels = spec._replace(dtype="float32", quantization=None, **plain)
        for sample, tensors in zip(samples, given, strict=True):
            tensors[0] = CODES[departs["codes"]](tensors[0], prepare(sample, pixels))
    return given


def answers_of_device(pair: EverydayPair, samples: Sequence[Sample] | None = None) -> DeviceAnswers:
    """Return what a pair's device answers to some samples; None: to its first `DEVICE_SEEDS`."""
    samples = list(pair.samples[:DEVICE_SEEDS] if samples is None else samples)
    model = _on_device(pair)
    outputs = answers_to(model, given_on_device(pair, samples))
    noise = float(pair.device.get("noise", 0))
    rng = np.random.default_rng(0)
    outputs = tuple(info + noise * info.std() * rng.normal(size=info.shape) for info in outputs)
    repeated = len(samples) if noise else 0
    return DeviceAnswers(samples, [0] * len(samples), outputs, repeated)


# Witnesses


def answers_to(model: HostModel, given: Sequence[Sequence[NDArray[Any]]]) -> Answers:
    """Return a model's answers to what its inputs are given. Raises ModelError."""
    answers = stacked([model.run(tensors) for tensors in given])
    if answers is None:
        raise ModelError("the shapes of the outputs change from seed to seed")
    return answers


def answers_of(
    file: ModelFile, samples: Sequence[Sample], way: Mapping[str, Any] | None = None
) -> Answers:
    """Return a model's answers to some samples; `way`: what else `Way` says. Raises ModelError."""
    model = HostModel(file)
    entering = Way(file.spec, **(way or {}))
    return answers_to(model, [model.tensors(sample, entering) for sample in samples])


def error_between(first: Answers, second: Answers) -> float:
    """Return how far two models' answers are apart, in deviations; infinity for other shapes or NaN."""
    worst = 0.0
    for value, other in zip(first, second, strict=False):
        if value.size != other.size or not (np.isfinite(value).all() and np.isfinite(other).all()):
            return float("inf")
        signal = float(((value - value.mean(axis=0)) ** 2).sum()) + 1e-30
        if value.shape != other.shape and np.squeeze(value).shape != np.squeeze(other).shape:
            return float("inf")
        worst = max(worst, float(((value - other.reshape(value.shape)) ** 2).sum()) / signal)
    return float("inf") if len(first) != len(second) else float(np.sqrt(worst))


def accuracy(answers: Answers, labels: Sequence[int]) -> float:
    """Return the share of seeds whose class of the first output is their label."""
    classes = answers[0].reshape(len(answers[0]), -1).argmax(axis=1)
    return float((classes == np.asarray(labels[: len(classes)])).mean())


def is_seen(
    chain: str, healthy: Both, faulty: Both, right: Sequence[int], labels: Sequence[int]
) -> bool:
    """Whether a fault of a pair of this tool chain can be seen, beside the answers of the healthy pair.

    By how far the answers are apart, or by the accuracy of the first model: `right` are the labels that
    hold, and `labels` those that are given with the pair; () where there are none.
    """
    before, after = error_between(*healthy), error_between(*faulty)
    if after >= max(SEEN[chain], _TIMES * before):
        return True
    if not right or len(labels) != len(right):
        return False
    return accuracy(healthy[0], right) - accuracy(faulty[0], labels) >= _LOST_ACCURACY


def without_witness(pair: EverydayPair, sound: EverydayPair, labels: Sequence[int]) -> str:
    """Return why a fault doesn't count, against the healthy pair of the same chain; "": it can be seen.

    `labels`: the right ones, () where there are none. Nothing of the triage is used for this.
    """
    samples = pair.samples[:DEVICE_SEEDS]

    def both(of: EverydayPair) -> Both:
        original, deployed = files_of(of)
        if of.device:
            return answers_of(deployed, samples), answers_of_device(of).outputs
        return answers_of(original, samples), answers_of(deployed, samples)

    healthy = both(replace(sound, device={"kernels": "other"} if pair.device else {}))
    faulty = both(pair)
    if pair.device.get("noise") or is_seen(pair.tool_chain, healthy, faulty, labels, pair.labels):
        return ""
    before, after = error_between(*healthy), error_between(*faulty)
    return NOT_WORSE.format(after, before)

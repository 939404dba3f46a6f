"""A fault's witness: a valid input on which the fault changes a sure decision."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from edgeflare_bench.faults.originals import Batch, Original, predict, session
from edgeflare_whitebox.gradients import DifferentiableModel

SURE = 0.3
"""Least margin (top-1 minus top-2 probability) of the original."""
MOVED = 0.3
"""Total variation above which an answer has moved, whatever it decides."""
_STEPS = 40
_CLIMBS = 24


class Witness(NamedTuple):
    """A valid input [1, ...] on which the original, or a healthy twin, and the faulty model differ.

    `found_by` says how it was found: "natural" (one of the original's inputs), "far" (a random
    input far from them) or "gradient".
    """

    sample: Batch
    margin: float
    total_variation: float
    decides_otherwise: bool
    found_by: str


def find_witness(
    original: Original,
    faulty: Any,
    rng: np.random.Generator,
    seeds: int = 50,
    gradients: bool = True,
) -> Witness | None:
    """Search an input on which the original is sure and a faulty model answers otherwise.

    The original is the healthy twin: the faulty model is a copy of it that differs by the fault.
    First natural inputs are tried, then random inputs far from them, then gradient ascent on the
    total variation of both answers from where it was largest (needs the extra `torch`). All are on
    the grid of valid inputs, and judged by ONNX Runtime. Returns None where none was found: the
    fault is held equivalent.
    """
    pair = _Pair(original, faulty)
    natural = original.from_pixels(original.to_pixels(original.inputs[:seeds]))
    found = pair.judge(natural, "natural")
    if found is not None:
        return found
    far = _far_inputs(original, natural, rng)
    found = pair.judge(far, "far")
    if found is not None or not gradients:
        return found
    starts = np.concatenate([pair.most_moved(natural), pair.most_moved(far)])
    reached = (pair.judge(one, "gradient") for one in _climb(original, faulty, starts))
    return next(filter(None, reached), None)


class _Pair:
    def __init__(self, original: Original, faulty: Any) -> None:
        self._original = original
        self._sound, self._faulty = session(original.model), session(faulty)

    def answers(self, inputs: Batch) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
        """Return both models' probabilities; a faulty answer that is no number moves by 1."""
        read = self._original.probabilities
        return read(predict(self._sound, inputs)), read(predict(self._faulty, inputs))

    def judge(self, inputs: Batch, found_by: str) -> Witness | None:
        sound, faulty = self.answers(inputs)
        ordered = np.sort(sound, 1)
        margins = ordered[:, -1] - ordered[:, -2]
        moved = _total_variation(sound, faulty)
        otherwise = sound.argmax(1) != faulty.argmax(1)
        counts = np.where((margins >= SURE) & (otherwise | (moved > MOVED)), moved, -1)
        best = int(counts.argmax())
        if counts[best] < 0:
            return None
        return Witness(
            inputs[best : best + 1],
            float(margins[best]),
            float(moved[best]),
            bool(otherwise[best]),
            found_by,
        )

    def most_moved(self, inputs: Batch) -> Batch:
        moved = _total_variation(*self.answers(inputs))
        return inputs[np.argsort(-moved, kind="stable")[: _CLIMBS // 2]]


def _total_variation(sound: npt.NDArray[Any], faulty: npt.NDArray[Any]) -> npt.NDArray[Any]:
    moved = np.abs(sound - faulty).sum(1) / 2
    return np.where(np.isfinite(moved), moved, 1.0)


def _far_inputs(original: Original, natural: Batch, rng: np.random.Generator) -> Batch:
    """Return eight inputs far from each natural one, on the grid of valid values."""
    pixels = original.to_pixels(natural)
    shape = (len(pixels), 1, 1, 1)
    noise = rng.normal(size=pixels.shape)
    others = pixels[rng.permutation(len(pixels))]
    made = [
        pixels * rng.uniform(0.1, 1, shape),
        pixels * rng.uniform(0.3, 2.5, shape) + rng.uniform(-0.5, 0.5, shape),
        pixels * rng.uniform(0.05, 0.6, shape) + rng.uniform(0, 0.9, shape),
        pixels + noise * rng.uniform(0.05, 0.5, shape),
        pixels * rng.uniform(0.3, 1, shape) + noise * rng.uniform(0.05, 0.3, shape),
        pixels + (others - pixels) * rng.uniform(0.2, 0.8, shape),
        1 - pixels,
        _patched(original, pixels, rng),
    ]
    return original.from_pixels(np.concatenate(made))


def _patched(original: Original, pixels: npt.NDArray[Any], rng: np.random.Generator) -> Any:
    """Return images with a black or white patch, at an edge or corner for every other one."""
    changed = np.moveaxis(np.array(pixels), original.axes, (1, 2))
    height, width = changed.shape[1:3]
    for number, image in enumerate(changed):
        rows, columns = (int(rng.integers(2, max(3, size // 2))) for size in (height, width))
        top, left = (int(rng.integers(0, size - side + 1)) for size, side in
                     ((height, rows), (width, columns)))  # fmt: skip
        if number % 2:
            top, left = (
                (0 if top < height // 2 else height - rows),
                (0 if left < width // 2 else width - columns),
            )
        image[top : top + rows, left : left + columns] = float(rng.random() < 0.7)
    return np.moveaxis(changed, (1, 2), original.axes)


def _climb(original: Original, faulty: Any, starts: Batch) -> Iterator[Batch]:
    """Yield every few steps of gradient ascent on the drift, the original kept sure."""
    torch_sound, torch_faulty = DifferentiableModel(original.model), DifferentiableModel(faulty)
    pixels = original.to_pixels(starts)
    for step in range(_STEPS):
        inputs = (original.low + pixels * (original.high - original.low)).astype(np.float32)
        gradient = _drift_gradient(original, torch_sound, torch_faulty, inputs)
        gradient = np.nan_to_num(gradient) * (original.high - original.low)
        pixels = np.clip(pixels + (0.06 if step < _STEPS // 2 else 0.02) * np.sign(gradient), 0, 1)
        if step % 4 == 3:
            yield original.from_pixels(pixels)


def _drift_gradient(
    original: Original, sound: DifferentiableModel, faulty: DifferentiableModel, inputs: Batch
) -> npt.NDArray[np.float32]:
    """Return the gradient of the total variation plus the original's margin up to what is sure."""

    def read(scores: Any) -> Any:
        return scores.softmax(-1) if original.softmax else scores

    def objective(values: Any) -> Any:
        leaf = values[original.input_name]
        first = read(sound.run({original.input_name: leaf})[sound.outputs[0]])
        second = read(faulty.run({original.input_name: leaf})[faulty.outputs[0]])
        top = first.topk(2, -1).values
        margin = (top[:, 0] - top[:, 1]).clamp(max=SURE + 0.1)
        return (first - second).abs().sum(-1) / 2 + 2 * margin

    _, gradient = sound.gradient(inputs, objective, [original.input_name])
    return np.asarray(gradient, np.float32)

"""What the originals are trained for, and how well a model does it: the independent criterion of health."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from edgeflare._internal import extras
from edgeflare.answers import SCORES, VALUES, AnswerKind
from edgeflare_bench.everyday.pictures import Truth

Tensor = Any
CELLS = 8
ANCHORS = (0.24, 0.36)
"""Sizes of the anchors of a cell, in shares of the image."""
_SCORE, _OVERLAP = 0.4, 0.5


# Losses, in PyTorch


def _classes(scores: Tensor, truth: Tensor) -> Tensor:
    """Return the cross entropy with smoothed labels: saturated probabilities would hide differences."""
    rows = scores.reshape(-1, scores.shape[-1])
    loss = extras.torch().nn.functional.cross_entropy
    return loss(rows, truth.reshape(-1), label_smoothing=0.05)


def _embedding(vectors: Tensor, truth: Tensor) -> Tensor:
    """Return the supervised contrastive loss (Khosla et al., NeurIPS 2020)."""
    torch = extras.torch()
    alike = vectors @ vectors.T / 0.15
    itself = torch.eye(len(truth), dtype=torch.bool)
    chances = torch.log_softmax(alike.masked_fill(itself, -1e9), 1)
    same = (truth[:, None] == truth) & ~itself
    return -(chances * same).sum() / same.sum()


def _slots(boxes: Tensor, count: int) -> tuple[Tensor, Tensor, Tensor]:
    """Return (image, object) of each object of a batch, its row among the cells, and its box."""
    image, place = (boxes[..., 0] >= 0).nonzero(as_tuple=True)
    objects = boxes[image, place].float()
    along, down = ((objects[:, 1:3] * CELLS).long().clamp(0, CELLS - 1)).T
    return image, (down * CELLS + along) * count, objects


def _grid(rows: Tensor, boxes: Tensor) -> Tensor:
    functional = extras.torch().nn.functional
    image, slot, objects = _slots(boxes, 1)
    is_object = rows.new_zeros(rows.shape[:2])
    is_object[image, slot] = 1
    predicted = rows[image, slot]
    kinds = functional.one_hot(objects[:, 0].long(), 3).float()
    return (
        functional.binary_cross_entropy(rows[..., 4], is_object) * 20
        + functional.l1_loss(predicted[:, :4], objects[:, 1:]) * 10
        + functional.binary_cross_entropy(predicted[:, 5:], kinds)
    )


def _anchors(outputs: tuple[Tensor, Tensor], boxes: Tensor) -> Tensor:
    torch = extras.torch()
    functional = torch.nn.functional
    predicted, scores = outputs
    image, slot, objects = _slots(boxes, len(ANCHORS))
    sizes = torch.tensor(ANCHORS)
    which = (objects[:, 3, None] - sizes).abs().argmin(1)
    slot = slot + which
    size = sizes[which][:, None]
    middle = torch.stack([slot // 2 % CELLS, slot // 2 // CELLS], 1) + 0.5
    offsets = torch.cat(
        [(objects[:, 1:3] - middle / CELLS) / size, (objects[:, 3:] / size).log()], 1
    )
    kinds = scores.new_zeros(scores.shape)
    kinds[image, slot, objects[:, 0].long()] = 1
    return (
        functional.binary_cross_entropy(scores, kinds) * 60
        + functional.l1_loss(predicted[image, slot], offsets) * 2
    )


LOSSES: Mapping[str, Callable[..., Any]] = {
    "classes": _classes,
    "embedding": _embedding,
    "grid": _grid,
    "anchors": _anchors,
}


# How well a model does its task, 0 to 1, by its outputs: one array [N, ...] an output

Outputs = Sequence[NDArray[Any]]


def _accuracy(outputs: Outputs, truth: Truth) -> float:
    return float((outputs[0].reshape(len(truth), -1).argmax(1) == truth).mean())


def _overlap_of_maps(outputs: Outputs, truth: Truth) -> float:
    """Return the mean over the classes of intersection over union."""
    predicted = outputs[0].reshape(*truth.shape, -1).argmax(-1)
    shares = [
        ((predicted == kind) & (truth == kind)).sum()
        / ((predicted == kind) | (truth == kind)).sum()
        for kind in range(4)
    ]
    return float(np.mean(shares))


def _nearest(outputs: Outputs, truth: Truth) -> float:
    """Return the share of the samples whose nearest of all others is of their class."""
    vectors = outputs[0].reshape(len(truth), -1).astype(np.float64)
    alike = vectors @ vectors.T
    np.fill_diagonal(alike, -np.inf)
    return float((truth[alike.argmax(1)] == truth).mean())


def _detections(outputs: Outputs, truth: Truth) -> float:
    """Return the F1 score of the boxes: right are those of the class that overlap by half."""
    right = predicted = 0
    for place, objects in enumerate(truth):
        free = [row for row in objects if row[0] >= 0]
        for kind, box in _boxes([output[place] for output in outputs]):
            predicted += 1
            # an object counts for one box only: a second box of it is a false one
            for row in free:
                if row[0] == kind and _overlap(box, row[1:]) >= _OVERLAP:
                    right += 1
                    free = [value for value in free if value is not row]
                    break
    return 2 * right / (predicted + int((truth[..., 0] >= 0).sum()))


def _boxes(outputs: Outputs) -> list[tuple[int, NDArray[Any]]]:
    """Return (class, box) of the detections of an image, the surest of those that overlap."""
    if len(outputs) == 1:
        rows = outputs[0].reshape(CELLS * CELLS, 8)
        boxes, scores = rows[:, :4], rows[:, 4:5] * rows[:, 5:]
    else:
        deltas, scores = (output.reshape(CELLS * CELLS * 2, -1) for output in outputs)
        slots = np.arange(len(deltas))
        middle = (np.stack([slots // 2 % CELLS, slots // 2 // CELLS], 1) + 0.5) / CELLS
        sizes = np.array(ANCHORS)[slots % 2][:, None]
        boxes = np.concatenate([middle + deltas[:, :2] * sizes, np.exp(deltas[:, 2:]) * sizes], 1)
    surest = scores.max(1)
    kept: list[tuple[int, NDArray[Any]]] = []
    for row in np.argsort(-surest, kind="stable"):
        if surest[row] < _SCORE:
            break
        if all(_overlap(boxes[row], box) < _OVERLAP for _, box in kept):
            kept.append((int(scores[row].argmax()), boxes[row]))
    return kept


def _overlap(first: NDArray[Any], second: NDArray[Any]) -> float:
    """Return intersection over union of two boxes (centre and size)."""
    low = np.maximum(first[:2] - first[2:] / 2, second[:2] - second[2:] / 2)
    high = np.minimum(first[:2] + first[2:] / 2, second[:2] + second[2:] / 2)
    shared = float(np.prod(np.maximum(high - low, 0)))
    return shared / float(np.prod(first[2:]) + np.prod(second[2:]) - shared + 1e-12)


class Task(NamedTuple):
    """What an original does: the kind of its answers, and how well a model does it, 0 to 1.

    `has_boxes`: the first output begins with the centres and sizes of boxes. `has_unit_length`: the answer
    is a vector of length 1. `before_classes`: so many numbers stand before those of the classes, where an
    output has both.
    """

    kind: AnswerKind[Any]
    measure: Callable[[Outputs, Truth], float]
    has_boxes: bool = False
    has_unit_length: bool = False
    before_classes: int = 0


CLASSIFICATION = Task(SCORES, _accuracy)
DENSE = Task(VALUES, _overlap_of_maps)
EMBEDDING = Task(VALUES, _nearest, has_unit_length=True)
DETECTION = Task(VALUES, _detections, has_boxes=True, before_classes=5)

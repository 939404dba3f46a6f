"""Answers of each kind, and inputs that they are answers to."""

import math
from collections.abc import Sequence

import numpy as np

from edgeflare.types import (
    DetectionRules,
    Detections,
    Output,
    Sample,
    Scores,
    Transcript,
    ValueRules,
    Values,
)

Both = tuple[Output, Output]

PERSON, DOG, CAT = (0.1, 0.2, 0.4, 0.8), (0.5, 0.5, 0.9, 0.95), (0.62, 0.05, 0.95, 0.4)
"""Boxes of three objects that don't overlap."""
NAMES = ("person", "dog", "cat")
"""The names of classes 0, 1 and 2."""


def detections(*found: tuple[int, float, Sequence[float]], located: bool = True) -> Detections:
    """Return an answer of (label, score, box), in any order; at least 0.5 is detected."""
    ranked = sorted(found, key=lambda one: -one[1])
    return Detections(
        np.array([box for *_, box in ranked], np.float64).reshape(-1, 4),
        np.array([label for label, *_ in ranked], np.int64),
        np.array([score for _, score, _ in ranked], np.float64),
        DetectionRules(located=located),
    )


def of_kind(kind: str, *, located: bool = True) -> tuple[Detections, Detections]:
    """Return two answers with one difference of this kind; "none": without any.

    Lost is a person (0.62 against 0.47), a ghost a dog (0.41 against 0.56); a cat becomes a dog, and
    the box of a person shifts. "broken": the deployed model's scores are NaN.
    """
    person, dog, cat = (0, 0.9, PERSON), (1, 0.8, DOG), (2, 0.7, CAT)
    every = [person, dog, cat]
    one, other = {
        "none": (every, every),
        "broken": (every, [(label, math.nan, box) for label, _, box in every]),
        "lost": ([(0, 0.62, PERSON), dog, cat], [(0, 0.47, PERSON), dog, cat]),
        "ghost": ([person, (1, 0.41, DOG)], [person, (1, 0.56, DOG)]),
        "class": ([person, (2, 0.7, CAT)], [person, (1, 0.66, CAT)]),
        "shift": ([person, dog], [(0, 0.88, (0.16, 0.26, 0.46, 0.86)), dog]),
    }[kind]
    return detections(*one, located=located), detections(*other, located=located)


def photo(number: int) -> Sample:
    """Return a picture of 60 x 80 pixels with three coloured rectangles."""
    generator = np.random.default_rng(number)
    image = generator.integers(60, 90, (60, 80, 3)).astype(np.uint8)
    for box, colour in ((PERSON, (200, 60, 60)), (DOG, (60, 160, 60)), (CAT, (70, 70, 200))):
        left, top, right, bottom = (
            round(share * size) for share, size in zip(box, (80, 60, 80, 60), strict=True)
        )
        image[top:bottom, left:right] = colour
    return image


def values(*elements: float, rules: ValueRules | None = None) -> Values:
    """Return a vector."""
    return Values(np.array(elements, np.float64), rules or ValueRules())


def label_maps(changed: int) -> tuple[Values, Values]:
    """Return two maps of 3 labels, 20 x 24 pixels, that differ in so many of them, row by row."""
    scores = np.zeros((3, 20, 24))
    scores[0] = 0.5
    scores[1, 5:15, 4:12] = scores[2, 8:18, 14:22] = 1.0
    other = scores.copy()
    other.reshape(3, -1)[2, :changed] = 2.0
    rules = ValueRules("labels")
    return Values(scores, rules), Values(other, rules)


def depth_maps(change: float) -> tuple[Values, Values]:
    """Return two maps of one channel, 20 x 24 pixels, whose corner differs by so much."""
    plane = np.linspace(0, 1, 480).reshape(1, 20, 24)
    other = plane.copy()
    other[0, :5, :5] += change
    return Values(plane), Values(other)


def sure_of(
    label: int, confidence: float, *, classes: int = 10, second: int | None = None
) -> Scores:
    """Return class scores: `confidence` for the label, half of what is left for the second if there is one."""
    rest = 1.0 - confidence
    scores = np.full(classes, rest / (classes - 1 if second is None else 2 * (classes - 2)))
    if second is not None:
        scores[second] = rest / 2
    scores[label] = confidence
    return scores


def chirp(number: int, seconds: float = 1.0, rate: int = 16_000) -> Sample:
    """Return a tone that rises and falls with two harmonics and a little noise, float32 [samples] in [-1, 1]."""
    generator = np.random.default_rng(number)
    time = np.arange(round(seconds * rate)) / rate
    base = 180 + 40 * (number % 5) + 120 * np.sin(2 * np.pi * (1.5 + 0.3 * (number % 3)) * time)
    phase = 2 * np.pi * np.cumsum(base) / rate
    loud = 0.3 * np.sin(np.pi * time / seconds) ** 2
    tone = sum(np.sin(order * phase) / order for order in (1, 2, 3, 8))
    noise = 0.002 * generator.normal(size=time.size)
    return np.clip(loud * tone + noise, -1, 1).astype(np.float32)


def transcript(text: str, sure: float = 0.9) -> Transcript:
    """Return a text word by word, of which each has the probability `sure` and the best other one half the rest."""
    words = text.split(" ") if text else []
    pieces = tuple(word if not place else f" {word}" for place, word in enumerate(words))
    return Transcript(pieces, np.tile([sure, (1 - sure) / 2], (len(pieces), 1)))

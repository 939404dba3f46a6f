"""The same answers of the original give the same triggers to the byte, whatever the processor.

Both models calculate with whole numbers, so that their answers are the same everywhere. The digests
hold for every x86-64 and arm64 processor; `.ci/cpus` runs this as several of them.
"""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from search_models import Pair, search

from edgeflare._internal import exact
from edgeflare.answers.outputs import softmax
from edgeflare.strategies.boundary.directions import Directions, directions_for, noise_like
from edgeflare.strategies.boundary.first_trigger import Ridge
from edgeflare.types import KnownAnswers, Sample, Scores

pytestmark = pytest.mark.rounding

SEEDS = 4


@dataclass(frozen=True)
class WholeNumbers:
    """A linear classifier in 64-bit integers; `step` coarsens its weights like a quantiser."""

    weights: NDArray[np.int64]
    features: Callable[[Sample], NDArray[np.int64]]
    step: int = 1
    unit: int = 2**14

    def __call__(self, sample: Sample) -> Scores:
        weights = self.weights // self.step * self.step
        sums = (self.features(sample)[:, None] * weights).sum(axis=0)
        return softmax(sums / self.unit)


def pixels(sample: Sample) -> NDArray[np.int64]:
    return sample.astype(np.int64).ravel() - 128


def loudness(sample: Sample) -> NDArray[np.int64]:
    """The mean size of the samples and of their differences, in each of 16 parts of a recording."""
    levels = np.rint(sample.astype(np.float64) * 32768).astype(np.int64)[:2048]
    changes = np.diff(levels, prepend=0)
    return np.concatenate(
        [np.abs(one).reshape(16, 128).sum(axis=1) // 128 for one in (levels, changes)]
    )


def linear(count: int, features: Callable[[Sample], NDArray[np.int64]], unit: int) -> Pair:
    weights = np.random.default_rng(3).integers(-64, 65, (count, 5))
    original = WholeNumbers(weights, features, unit=unit)
    return Pair(original, WholeNumbers(weights, features, step=7, unit=unit))


def images(side: int) -> list[Sample]:
    rng = np.random.default_rng(side)
    tiles = rng.integers(30, 226, (3 * SEEDS, 4, 4, 3), dtype=np.uint8)
    return list(tiles.repeat(side // 4, axis=1).repeat(side // 4, axis=2))


def recordings() -> list[Sample]:
    rng = np.random.default_rng(1)
    drawn = rng.integers(-9000, 9001, (3 * SEEDS, 2048)) * rng.integers(1, 4, (3 * SEEDS, 2048))
    return list((drawn / 32768).astype(np.float32))


def digest(pair: Pair, inputs: list[Sample], **options: Any) -> tuple[str, int]:
    """The digest of all questions and of the triggers, and the number of triggers."""
    agreed = [one for one in inputs if pair.original(one).argmax() == pair.deployed(one).argmax()]
    found, digests = 0, hashlib.sha256()
    for number, sample in enumerate(agreed[:SEEDS]):
        run = search(pair, pair.seed(sample, inputs), number, **options)
        for ask in run.asks:
            digests.update(ask.of.encode())
            for asked in ask.samples:
                digests.update(asked.tobytes())
        if run.outcome.sample is not None:
            found += 1
            digests.update(run.outcome.sample.tobytes())
    return digests.hexdigest()[:16], found


SMALL = linear(16 * 16 * 3, pixels, 2**14)
LARGE = linear(64 * 64 * 3, pixels, 2**17)
AUDIO = linear(32, loudness, 2**13)


@pytest.mark.parametrize(
    ("pair", "inputs", "options", "expected"),
    [
        (SMALL, images(16), {"effort": 32}, "348f3491a46bfa29"),
        (SMALL, images(16), {"effort": 96, "tied_classes": 3}, "13972115a011a0b4"),
        (SMALL, images(16), {"crossing": "line"}, "1c55b888ee286147"),
        (SMALL, images(16), {"effort": 32, "device_budget": 12}, "2cdde6ab5d78faf7"),
        (LARGE, images(64), {"effort": 32}, "a809bca769b57e1a"),
        (AUDIO, recordings(), {"effort": 64}, "0468c8c055967129"),
        (AUDIO, recordings(), {"effort": 64, "device_budget": 12}, "2b6f9bb3aaa7efd4"),
    ],
    ids=["small", "ties", "line", "severity", "large", "audio", "audio-severity"],
)
def test_searches_are_the_same_to_the_byte(pair, inputs, options, expected) -> None:
    found, triggers = digest(pair, inputs, **options)
    assert triggers == SEEDS
    assert found == expected


def steps(directions: Directions) -> NDArray[np.float64]:
    """A step along all directions, and the sum of all of them with some shares."""
    slopes = exact.normal(np.random.default_rng(2), len(directions))
    return np.stack([directions.step(slopes, 3.0)(1.3), directions.combine(slopes)])


def noise(shape: tuple[int, ...]) -> NDArray[np.float64]:
    rng = np.random.default_rng(1)
    values = exact.normal(rng, shape) * 60 + 128
    return noise_like(rng, values)


def drift() -> NDArray[np.float64]:
    """What a fit to the answers on 32 inputs predicts at those, and its accuracy."""
    answers = [
        np.stack([softmax(row) for row in exact.normal(np.random.default_rng(one), (32, 6)) * 3])
        for one in (4, 5)
    ]
    fit = Ridge(KnownAnswers(*answers))
    return np.append(fit.predict(exact.log(answers[0])), fit.sign_accuracy)


VALUES = exact.normal(np.random.default_rng(0), 5000) * 20


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (VALUES, "8af5858a65330412"),
        (exact.exp(VALUES), "1a9a7b354fa7e1ac"),
        (exact.log(np.abs(VALUES)), "458512d4cab6ffb3"),
        (softmax(VALUES), "dbecdb5ead1992ec"),
        (exact.cosines(28, 28), "51efca6450dfdd1e"),
        (exact.least_norm(VALUES.reshape(2, -1), VALUES[:2], 1e-3), "e0f5ea0dcd71f93d"),
        (steps(directions_for(images(16)[0] * 1.0, 64)), "99ec1236f5dead27"),
        (steps(directions_for(images(64)[0] * 1.0, 64)), "24ea7eb95bdf48da"),
        (steps(directions_for(recordings()[0] * 32768.0, 64)), "7384147be6838872"),
        (noise((28, 30, 3)), "29167418489af53d"),
        (drift(), "b805830dfc608a58"),
        (noise((3000,)), "3cb3d20497fbdacd"),
    ],
    ids=[
        *("normal", "exp", "log", "softmax", "cosines", "least-norm"),
        *("low-frequencies", "detail", "sound-parts", "smooth-noise", "drift", "sound-noise"),
    ],
)
def test_what_a_search_calculates_is_the_same_to_the_bit(values, expected) -> None:
    found = np.ascontiguousarray(values, dtype="<f8").tobytes()
    assert hashlib.sha256(found).hexdigest()[:16] == expected

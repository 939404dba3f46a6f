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

from edgeflare.models.outputs import softmax
from edgeflare.types import Sample, Scores

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
    """The digest of the triggers and of all that was asked, and the number of triggers."""
    agreed = [one for one in inputs if pair.original(one).argmax() == pair.deployed(one).argmax()]
    found, digests = 0, hashlib.sha256()
    for number, sample in enumerate(agreed[:SEEDS]):
        run = search(pair, pair.seed(sample, inputs), number, **options)
        digests.update(str(run.host).encode())
        for query in run.queries:
            digests.update(query.sample.tobytes())
        assert run.outcome is not None
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
        (SMALL, images(16), {"effort": 32}, "2b7a6b914b151008"),
        (SMALL, images(16), {"effort": 96, "tied_classes": 3}, "1820751e184ec3d8"),
        (SMALL, images(16), {"crossing": "line"}, "3e19bc0ac0cbcfc4"),
        (SMALL, images(16), {"effort": 32, "device_budget": 12}, "d65057be20babe4c"),
        (LARGE, images(64), {"effort": 32}, "fd6aea465b0c2d72"),
        (AUDIO, recordings(), {"effort": 64}, "425be1ef7db2b0f4"),
        (AUDIO, recordings(), {"effort": 64, "device_budget": 12}, "acab2101d9a50a21"),
    ],
    ids=["small", "ties", "line", "severity", "large", "audio", "audio-severity"],
)
def test_searches_are_the_same_to_the_byte(
    pair: Pair, inputs: list[Sample], options: dict[str, Any], expected: str
) -> None:
    found, triggers = digest(pair, inputs, **options)
    assert triggers == SEEDS
    assert found == expected

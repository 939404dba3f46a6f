"""A look far from the seed, where a deployed model may go wrong altogether."""

from dataclasses import dataclass

import numpy as np
import pytest
from search_models import Affine, Pair, Run, Shape, affine, images, margin, moved, search

from edgeflare.metrics import ssim
from edgeflare.strategies.boundary import BoundaryOptions
from edgeflare.strategies.boundary.options import Bounds
from edgeflare.types import Sample, Scores

SHAPE: Shape = (12, 12, 1)
USUAL = 0.1 * np.sqrt(np.prod(SHAPE))
"""As far as the search beside the boundary goes, L2."""


@dataclass(frozen=True)
class LostFarOff:
    """A deployed model that is sure of class 0 on noisy inputs: neighbouring pixels differ much."""

    model: Affine
    roughness: float

    def __call__(self, sample: Sample) -> Scores:
        pixels = sample.astype(float) / 255.0
        rough = np.abs(np.diff(pixels, axis=0)).mean()
        if rough < self.roughness:
            return self.model(sample)
        scores = np.full(len(self.model.bias), 0.002)
        scores[0] += 1.0 - scores.sum()
        return scores


def smooth_images(count: int) -> list[Sample]:
    """Grey images with little noise, on which a model of random weights is not always sure."""
    rng = np.random.default_rng(4)
    return [np.clip(rng.normal(128, 25, SHAPE), 0, 255).astype(np.uint8) for _ in range(count)]


ORIGINAL = affine(SHAPE, 5)
NEAR = moved(ORIGINAL, 0.05)
LOST = Pair(ORIGINAL, LostFarOff(NEAR, roughness=0.24))
WELL = Pair(ORIGINAL, NEAR)


def runs(pair: Pair, count: int = 16, **options: object) -> list[tuple[Sample, Run]]:
    found = []
    for number, sample in enumerate(smooth_images(count)):
        seed = pair.seed(sample, images(SHAPE, 8, 3))
        if seed.outputs.decision.value == "agree":
            found.append((sample, search(pair, seed, number, **options)))
    assert len(found) >= count / 2
    return found


def distance(one: Sample, other: Sample) -> float:
    return float(np.linalg.norm(one.astype(float) - other)) / 255.0


def far(seed: Sample, run: Run) -> int:
    """How many of the inputs that the device was asked about lie far from the seed."""
    return sum(distance(seed, query.sample) > 1.5 * USUAL for query in run.queries)


def looks(seed: Sample, run: Run) -> int:
    """How many of those far inputs the original is sure of.

    All others that the device is asked about lie at its boundary; a climb along it may lead as far.
    """
    return sum(
        distance(seed, query.sample) > 1.5 * USUAL
        and query.outputs.original is not None
        and margin(query.outputs.original) >= 0.5
        for query in run.queries
    )


@pytest.mark.rounding
def test_where_the_deployed_model_is_lost_far_off_both_are_sure_of_different_answers() -> None:
    lost = np.median([run.severest for _, run in runs(LOST, device_budget=12)])
    well = np.median([run.severest for _, run in runs(WELL, device_budget=12)])
    assert well < 0.2
    assert lost > 0.8


@pytest.mark.rounding
def test_where_it_is_not_little_is_spent_on_looking() -> None:
    spent = [looks(seed, run) for seed, run in runs(WELL, device_budget=12)]
    assert max(spent) <= 2


def test_a_search_that_is_as_severe_as_can_be_ends() -> None:
    spent = [(run.severest, len(run.queries)) for _, run in runs(LOST, device_budget=60)]
    assert all(asked < 60 for severest, asked in spent if severest >= 0.99)
    assert sum(severest >= 0.99 for severest, _ in spent) >= 3


def test_nothing_far_is_asked_for_a_first_trigger() -> None:
    assert all(looks(seed, run) == 0 for seed, run in runs(LOST, 10))


@pytest.mark.parametrize(
    ("bounds", "room"),
    [
        ({}, True),
        ({"max_l2": 1.6 * USUAL}, True),
        ({"max_l2": 1.4 * USUAL}, False),
        ({"max_linf": 40}, True),
        ({"max_linf": 30}, False),
        ({"max_l2": 2.0 * USUAL, "max_linf": 30}, False),
    ],
)
def test_far_off_is_not_within_narrow_bounds(bounds: dict[str, float], room: bool) -> None:
    limits = Bounds(BoundaryOptions.model_validate(bounds), smooth_images(1)[0])
    assert limits.is_wide == room


@pytest.mark.parametrize("bounds", [{"max_l2": 2.0 * USUAL}, {"max_linf": 60}, {"min_ssim": 0.4}])
def test_bounds_hold_far_off_too(bounds: dict[str, float]) -> None:
    for seed, run in runs(LOST, device_budget=8, **bounds):
        for query in run.queries:
            assert distance(seed, query.sample) <= bounds.get("max_l2", np.inf)
            change = query.sample.astype(float) - seed
            assert np.abs(change).max() <= bounds.get("max_linf", 255)
            alike = ssim(seed, query.sample)
            assert alike is not None
            assert alike >= bounds.get("min_ssim", -1)


def test_natural_findings_stay_natural() -> None:
    for seed, run in runs(LOST, 4, crossing="natural", effort=8, device_budget=12):
        assert far(seed, run) == 0
        assert run.gave_up or run.outcome.mutations


@pytest.mark.rounding
def test_a_device_that_returns_labels_only_is_looked_at_far_off_too() -> None:
    pair = Pair(LOST.original, LOST.deployed, labels_only=True)
    asked = [far(seed, run) for seed, run in runs(pair, device_budget=12)]
    assert np.mean(np.array(asked) > 0) > 0.5

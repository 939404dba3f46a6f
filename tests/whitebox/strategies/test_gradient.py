"""The strategy gradient: images change only as the constraint allows, and the device is asked beside the boundary."""

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from search_models import Affine, Pair, Run, affine, agreed, moved, played, quantised

from edgeflare.errors import UsageError
from edgeflare.strategies import build_strategy, check_search
from edgeflare.types import Decision, Sample
from edgeflare_whitebox.strategies.constraints import CONSTRAINTS, make_constraint

SHAPES = [(14, 14, 1), (10, 16, 3)]


def searches(shape: tuple[int, int, int], **options: Any) -> Iterator[tuple[Sample, Run]]:
    """Searches of a quantised copy from ten seeds."""
    original = affine(shape, 4)
    pair = Pair(original, quantised(original))
    strategy = build_strategy("gradient", options)
    for number, sample in enumerate(agreed(pair, shape, 10)):
        run = Run()
        steps = strategy(pair.seed(sample), np.random.default_rng(number))
        run.outcome = played(steps, pair, run)
        yield sample, run


def change(seed: Sample, sample: Sample) -> Any:
    assert sample.dtype == np.uint8
    assert sample.shape == seed.shape
    return sample.astype(int) - seed.astype(int)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("constraint", CONSTRAINTS)
def test_the_device_is_only_asked_about_images_that_the_constraint_allows(
    constraint: str, shape: tuple[int, int, int]
) -> None:
    asked = 0
    for seed, run in searches(shape, constraint=constraint, size=4):
        for sample, _ in run.queries:
            asked += 1
            by = change(seed, sample)
            if constraint == "light":
                inside = (sample > 0) & (sample < 255)
                assert np.ptp(by[inside]) <= 1  # a half is rounded to the even number
            elif constraint == "occlusion":
                rows, columns, _ = np.nonzero(by)
                assert np.ptp(rows) < 4
                assert np.ptp(columns) < 4
            else:
                assert by.max() <= 0
    assert asked


@pytest.mark.parametrize("constraint", ["occlusion", "blackout"])
def test_most_seeds_lead_to_an_image_on_which_the_device_decides_differently(constraint) -> None:
    found = 0
    for _, run in searches((14, 14, 1), constraint=constraint):
        if run.gave_up:
            continue
        found += 1
        deviating = [one for one, outputs in run.queries if outputs.decision is Decision.DEVIATION]
        assert np.array_equal(run.found, deviating[-1])
    assert found >= 8


def test_the_original_is_followed_downhill_and_the_device_asked_only_at_its_boundary() -> None:
    for _, run in searches((14, 14, 1)):
        slopes = [place for place, ask in enumerate(run.asks) if ask.want == "gradient"]
        queries = [place for place, ask in enumerate(run.asks) if ask.of == "both"]

        assert slopes[0] < queries[0]
        assert len(run.queries) < len(run.asks) / 2


def test_each_step_lowers_the_originals_log_odds() -> None:
    original = affine((14, 14, 1), 4)
    steps = 0
    for seed, run in searches((14, 14, 1), step=2.0, attempts=1):
        label = int(original.logits(seed).argmax())
        walk = [ask.samples[0] for ask in run.asks if ask.want == "gradient"]
        odds = [
            logits[label] - np.delete(logits, label).max() for logits in map(original.logits, walk)
        ]
        steps += len(odds) - 1
        assert all(after < before for before, after in pairwise(odds))
    assert steps > 20


def test_later_walks_have_their_square_elsewhere() -> None:
    rng = np.random.default_rng(0)
    gradient = rng.normal(size=(20, 20, 1))
    sample = np.zeros((20, 20, 1), np.uint8)
    places = {
        make_constraint("occlusion", 10.0, 4, rng, anywhere=True)(sample, gradient)
        .astype(bool)
        .tobytes()
        for _ in range(10)
    }

    assert len(places) > 5


def test_a_device_that_drifts_by_too_little_is_left_alone() -> None:
    original = affine((14, 14, 1), 4)
    pair = Pair(original, moved(original, 1e-6))
    run = Run()
    (sample,) = agreed(pair, (14, 14, 1), 1)

    outcome = played(
        build_strategy("gradient", {"attempts": 200})(pair.seed(sample), np.random.default_rng(0)),
        pair,
        run,
    )

    assert "device decides" in outcome.reason
    assert len(run.queries) < 20


def test_a_floor_that_no_input_reaches_costs_no_device_query() -> None:
    original = affine((14, 14, 1), 4)
    pair = Pair(original, quantised(original), floor=0.98)
    run = Run()
    sample = agreed(Pair(original, quantised(original)), (14, 14, 1), 1)[0]

    outcome = played(
        build_strategy("gradient", {})(pair.seed(sample), np.random.default_rng(0)), pair, run
    )

    assert "wanted margin; nothing" in outcome.reason
    assert not run.queries


@pytest.mark.parametrize("constraint", CONSTRAINTS)
def test_a_decision_that_no_change_can_turn_costs_no_device_query(constraint: str) -> None:
    shape = (8, 8, 1)
    sure = Affine(affine(shape, 3).weights * 1e-3, np.array([9.0, 0.0, 0.0]))
    pair = Pair(sure, moved(sure))
    run = Run()
    strategy = build_strategy("gradient", {"constraint": constraint})
    seed = pair.seed(np.full(shape, 128, np.uint8))

    outcome = played(strategy(seed, np.random.default_rng(0)), pair, run)

    assert "original keeps" in outcome.reason
    assert not run.queries


def test_the_square_lies_where_the_gradient_is_steepest_and_stays_there() -> None:
    gradient = np.zeros((20, 20, 1))
    gradient[11:15, 3:7] = 1.0
    rng = np.random.default_rng(0)
    change_of = make_constraint("occlusion", 10.0, 4, rng)

    first = change_of(np.zeros((20, 20, 1), np.uint8), gradient)
    second = change_of(np.zeros((20, 20, 1), np.uint8), rng.normal(size=(20, 20, 1)))

    assert set(zip(*np.nonzero(first[..., 0]), strict=True)) == {
        (row, column) for row in range(11, 15) for column in range(3, 7)
    }
    assert np.array_equal(first != 0, second != 0)


def test_patches_become_black_where_that_raises_the_objective_only() -> None:
    gradient = np.ones((12, 12, 1))
    gradient[:, :6] = -1.0
    sample = np.full((12, 12, 1), 200, np.uint8)
    change_of = make_constraint("blackout", 10.0, 3, np.random.default_rng(1))

    for _ in range(30):
        change = change_of(sample, gradient)
        darker = change < 0
        assert (change[~darker] == 0).all()
        assert darker.sum() == 9
        assert gradient[darker].mean() < 0


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"constraint": "fog"}, "'light', 'occlusion'"),
        ({"step": 0}, "greater"),
        ({"size": 0}, "greater"),
        ({"effort": 8}, "option 'effort'"),
    ],
)
def test_options_that_mean_nothing_are_refused(options: dict[str, Any], sentence: str) -> None:
    with pytest.raises(UsageError, match=sentence):
        build_strategy("gradient", options)


def test_a_square_larger_than_the_image_is_refused() -> None:
    with pytest.raises(UsageError, match="15 pixels"):
        next(searches((14, 14, 1), size=15))


def test_mutation_operators_and_recordings_are_refused() -> None:
    with pytest.raises(UsageError, match="mutation operators"):
        build_strategy("gradient", {}, ("gaussian-noise",))
    with pytest.raises(UsageError, match="changes images"):
        check_search("gradient", {}, kind="audio", answered="audio")

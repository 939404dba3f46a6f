"""How the boundary search reaches the original's decision boundary, and places inputs beside it."""

from dataclasses import replace

import numpy as np
import pytest
from search_models import Pair, Run, Shape, affine, agreed, images, played, quantised

from edgeflare._internal.exact import Floats
from edgeflare.strategies.boundary.crossings import Crossing, make_crossing
from edgeflare.strategies.boundary.directions import directions_for, smooth_noise
from edgeflare.strategies.boundary.paths import (
    Bracket,
    LinePath,
    TargetMargin,
    approach,
    cross_boundary,
)
from edgeflare.strategies.boundary.perturb import perturb_locally
from edgeflare.strategies.boundary.points import OriginalProbe
from edgeflare.types import Sample, Scores
from edgeflare_mutators import Mutation, corruptions, default_pool, replay

SHAPES: tuple[Shape, ...] = ((5, 4, 1), (17, 23, 3), (70, 64, 3))
NAMES = ("least-l2", "line", "mutants", "natural")


def host(shape: Shape, classes: int = 5) -> Pair:
    original = affine(shape, classes)
    return Pair(original, original)


def view_of(pair: Pair, shape: Shape, place: int = 0) -> OriginalProbe:
    sample = agreed(pair, shape, place + 1)[place]
    return OriginalProbe(pair.seed(sample, images(shape, 12, 3)))


def way(name: str, view: OriginalProbe, number: int = 0, effort: int = 16) -> Crossing:
    pool = corruptions() if name == "natural" else default_pool()
    return make_crossing(name, view, np.random.default_rng(number), effort, pool)


def crossed(pair: Pair, ways: Crossing, tries: int = 20) -> Bracket:
    for _ in range(tries):
        found = played(ways.find(), pair, Run())
        if found is not None:
            return found
    raise AssertionError("no crossing was found")


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("name", NAMES)
def test_a_crossing_has_the_original_s_boundary_between_its_two_inputs(name, shape) -> None:
    pair = host(shape)
    view = view_of(pair, shape)
    ways = way(name, view)
    ends = set()
    for _ in range(4):
        inside, outside = crossed(pair, ways)
        assert int(pair.original(inside.sample).argmax()) == view.label
        assert int(pair.original(outside.sample).argmax()) == outside.rival != view.label
        assert inside.log_odds > 0 > outside.log_odds
        assert inside.path is outside.path
        assert inside.t < outside.t <= outside.path.max_t
        assert np.array_equal(outside.path.at(outside.t), outside.sample)
        assert np.array_equal(outside.path.at(0.0), view.seed.sample)
        ends.add(outside.sample.tobytes())
    assert len(ends) >= 3  # others each time


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_what_lies_on_a_natural_way_replays(shape: Shape) -> None:
    pair = host(shape)
    view = view_of(pair, shape)
    ways = way("natural", view)
    for number in range(4):
        path = crossed(pair, ways).outside.path
        varied = path.perturbed(np.random.default_rng(number), 0.1)
        for one in (path, varied):
            for t in (0.0, 0.37, 1.0):
                steps = [Mutation.from_json(step) for step in one.mutations(t)]
                assert np.array_equal(replay(view.seed.sample, steps), one.at(t))


def test_without_another_seed_a_line_leads_across_all_the_same() -> None:
    pair = host((17, 23, 3))
    view = view_of(pair, (17, 23, 3))
    alone = OriginalProbe(replace(view.seed, others=[view.seed.sample, images((4, 4, 1), 1)[0]]))
    inside, outside = crossed(pair, way("line", alone))
    assert inside.log_odds > 0 > outside.log_odds


def boundary_distance(pair: Pair, view: OriginalProbe) -> float:
    """The L2 distance of the seed to the nearest boundary of a linear original."""
    original = pair.original
    logits = original.logits(view.seed.sample)  # type: ignore[attr-defined]
    weights = original.weights  # type: ignore[attr-defined]
    label = view.label
    away = [
        (logits[label] - logits[one]) / np.linalg.norm(weights[:, label] - weights[:, one])
        for one in range(len(logits))
        if one != label
    ]
    return float(min(away))


@pytest.mark.rounding
@pytest.mark.parametrize("number", range(6))
def test_least_l2_crosses_next_to_the_nearest_boundary_of_a_linear_model(number: int) -> None:
    pair = host((8, 8, 1))
    view = view_of(pair, (8, 8, 1), number)
    nearest = boundary_distance(pair, view)
    bracket = crossed(pair, way("least-l2", view, effort=64))  # all directions of 8 x 8 pixels
    rounding = np.sqrt(64 / 12) / 255
    assert nearest <= view.distance(bracket.outside.sample) <= 1.1 * nearest + rounding
    placed = played(
        approach(view, bracket, TargetMargin(-0.02, 0.01, 0.0), np.random.default_rng(0)),
        pair,
        Run(),
    )
    assert view.distance(placed.sample) <= 1.05 * nearest + rounding
    for name in ("line", "mutants"):
        other = crossed(pair, way(name, view)).outside
        assert view.distance(other.sample) > view.distance(bracket.outside.sample)


@pytest.mark.rounding
def test_more_directions_lead_nearer() -> None:
    pair = host((28, 28, 1), 10)
    views = [view_of(pair, (28, 28, 1), number) for number in range(4)]

    def mean(effort: int) -> float:
        return float(
            np.mean(
                [
                    one.distance(crossed(pair, way("least-l2", one, effort=effort)).outside.sample)
                    for one in views
                ]
            )
        )

    assert mean(256) < 0.8 * mean(16)


@pytest.mark.rounding
@pytest.mark.parametrize("lead", [-1.5, -0.3, -0.01, 0.01, 0.3])
@pytest.mark.parametrize("name", ["least-l2", "line", "mutants"])
def test_placing_reaches_an_aim_on_either_side(name: str, lead: float) -> None:
    pair = host((17, 23, 3))
    view = view_of(pair, (17, 23, 3))
    path = crossed(pair, way(name, view)).outside.path
    assert isinstance(path, LinePath)
    bracket = played(cross_boundary(view, replace(path, max_t=4.0), lead), pair, Run())
    assert bracket is not None
    aim = TargetMargin(lead, 0.2 * abs(lead), 1e-3)
    run = Run()
    point = played(approach(view, bracket, aim, np.random.default_rng(0)), pair, run)
    assert abs(point.log_odds - lead) <= aim.tolerance
    scores = pair.original(point.sample)
    others = np.delete(scores, view.label)
    assert np.log(scores[view.label] / others.max()) == pytest.approx(point.log_odds)
    assert run.host <= 24


def test_placing_on_a_bent_path_bisects_once_and_goes_on_by_secants() -> None:
    def bent(sample: Sample) -> Scores:
        t = float(sample.mean()) / 250.0
        log_odds = max(20.0 - 95.0 * t, 1.0 - 2.0 * (t - 0.2))  # steep up to 0.2, then slight
        scores: Scores = np.array([1.0, np.exp(-log_odds)]) / (1.0 + np.exp(-log_odds))
        return scores

    pair = Pair(bent, bent)
    seed = np.zeros((8, 8, 1), np.uint8)
    view = OriginalProbe(pair.seed(seed))
    path = LinePath(view.values, view.values + 250.0)
    bracket = played(cross_boundary(view, path), pair, Run())
    assert bracket is not None
    run = Run()
    aim = TargetMargin(-0.05, 0.02, 0.0)
    point = played(approach(view, bracket, aim, np.random.default_rng(0)), pair, run)
    assert point.log_odds == pytest.approx(-0.05, abs=0.02)
    assert run.host == 3


@pytest.mark.rounding
def test_placing_on_a_rough_original_stays_on_the_wanted_side_and_above_the_floor() -> None:
    smooth_one = affine((8, 8, 1), 4)
    pair = Pair(quantised(smooth_one, coarse=4), smooth_one)
    view = view_of(pair, (8, 8, 1))
    ways = way("least-l2", view)
    placed = 0
    for number in range(10):
        bracket = crossed(pair, ways)
        for lead in (-0.1, 0.1):
            aim = TargetMargin(lead, 0.02, 1e-3)
            found = played(approach(view, bracket, aim, np.random.default_rng(number)), pair, Run())
            if found is not None:
                placed += 1
                assert (int(pair.original(found.sample).argmax()) == view.label) is (lead > 0)
                assert found.margin >= 1e-3
    assert placed >= 10


@pytest.mark.parametrize("shape", [(8, 8, 1), (96, 96, 3)], ids=str)
@pytest.mark.parametrize("lead", [-0.02, 0.02])
def test_an_input_beside_another_differs_by_a_few_levels_of_a_few_values(shape, lead) -> None:
    pair = host(shape)
    view = view_of(pair, shape)
    bracket = crossed(pair, way("least-l2", view))
    rng = np.random.default_rng(0)
    start = played(approach(view, bracket, TargetMargin(-lead, 0.01, 1e-3), rng), pair, Run())
    point = played(perturb_locally(view, start, TargetMargin(lead, 0.01, 1e-3), rng), pair, Run())
    assert point.log_odds * lead > 0
    assert abs(point.log_odds - lead) <= 0.01
    change = np.abs(point.sample.astype(int) - start.sample)
    assert 1 <= change.max() <= 3
    assert np.count_nonzero(change) <= 16 * max(1, change.size // 1024)


def rows(pixels: Floats, count: int) -> Floats:
    """The directions of an image, one a row."""
    found = directions_for(pixels, count)
    shares = np.random.default_rng(0).standard_normal(len(found))
    every = np.array([found[place].ravel() for place in range(len(found))])
    assert np.allclose(found.combine(shares).ravel(), shares @ every)
    return every


@pytest.mark.parametrize("shape", [(1, 1, 1), (3, 5, 3), (28, 28, 1), (40, 63, 3)], ids=str)
@pytest.mark.parametrize("count", [4, 64, 128])
def test_directions_of_small_images_are_of_unit_length_and_orthogonal(shape, count) -> None:
    found = rows(images(shape, 1)[0].astype(np.float64), count)
    assert len(found) == min(count, np.prod(shape))
    assert np.allclose(found @ found.T, np.eye(len(found)), atol=1e-10)


@pytest.mark.rounding
@pytest.mark.parametrize("shape", [(64, 20, 1), (96, 96, 3), (1, 80, 3)], ids=str)
@pytest.mark.parametrize("flat", [False, True])
def test_directions_of_large_images_are_of_unit_length_flat_ones_too(shape, flat) -> None:
    pixels = np.full(shape, 90.0) if flat else images(shape, 1)[0].astype(np.float64)
    found = rows(pixels, 16)
    assert 4 <= len(found) <= 16
    assert np.allclose(np.linalg.norm(found, axis=1), 1.0)


@pytest.mark.parametrize("shape", [(1, 1, 1), (3, 2, 3), (60, 40, 1)], ids=str)
def test_smooth_noise_is_of_unit_length(shape: Shape) -> None:
    noise = smooth_noise(np.random.default_rng(0), shape)
    assert noise.shape == shape
    assert np.linalg.norm(noise) == pytest.approx(1.0)

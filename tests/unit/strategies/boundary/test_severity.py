"""What the boundary search makes of a device budget, and the bounds that its findings keep to."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from search_models import Pair, Run, Shape, affine, agreed, images, margin, moved, quantised, search

from edgeflare.errors import UsageError
from edgeflare.metrics import l2, linf, ssim
from edgeflare.types import Sample

SHAPE: Shape = (12, 12, 1)
CROSSINGS = ("least-l2", "line", "mutants", "natural")
PAIRS = {
    "moved": Pair(affine(SHAPE, 5), moved(affine(SHAPE, 5), 0.3)),
    "rough": Pair(affine(SHAPE, 5), quantised(affine(SHAPE, 5), coarse=8)),
    "labels": Pair(affine(SHAPE, 5), quantised(affine(SHAPE, 5), coarse=8), labels_only=True),
}


def seed_of(pair: Pair) -> Sample:
    return agreed(pair, SHAPE, surely=0.3)[0]


def searched(name: str, number: int = 0, **options: Any) -> Run:
    pair = PAIRS[name]
    return search(pair, pair.seed(seed_of(pair), images(SHAPE, 8, 3)), number, **options)


@pytest.mark.parametrize("crossing", CROSSINGS)
@pytest.mark.parametrize("name", PAIRS)
def test_a_budget_is_never_overspent_and_never_makes_a_finding_less_severe(name, crossing) -> None:
    once = searched(name, 2, crossing=crossing, effort=8)
    assert len(once.queries) == once.first
    for budget in (once.first, once.first + 5, 30):
        run = searched(name, 2, crossing=crossing, effort=8, device_budget=budget)
        asked = [one.sample.tobytes() for one in run.queries[: once.first]]
        assert asked == [one.sample.tobytes() for one in once.queries]
        assert len(run.queries) <= budget
        assert run.kept_back == 0
        assert run.severest >= once.severest
        (returned,) = {one.severity for one in run.queries if np.array_equal(one.sample, run.found)}
        assert returned == run.severest


@pytest.mark.parametrize("number", range(6))
def test_a_budget_that_is_too_small_for_a_first_trigger_is_all_that_is_asked(number: int) -> None:
    original = affine(SHAPE, 5)
    pair = Pair(original, replace(quantised(original), grain=0.05), labels_only=True)
    seed = pair.seed(agreed(pair, SHAPE, 6)[number])
    needed = search(pair, seed, number).first
    for budget in range(1, needed):
        run = search(pair, seed, number, device_budget=budget)
        assert run.gave_up
        assert len(run.queries) == budget


def severity(name: str, budget: int | None) -> float:
    """The median over searches of the smaller margin; the original's where the device tells labels."""
    pair = PAIRS[name]
    runs = [
        search(pair, pair.seed(sample), number, device_budget=budget)
        for number, sample in enumerate(agreed(pair, SHAPE, 4))
    ]
    if pair.labels_only:
        return float(np.median([margin(pair.original(run.found)) for run in runs]))
    return float(np.median([run.severest for run in runs]))


@pytest.mark.rounding
@pytest.mark.parametrize("name", PAIRS)
def test_more_queries_make_findings_more_severe(name: str) -> None:
    once, little, much = (severity(name, budget) for budget in (None, 8, 40))
    assert 3 * once < little < much


@pytest.mark.rounding
@pytest.mark.parametrize("shift", [-0.6, 0.2])
def test_where_the_drift_is_known_and_the_same_everywhere_findings_are_as_severe_as_can_be(
    shift: float,
) -> None:
    original = affine(SHAPE, 2)
    drift = np.array([shift, 0.0])
    pair = Pair(original, replace(original, bias=original.bias + drift))
    severest = [
        search(pair, pair.seed(sample), number, device_budget=8).severest
        for number, sample in enumerate(agreed(pair, SHAPE, 5, surely=0.3))
    ]
    most = np.tanh(abs(shift) / 4)  # both models are as sure, of different answers
    assert max(severest) <= most
    assert np.median(severest) >= 0.9 * most


@pytest.mark.parametrize("crossing", CROSSINGS)
def test_the_best_finding_so_far_goes_with_every_later_question(crossing: str) -> None:
    run = searched("rough", crossing=crossing, effort=8, device_budget=15)
    best, severest, asked = None, 0.0, 0
    for ask in run.asks:
        if best is None:
            assert ask.best is None
        else:
            assert ask.best.sample is not None
            assert np.array_equal(ask.best.sample, best)
        if ask.of == "both":
            for one in run.queries[asked : asked + len(ask.samples)]:
                if one.severity > severest:
                    best, severest = one.sample, one.severity
            asked += len(ask.samples)
    assert best is not None
    assert np.array_equal(run.found, best)


BOUNDS = [{"max_l2": 0.7}, {"max_linf": 18}, {"min_ssim": 0.97}, {"max_l2": 0.8, "max_linf": 16}]


def keeps(bounds: dict[str, Any], seed: Sample, sample: Sample) -> bool:
    alike = ssim(seed, sample)
    assert alike is not None
    return bool(
        l2(seed, sample) <= bounds.get("max_l2", np.inf)
        and linf(seed, sample) <= bounds.get("max_linf", 255)
        and alike >= bounds.get("min_ssim", -1.0)
    )


@pytest.mark.parametrize(
    ("crossing", "bounds"),
    [
        *(("least-l2", one) for one in BOUNDS),
        ("line", {"max_l2": 0.8, "max_linf": 40}),
        ("line", {"min_ssim": 0.97}),
        ("mutants", {"max_l2": 1.0, "max_linf": 120}),
        ("mutants", {"min_ssim": 0.95}),
        ("natural", {"max_l2": 1.0, "max_linf": 120}),
        ("natural", {"min_ssim": 0.95}),
    ],
    ids=str,
)
def test_bounds_hold_for_what_is_returned_and_for_all_that_the_device_is_asked(
    crossing: str, bounds: dict[str, Any]
) -> None:
    seed = seed_of(PAIRS["rough"])
    run = searched("rough", crossing=crossing, effort=8, device_budget=12, **bounds)
    assert run.queries
    assert all(keeps(bounds, seed, one.sample) for one in run.queries)
    assert keeps(bounds, seed, run.found)


@pytest.mark.rounding
@pytest.mark.parametrize("bounds", BOUNDS, ids=str)
def test_a_trigger_is_found_within_bounds_that_a_search_without_them_breaks(bounds) -> None:
    seed = seed_of(PAIRS["rough"])
    free = searched("rough", 1, crossing="line", device_budget=25)
    assert not all(keeps(bounds, seed, one.sample) for one in free.queries)
    assert keeps(bounds, seed, searched("rough", effort=128, device_budget=12, **bounds).found)


@pytest.mark.parametrize("bounds", [{"max_l2": 0.7}, {"max_linf": 14}], ids=str)
def test_candidates_keep_to_the_bounds_too(bounds: dict[str, Any]) -> None:
    seed = seed_of(PAIRS["rough"])
    run = searched("rough", effort=128, candidates=4, **bounds)
    assert max(run.trips) > 1
    assert all(keeps(bounds, seed, one) for one in [run.found, *(q.sample for q in run.queries)])


def test_ssim_of_images_too_small_for_it_is_refused_in_a_sentence() -> None:
    original = affine((2, 9, 1), 2)
    pair = Pair(original, moved(original, 0.3))
    (sample,) = agreed(pair, (2, 9, 1))
    with pytest.raises(UsageError, match="9 pixels"):
        search(pair, pair.seed(sample), min_ssim=0.5)


@pytest.mark.rounding
def test_it_gives_up_without_a_query_where_the_boundary_is_out_of_bounds() -> None:
    original = affine((4, 4, 1), 2)
    pair = Pair(original, moved(original, 0.3))
    (sample,) = agreed(pair, (4, 4, 1), surely=0.3)
    run = search(pair, pair.seed(sample), effort=4, max_l2=0.01)
    assert run.gave_up
    assert not run.queries


@pytest.mark.parametrize("budget", [1, 2, 5, 9])
def test_candidates_do_not_overspend_a_budget(budget: int) -> None:
    for number, sample in enumerate(agreed(PAIRS["labels"], SHAPE, 5)):
        pair = PAIRS["labels"]
        run = search(pair, pair.seed(sample), number, candidates=4, device_budget=budget)
        assert len(run.queries) <= budget

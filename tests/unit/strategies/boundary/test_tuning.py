"""What is chosen of the boundary search where the user leaves it open."""

from typing import Any

import pytest

from edgeflare.strategies.boundary import BoundaryOptions, has_open_choice, resolve_options

RATIO = {
    host: host / 30 - 1
    for host in (30, 44, 45, 62, 94, 157, 158, 222, 267, 268, 299, 300, 332, 396)
}
"""By how many host queries are affordable: what a device query costs."""


def chosen(affordable: int, side: int = 28, **stated: Any) -> tuple[str, int | None]:
    options = resolve_options(
        BoundaryOptions(**stated), side, one_trip=False, ratio=RATIO[affordable] + 1e-9
    )
    return options.crossing, options.effort


def untuned(side: int, **stated: Any) -> tuple[str, int | None, int | None]:
    options = resolve_options(BoundaryOptions(**stated), side, one_trip=False)
    return options.crossing, options.effort, options.tied_classes


@pytest.mark.parametrize(
    ("side", "stated", "expected"),
    [
        (28, {}, ("least-l2", 96, 3)),
        (31, {}, ("least-l2", 96, 3)),
        (32, {}, ("least-l2", 128, 3)),
        (63, {}, ("least-l2", 128, 3)),
        (64, {}, ("least-l2", 128, 2)),
        (224, {}, ("least-l2", 128, 2)),
        (28, {"max_l2": 1.0}, ("least-l2", 96, 2)),
        (28, {"candidates": 2}, ("least-l2", 96, 2)),
        (28, {"tied_classes": 2}, ("least-l2", 96, 2)),
        (64, {"tied_classes": 3}, ("least-l2", 128, 3)),
        (28, {"effort": 63}, ("least-l2", 63, 2)),
        (28, {"effort": 64}, ("least-l2", 64, 3)),
        (28, {"crossing": "line"}, ("line", 96, 3)),
        (32, {"crossing": "line"}, ("line", 128, 3)),
        (28, {"crossing": "mutants"}, ("mutants", 32, 2)),
        (28, {"crossing": "natural", "effort": 64}, ("natural", 64, 2)),
    ],
)
def test_without_a_measurement_the_size_of_the_image_decides(side, stated, expected) -> None:
    assert untuned(side, **stated) == expected


@pytest.mark.parametrize(
    ("affordable", "small", "large"),
    [
        (30, ("mutants", 8), ("mutants", 8)), (44, ("mutants", 8), ("mutants", 8)),
        (45, ("least-l2", 16), ("mutants", 8)), (62, ("least-l2", 16), ("mutants", 8)),
        (94, ("least-l2", 32), ("mutants", 8)), (157, ("least-l2", 32), ("mutants", 8)),
        (158, ("least-l2", 64), ("mutants", 8)), (222, ("least-l2", 96), ("mutants", 8)),
        (267, ("least-l2", 96), ("mutants", 8)), (268, ("least-l2", 64), ("mutants", 8)),
        (299, ("least-l2", 64), ("mutants", 8)), (300, ("least-l2", 64), ("least-l2", 128)),
        (332, ("least-l2", 96), ("least-l2", 128)), (396, ("least-l2", 128), ("least-l2", 128)),
    ],
)  # fmt: skip
def test_the_slower_the_device_the_more_the_host_does(affordable, small, large) -> None:
    assert chosen(affordable, side=63) == small
    assert chosen(affordable, side=64) == large


@pytest.mark.parametrize("ratio", [0.0, 1e9])
def test_any_cost_gives_a_choice(ratio: float) -> None:
    options = resolve_options(BoundaryOptions(), 224, one_trip=True, ratio=ratio)
    assert not has_open_choice(options)
    assert (options.crossing, options.effort) == (("least-l2", 128) if ratio else ("mutants", 8))


@pytest.mark.parametrize(
    ("stated", "fast", "slow"),
    [
        ({"crossing": "least-l2"}, ("least-l2", 16), ("least-l2", 64)),
        ({"crossing": "line"}, ("line", 16), ("line", 64)),
        ({"crossing": "mutants"}, ("mutants", 8), ("mutants", 32)),
        ({"crossing": "natural"}, ("natural", 8), ("natural", 32)),
        ({"effort": 50}, ("mutants", 50), ("least-l2", 50)),
        ({"crossing": "natural", "effort": 5}, ("natural", 5), ("natural", 5)),
    ],
)
def test_what_is_stated_stays(stated, fast, slow) -> None:
    assert chosen(44, **stated) == fast
    assert chosen(396, **stated) == slow


@pytest.mark.parametrize(
    ("affordable", "stated", "classes"),
    [
        (94, {}, 2),
        (267, {}, 2),
        (268, {}, 3),
        (396, {}, 3),
        (396, {"crossing": "line"}, 3),
        (396, {"crossing": "mutants"}, 2),
        (396, {"crossing": "natural"}, 2),
        (396, {"crossing": "natural", "effort": 128}, 2),
        (396, {"tied_classes": 2}, 2),
        (396, {"max_l2": 2.0}, 2),
        (396, {"max_linf": 40}, 2),
        (396, {"min_ssim": 0.0}, 2),
        (396, {"max_l2": 2.0, "tied_classes": 3}, 3),
        (30, {"tied_classes": 3}, 3),
        (30, {"crossing": "least-l2", "effort": 63}, 2),
        (30, {"crossing": "least-l2", "effort": 64}, 3),
        (396, {"crossing": "least-l2", "effort": 63}, 2),
    ],
)
def test_three_classes_tie_where_the_host_can_do_that_much(affordable, stated, classes) -> None:
    options = resolve_options(
        BoundaryOptions(**stated), 28, one_trip=False, ratio=RATIO[affordable] + 1e-9
    )
    assert options.tied_classes == classes


def test_several_candidates_at_once_lie_beside_two_classes() -> None:
    options = resolve_options(BoundaryOptions(), 28, one_trip=True, ratio=RATIO[396] + 1e-9)
    assert (options.candidates, options.tied_classes, options.effort) == (4, 2, 64)


@pytest.mark.parametrize(("affordable", "effort"), [(94, 16), (222, 32), (268, 64), (396, 64)])
def test_three_classes_stated_are_paid_for_first(affordable: int, effort: int) -> None:
    assert chosen(affordable, tied_classes=3) == ("least-l2", effort)


@pytest.mark.parametrize(("affordable", "effort"), [(157, 32), (158, 64), (267, 64), (396, 64)])
def test_with_two_classes_stated_all_that_is_affordable_goes_into_directions(
    affordable: int, effort: int
) -> None:
    assert chosen(affordable, tied_classes=2) == ("least-l2", effort)


def test_inputs_are_sent_together_where_a_trip_is_what_costs() -> None:
    assert resolve_options(BoundaryOptions(), 28, one_trip=False).candidates == 1
    assert resolve_options(BoundaryOptions(), 28, one_trip=True).candidates == 4
    assert resolve_options(BoundaryOptions(candidates=2), 28, one_trip=True).candidates == 2


def test_what_is_resolved_stays_the_same_when_it_is_resolved_again() -> None:
    once = resolve_options(BoundaryOptions(device_budget=7, max_l2=2.0), 28, one_trip=False)
    assert (once.device_budget, once.max_l2) == (7, 2.0)
    assert resolve_options(once, 224, one_trip=True, ratio=0.0) == once


@pytest.mark.parametrize(("of", "effort"), [("detections", 48), ("values", 24)])
def test_searches_without_class_scores_have_no_tied_classes(of: Any, effort: int) -> None:
    chosen = resolve_options(BoundaryOptions(), 28, True, of)
    assert (chosen.crossing, chosen.effort) == ("least-l2", effort)
    assert (chosen.tied_classes, chosen.candidates) == (2, 1)
    stated = BoundaryOptions(crossing="natural", effort=8, candidates=2)
    kept = resolve_options(stated, 28, False, of)
    assert (kept.crossing, kept.effort, kept.candidates) == ("natural", 8, 2)

"""The boundary search from a seed to its end, beside models whose boundary is known."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from search_models import (
    Affine,
    Pair,
    Run,
    Shape,
    affine,
    agreed,
    images,
    margin,
    moved,
    quantised,
    search,
)

from edgeflare.types import Decision, Sample, Scores
from edgeflare_mutators import Mutation, corruptions, replay

SMALL: Shape = (8, 8, 1)
CROSSINGS = ("least-l2", "line", "mutants", "natural")


def searched(pair: Pair, shape: Shape, number: int = 0, **options: Any) -> Run:
    (sample,) = agreed(pair, shape)
    return search(pair, pair.seed(sample, images(shape, 12, 3)), number, **options)


def assert_triggers(pair: Pair, run: Run) -> None:
    assert pair.outputs(run.found).decision is Decision.DEVIATION
    assert any(np.array_equal(one.sample, run.found) for one in run.queries)
    assert run.kept_back == 0
    shape = run.queries[0].sample.shape
    assert all(one.dtype == np.uint8 and one.shape == shape for one in [*run.samples, run.found])


@pytest.mark.parametrize("labels_only", [False, True], ids=["scores", "labels"])
@pytest.mark.parametrize("build", [moved, quantised])
@pytest.mark.parametrize(
    ("shape", "classes"),
    [
        ((3, 3, 1), 2), ((1, 4, 3), 10), ((28, 28, 1), 2), ((28, 28, 1), 10), ((17, 23, 3), 10),
        ((17, 23, 3), 1000), ((96, 96, 3), 10),
    ],
)  # fmt: skip
def test_a_trigger_is_found_with_few_queries_whatever_the_images_and_the_classes(
    shape: Shape, classes: int, build: Any, labels_only: bool
) -> None:
    original = affine(shape, classes)
    pair = Pair(original, build(original), labels_only=labels_only)
    run = searched(pair, shape)
    assert_triggers(pair, run)
    assert run.found.shape == shape
    assert len(run.queries) <= 12


@pytest.mark.rounding
@pytest.mark.parametrize("crossing", CROSSINGS)
@pytest.mark.parametrize("floor", [0.0, 1e-3, 2e-2])
def test_every_crossing_leads_to_a_trigger_and_the_device_is_spared_inputs_below_the_floor(
    crossing: str, floor: float
) -> None:
    original = affine(SMALL, 4)
    pair = Pair(original, moved(original, 0.3), floor=floor)
    assert_triggers(pair, searched(pair, SMALL, crossing=crossing))


def test_a_single_pixel_is_searched_too() -> None:
    original = Affine(np.array([[-6.0, 6.0]]), np.zeros(2))
    pair = Pair(original, replace(original, bias=np.array([-0.5, 0.5])))
    sample = np.full((1, 1, 1), 60, np.uint8)
    run = search(pair, pair.seed(sample))
    assert_triggers(pair, run)
    assert 117 <= run.found.item() <= 127  # the boundary goes from 127.5 to 116.9


@pytest.mark.rounding
def test_the_constant_drift_of_a_linear_model_is_known_by_the_seed_so_that_one_query_does() -> None:
    original = affine((28, 28, 1), 10)
    pair = Pair(original, moved(original))
    counts = [
        len(search(pair, pair.seed(sample), number).queries)
        for number, sample in enumerate(agreed(pair, (28, 28, 1), 8))
    ]
    assert np.median(counts) == 1


@pytest.mark.parametrize(
    ("crossing", "shape"),
    [("least-l2", (3, 3, 1)), ("line", (3, 3, 1)), ("least-l2", SMALL), ("mutants", (3, 3, 1))],
)
def test_the_device_is_never_asked_twice_about_one_input(crossing: str, shape: Shape) -> None:
    original = affine(shape, 3)
    pair = Pair(original, replace(original, grain=1 / 64), floor=1e-2)  # hardly ever deviates
    run = searched(pair, shape, crossing=crossing, effort=4)
    asked = {one.sample.tobytes() for one in run.queries}
    assert run.queries
    assert len(asked) == len(run.queries)
    assert run.kept_back == 0


@pytest.mark.parametrize("crossing", CROSSINGS)
def test_the_same_seed_and_randomness_give_the_same_questions(crossing: str) -> None:
    original = affine(SMALL, 4)
    pair = Pair(original, quantised(original))

    def questions(number: int) -> list[Any]:
        run = searched(pair, SMALL, number, crossing=crossing, device_budget=12)
        asks = [
            (ask.of, ask.best and ask.best.sample is not None and ask.best.sample.tobytes(),
             [sample.tobytes() for sample in ask.samples])
            for ask in run.asks
        ]  # fmt: skip
        return [*asks, run.found.tobytes(), run.outcome and run.outcome.mutations]

    assert questions(1) == questions(1)
    assert questions(1) != questions(2)


@pytest.mark.parametrize("crossing", CROSSINGS)
def test_it_gives_up_soon_where_the_original_has_no_boundary(crossing: str) -> None:
    pair = Pair(lambda sample: np.array([0.7, 0.3]), lambda sample: np.array([0.6, 0.4]))
    seed = pair.seed(images(SMALL, 1)[0], images(SMALL, 12, 3))
    run = search(pair, seed, crossing=crossing, effort=8, most=12_000)
    assert run.gave_up
    assert not run.queries


@pytest.mark.parametrize(
    ("crossing", "floor"), [("least-l2", 0.0), ("least-l2", 1e-3), ("line", 0.0), ("mutants", 1e-3)]
)
def test_no_false_alarm_where_the_deployed_model_is_the_original(crossing, floor) -> None:
    original = affine((3, 3, 1), 2)
    run = searched(Pair(original, original, floor=floor), (3, 3, 1), crossing=crossing, effort=4)
    assert run.gave_up
    assert 0 < len(run.queries) <= 900


@pytest.mark.parametrize("budget", [None, 15])
def test_natural_findings_replay_from_the_seed_by_natural_corruptions(budget: int | None) -> None:
    original = affine((17, 23, 3), 5)
    pair = Pair(original, moved(original, 0.3))
    names = set()
    for number, sample in enumerate(agreed(pair, (17, 23, 3), 4)):
        run = search(
            pair, pair.seed(sample), number, crossing="natural", effort=8, device_budget=budget
        )
        assert_triggers(pair, run)
        steps = [Mutation.from_json(step) for step in run.outcome.mutations]
        names |= {step.operator for step in steps}
        assert 1 <= len(steps) <= 3
        assert np.array_equal(replay(sample, steps), run.found)
        for ask in run.asks:
            if ask.best is not None and ask.best.sample is not None:
                best = [Mutation.from_json(step) for step in ask.best.mutations]
                assert np.array_equal(replay(sample, best), ask.best.sample)
    assert names <= set(corruptions())


@pytest.mark.rounding
@pytest.mark.parametrize("count", [2, 5])
def test_candidates_go_out_together_and_lie_on_both_sides(count: int) -> None:
    original = affine(SMALL, 4)
    pair = Pair(original, quantised(original))
    run = searched(pair, SMALL, candidates=count)
    assert_triggers(pair, run)
    assert max(run.trips) == count
    first = [one.outputs.original for one in run.queries[: run.trips[0]]]
    labels = {int(scores.argmax()) for scores in first if scores is not None}
    assert len(labels) >= 2


@pytest.mark.rounding
def test_candidates_save_trips_where_the_first_query_seldom_triggers() -> None:
    original = affine(SMALL, 4)
    pair = Pair(original, replace(quantised(original), grain=0.05), labels_only=True)
    singly, together = (
        [
            len(search(pair, pair.seed(sample), number, candidates=count).trips)
            for number, sample in enumerate(agreed(pair, SMALL, 12))
        ]
        for count in (1, 4)
    )
    assert sum(together) < sum(singly)


def test_a_non_finite_answer_of_the_original_is_put_to_both_models() -> None:
    inner = affine(SMALL, 4)

    def original(sample: Sample) -> Scores:
        sure = margin(inner(sample)) > 0.02
        return inner(sample) if sure else np.array([np.nan, 0.5, 0.25, 0.25])

    pair = Pair(original, inner)
    run = searched(pair, SMALL)
    *before, alone, last = run.asks
    assert run.outcome is None
    assert last.of == "both"
    assert alone.of == "original"
    assert len(last.samples) == 1
    assert any(np.array_equal(last.samples[0], sample) for sample in alone.samples)
    assert np.isnan(original(last.samples[0])).any()
    assert all(np.isfinite(original(one)).all() for ask in before for one in ask.samples)

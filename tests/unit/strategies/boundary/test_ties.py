"""Inputs at which three classes tie for the original: found, leant to one of them, and worth fewer queries."""

import hashlib
from dataclasses import dataclass, replace

import numpy as np
import pytest
from search_models import Affine, Pair, Shape, affine, agreed, asked_of, images, quantised, search

from edgeflare.strategies.boundary.crossings import make_crossing
from edgeflare.strategies.boundary.perturb import TieBreak, break_tie
from edgeflare.strategies.boundary.points import OriginalProbe
from edgeflare.strategies.boundary.ties import Tie
from edgeflare.types import Sample, Scores

SHAPE: Shape = (12, 12, 1)
CROSSINGS = ("least-l2", "line")
CLASSES = 6


def views(count: int, shape: Shape = SHAPE) -> list[tuple[Pair, OriginalProbe]]:
    pair = Pair(affine(shape, CLASSES), affine(shape, CLASSES))
    others = images(shape, 40, 3)
    return [
        (pair, OriginalProbe(pair.seed(sample, others)))
        for sample in agreed(pair, shape, count, surely=0.3)
    ]


def tied(pair: Pair, view: OriginalProbe, name: str, number: int) -> Tie:
    """The first tie that the crossing leads to."""
    way = make_crossing(name, view, np.random.default_rng(number), 16, {})
    for _ in range(12):
        bracket = asked_of(pair, way.find())
        found = None if bracket is None else asked_of(pair, way.find_tie(bracket))
        if found is not None:
            return found
    raise AssertionError("no tie was found")


@pytest.mark.rounding
@pytest.mark.parametrize("name", CROSSINGS)
def test_three_classes_tie_the_seeds_label_among_them_and_no_other_is_likelier(name: str) -> None:
    for number, (pair, view) in enumerate(views(12)):
        found = tied(pair, view, name, number)
        scores = pair.original(found.point.sample)
        assert len(set(found.classes)) == 3
        assert view.label in found.classes
        assert set(np.argsort(scores)[-3:]) == set(found.classes)
        logs = np.log(scores[list(found.classes)])
        assert np.ptp(logs) < 1.0
        assert found.spread == pytest.approx(float(np.ptp(logs)))


@pytest.mark.rounding
def test_a_tie_is_not_much_farther_from_the_seed_than_the_boundary() -> None:
    crossed, tying = [], []
    for number, (pair, view) in enumerate(views(12)):
        way = make_crossing("least-l2", view, np.random.default_rng(number), 64, {})
        bracket = asked_of(pair, way.find())
        crossed.append(view.distance(bracket.outside.sample))
        found = asked_of(pair, way.find_tie(bracket))
        if found is not None:
            tying.append(view.distance(found.point.sample))
    assert len(tying) >= 9
    assert np.median(tying) < 2 * np.median(crossed)


@pytest.mark.rounding
@pytest.mark.parametrize("near", [False, True])
def test_it_leans_to_each_of_the_classes_by_hardly_more_than_the_floor(near: bool) -> None:
    floor = 1e-3
    for number, (pair, view) in enumerate(views(6)):
        found = tied(pair, view, "least-l2", number)
        for winner in found.classes:
            tie_break = TieBreak(winner, found.others(winner), floor, near)
            rng = np.random.default_rng(number)
            point = asked_of(pair, break_tie(view, found.point, tie_break, rng))
            scores = pair.original(point.sample)
            order = np.argsort(scores)
            assert order[-1] == winner
            assert scores[order[-1]] - scores[order[-2]] >= floor
            assert np.ptp(np.log(scores[list(found.classes)])) < 0.1


def changed_levels(found: Tie, tie_break: TieBreak, pair: Pair, view: OriginalProbe) -> int:
    point = asked_of(pair, break_tie(view, found.point, tie_break, np.random.default_rng(0)))
    return int(np.abs(point.sample.astype(int) - found.point.sample.astype(int)).sum())


@pytest.mark.rounding
def test_near_changes_fewer_levels() -> None:
    pairs = []
    for number, (pair, view) in enumerate(views(6, (32, 32, 1))):
        found = tied(pair, view, "least-l2", number)
        for winner in found.classes:
            tie_break = TieBreak(winner, found.others(winner), 1e-3)
            pairs.append(
                [
                    changed_levels(found, tie_break._replace(near=near), pair, view)
                    for near in (False, True)
                ]
            )
    usual, near = np.mean(pairs, axis=0)
    assert near < 0.8 * usual


@pytest.mark.rounding
def test_a_class_that_is_in_the_way_is_taken_farther_back_than_the_other() -> None:
    for number, (pair, view) in enumerate(views(6)):
        found = tied(pair, view, "least-l2", number)
        winner, second, back = found.classes
        tie_break = TieBreak(winner, (second, back), 1e-3, handicapped=back)
        point = asked_of(pair, break_tie(view, found.point, tie_break, np.random.default_rng(0)))
        logs = np.log(pair.original(point.sample))
        assert 0 < logs[winner] - logs[second] < 0.1
        assert 0.1 < logs[winner] - logs[back] < 0.3


@dataclass(frozen=True)
class Scattered:
    """A deployed model that is off by chance, by another amount for each class and each input."""

    model: Affine

    def __call__(self, sample: Sample) -> Scores:
        rng = np.random.default_rng(list(hashlib.sha256(sample.tobytes()).digest()))
        logits = self.model.logits(sample) + 0.3 * rng.standard_normal(len(self.model.bias))
        powers = np.exp(logits - logits.max())
        return np.asarray(powers / powers.sum())


def scattered(*, labels_only: bool) -> Pair:
    original = affine(SHAPE, CLASSES)
    return Pair(original, Scattered(original), labels_only=labels_only)


@pytest.mark.rounding
@pytest.mark.parametrize("labels_only", [False, True])
def test_three_classes_need_fewer_queries_than_two(labels_only: bool) -> None:
    pair = scattered(labels_only=labels_only)
    seeds = agreed(pair, SHAPE, 60, surely=0.3)
    mean = {}
    for classes in (2, 3):
        runs = [
            search(pair, pair.seed(sample, images(SHAPE, 40, 3)), number, tied_classes=classes)
            for number, sample in enumerate(seeds)
        ]
        assert not any(run.gave_up for run in runs)
        mean[classes] = np.mean([run.first for run in runs])
    assert mean[3] < 0.92 * mean[2]


@pytest.mark.parametrize("classes", [2, 3])
def test_a_model_of_few_classes_is_searched_with_three_too(classes: int) -> None:
    original = affine(SHAPE, classes)
    pair = Pair(original, quantised(original, coarse=8))
    for number, sample in enumerate(agreed(pair, SHAPE, 6)):
        run = search(pair, pair.seed(sample, images(SHAPE, 8, 3)), number, tied_classes=3)
        assert not run.gave_up


def test_where_ties_are_out_of_bounds_the_nearest_crossing_is_still_asked_about() -> None:
    original = affine(SHAPE, CLASSES)
    pair = Pair(original, quantised(original, coarse=8))
    gave_up = []
    for number, sample in enumerate(agreed(pair, SHAPE, 8, surely=0.3)):
        seed = pair.seed(sample)
        two = search(pair, seed, number, tied_classes=2, effort=64)
        bound = 1.05 * float(np.linalg.norm(two.found.astype(float) - sample)) / 255
        bounded = [
            search(pair, seed, number, tied_classes=classes, effort=64, max_l2=bound)
            for classes in (2, 3)
        ]
        gave_up.append([run.gave_up for run in bounded])
    two, three = np.sum(gave_up, axis=0)
    assert three <= two + 1


@pytest.mark.parametrize("floor", [0.05, 0.1])
def test_with_a_high_floor_no_host_query_goes_into_ties(floor: float) -> None:
    pair = replace(scattered(labels_only=False), floor=floor)
    for number, sample in enumerate(agreed(pair, SHAPE, 4, surely=0.3)):
        two, three = (
            search(pair, pair.seed(sample), number, tied_classes=classes) for classes in (2, 3)
        )
        assert (three.host, len(three.queries)) == (two.host, len(two.queries))


def test_without_a_floor_the_device_is_not_asked_where_the_original_itself_ties() -> None:
    original = replace(affine(SHAPE, CLASSES), grain=1 / 8)
    pair = Pair(original, Scattered(original), floor=0.0)
    for number, sample in enumerate(agreed(pair, SHAPE, 4, surely=0.3)):
        run = search(pair, pair.seed(sample), number, tied_classes=3)
        for query in run.queries:
            second, first = np.sort(original(query.sample))[-2:]
            assert first > second


@pytest.mark.rounding
def test_a_device_that_agrees_and_returns_labels_only_is_asked_about_each_class_of_a_tie() -> None:
    original = affine(SHAPE, CLASSES)
    pair = Pair(original, original, labels_only=True)
    sample = agreed(pair, SHAPE, 1, surely=0.3)[0]
    run = search(pair, pair.seed(sample), tied_classes=3, device_budget=3)
    assert len({int(original(query.sample).argmax()) for query in run.queries}) == 3


@pytest.mark.parametrize("bounds", [{"max_l2": 0.5}, {"max_linf": 12}])
def test_bounds_hold_at_ties_too(bounds: dict[str, float]) -> None:
    pair = scattered(labels_only=False)
    for number, sample in enumerate(agreed(pair, SHAPE, 1)):
        run = search(pair, pair.seed(sample), number, tied_classes=3, **bounds)
        for query in run.queries:
            change = query.sample.astype(float) - sample
            assert np.linalg.norm(change) / 255 <= bounds.get("max_l2", np.inf)
            assert np.abs(change).max() <= bounds.get("max_linf", 255)


@pytest.mark.rounding
def test_where_the_seeds_foretell_the_drift_the_first_query_leans_to_the_class_that_suffers() -> (
    None
):
    original = affine(SHAPE, CLASSES)
    drift = np.linspace(-0.5, 0.5, CLASSES)
    deployed: Affine = replace(original, bias=original.bias + drift)
    pair = Pair(original, deployed)
    others = agreed(pair, SHAPE, 60)
    first = [
        search(pair, pair.seed(sample, others, known=60), number, tied_classes=3).first
        for number, sample in enumerate(others[:20])
    ]
    assert np.mean(first) < 1.1

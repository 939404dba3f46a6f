"""Differences of two detectors' answers: kinds, partners and margins."""

import numpy as np
import pytest

from edgeflare.answers.detections.matching import (
    Difference,
    box_iou,
    differences,
    kind_counts,
    score_distance,
    worst,
)
from edgeflare.types import DetectionRules, Detections

RULES = DetectionRules(confidence=0.5)
PLACE, FAR = (0.1, 0.1, 0.3, 0.3), (0.6, 0.6, 0.8, 0.8)
PERSON, DOG = 0, 16


def answer(*objects: tuple[tuple[float, ...], int, float]) -> Detections:
    """Boxes with their classes and scores, as a reader leaves them: the best first."""
    ordered = sorted(objects, key=lambda one: -one[2])
    boxes = np.array([box for box, _, _ in ordered], np.float64).reshape(-1, 4)
    labels = np.array([label for _, label, _ in ordered], np.int64)
    return Detections(boxes, labels, np.array([score for _, _, score in ordered]), RULES)


def moved(box: tuple[float, ...], by: float) -> tuple[float, ...]:
    return (box[0] + by, box[1], box[2] + by, box[3])


def only(found: tuple[Difference, ...]) -> Difference:
    assert len(found) == 1
    return found[0]


def test_equal_answers_have_no_difference() -> None:
    one = answer((PLACE, PERSON, 0.9), (FAR, DOG, 0.7), (PLACE, DOG, 0.2))
    assert differences(one, one) == ()
    assert worst(()) is None
    assert differences(answer(), answer()) == ()


def test_an_object_that_only_one_model_detects_is_lost_or_a_ghost() -> None:
    with_it = answer((PLACE, PERSON, 0.8))
    near = answer((moved(PLACE, 0.01), PERSON, 0.4), (FAR, PERSON, 0.45), (PLACE, DOG, 0.49))
    lost = only(differences(with_it, near))
    assert (lost.kind, lost.label, lost.deployed_label) == ("lost", PERSON, None)
    assert lost.deployed is not None
    assert near.scores[lost.deployed] == 0.4  # the same class at this place
    assert lost.margins == pytest.approx((0.3, 0.1))
    assert lost.margin == pytest.approx(0.1)
    ghost = only(differences(near, with_it))
    assert (ghost.kind, ghost.original, ghost.deployed) == ("ghost", lost.deployed, 0)
    assert (ghost.label, ghost.deployed_label) == (PERSON, PERSON)
    assert ghost.margins == pytest.approx((0.1, 0.3))


def test_without_a_candidate_the_confidence_is_the_margin() -> None:
    lost = only(differences(answer((PLACE, PERSON, 0.95)), answer()))
    assert (lost.deployed, lost.iou) == (None, None)
    assert lost.margins == pytest.approx((0.45, 0.5))


def test_a_box_just_too_far_for_a_match_has_a_small_margin() -> None:
    apart = answer((moved(PLACE, 0.068), PERSON, 0.9))  # an IoU of 0.493
    lost, ghost = differences(answer((PLACE, PERSON, 0.9)), apart)
    assert (lost.kind, ghost.kind) == ("lost", "ghost")
    assert lost.margins == pytest.approx((0.0075, 0.0075), abs=1e-3) == ghost.margins


def test_another_class_is_one_difference() -> None:
    original = answer((PLACE, PERSON, 0.8), (PLACE, DOG, 0.45))
    deployed = answer((PLACE, DOG, 0.7), (PLACE, PERSON, 0.46), (FAR, PERSON, 0.2))
    other = only(differences(original, deployed))
    assert (other.kind, other.label, other.deployed_label, other.iou) == ("class", PERSON, DOG, 1.0)
    assert other.margins == pytest.approx((0.3, 0.2))  # of the scores over the confidence
    level = answer((PLACE, PERSON, 0.7), (PLACE, DOG, 0.62))
    assert only(differences(level, answer((PLACE, DOG, 0.7)))).kind == "lost"  # both detect the dog


def test_a_box_that_moved_has_the_margin_of_its_iou() -> None:
    deployed = answer((moved(PLACE, 0.04), PERSON, 0.9))
    shift = only(differences(answer((PLACE, PERSON, 0.9)), deployed))
    assert shift.kind == "shift"
    assert shift.iou == pytest.approx(2 / 3)
    assert shift.margins == pytest.approx((0.0833, 0.0833), abs=1e-3)
    weak = answer((moved(PLACE, 0.04), PERSON, 0.51))
    assert only(differences(answer((PLACE, PERSON, 0.9)), weak)).margin == pytest.approx(0.01)


def test_the_same_class_is_matched_before_a_nearer_box_of_another() -> None:
    original = answer((PLACE, PERSON, 0.9), (moved(PLACE, 0.01), DOG, 0.8))
    deployed = answer((PLACE, DOG, 0.9), (moved(PLACE, 0.01), PERSON, 0.8))
    assert differences(original, deployed) == ()


def test_the_better_score_takes_the_better_box_and_each_box_once() -> None:
    original = answer((PLACE, PERSON, 0.9), (moved(PLACE, 0.02), PERSON, 0.6))
    lost = only(differences(original, answer((moved(PLACE, 0.02), PERSON, 0.9))))
    assert (lost.kind, lost.original) == ("lost", 1)


def test_counts_of_kinds_and_the_worst_difference() -> None:
    original = answer((PLACE, PERSON, 0.9), (FAR, DOG, 0.55))
    found = differences(original, answer((FAR, PERSON, 0.8)))
    assert kind_counts(found) == {"lost": 1, "ghost": 0, "class": 1, "shift": 0}
    assert worst(found) == found[0]


def test_what_is_not_finite_overlaps_with_nothing() -> None:
    boxes = np.array([[0, 0, 1, 1], [0, 0, np.nan, 1], [0, 0, np.inf, 1], [0.5, 0.5, 0.5, 0.5]])
    expected = np.zeros((4, 4))
    expected[0, 0] = 1
    np.testing.assert_array_equal(box_iou(boxes, boxes), expected)
    broken = Detections(boxes[:1], np.array([PERSON]), np.array([np.nan]), RULES)
    assert only(differences(broken, answer((PLACE, PERSON, 0.8)))).kind == "ghost"


def test_the_distance_of_scores_is_that_of_the_object_farthest_apart() -> None:
    one = answer((PLACE, PERSON, 0.9), (FAR, DOG, 0.4))
    other = answer((moved(PLACE, 0.01), PERSON, 0.8), (FAR, DOG, 0.1))
    assert score_distance(one, other) == pytest.approx(0.3) == score_distance(other, one)
    assert score_distance(one, one) == 0 == score_distance(answer(), answer())


def test_a_box_that_one_answer_lacks_is_all_its_score_apart_in_either_one() -> None:
    pair = answer((PLACE, PERSON, 0.9)), answer((PLACE, PERSON, 0.9), (FAR, PERSON, 0.6))
    assert score_distance(*pair) == pytest.approx(0.6) == score_distance(*pair[::-1])
    assert score_distance(answer(), pair[0]) == pytest.approx(0.9)
    assert score_distance(answer((PLACE, PERSON, 0.9)), answer((PLACE, DOG, 0.7))) == 0.9


def test_a_score_of_nan_has_no_distance() -> None:
    whole, broken = answer((PLACE, PERSON, 0.9)), answer((PLACE, PERSON, np.nan))
    far = answer((FAR, DOG, np.nan))
    for one, other in [(whole, broken), (broken, whole), (far, whole), (whole, far)]:
        assert np.isnan(score_distance(one, other))


@pytest.mark.parametrize("seed", range(6))
def test_candidates_far_below_the_confidence_change_no_other_difference(seed: int) -> None:
    rng = np.random.default_rng(seed)

    def crowd(detected: int, candidates: int) -> list[tuple[tuple[float, ...], int, float]]:
        corners = rng.random((detected + candidates, 2)) * 0.7
        scores = [*rng.uniform(0.5, 1, detected), *rng.uniform(0.1, 0.4, candidates)]
        return [
            ((*corner, *(corner + 0.25)), int(rng.integers(2)), float(score))
            for corner, score in zip(corners, scores, strict=True)
        ]

    ours, theirs = crowd(12, 20), crowd(10, 30)
    few = differences(answer(*ours[:12]), answer(*theirs[:10]))
    many = differences(answer(*ours), answer(*theirs))
    assert [one[:1] + one[3:5] for one in few] == [one[:1] + one[3:5] for one in many]
    shared = [(a, b) for a, b in zip(few, many, strict=True) if a.kind in ("class", "shift")]
    assert [a for a, _ in shared] == [b for _, b in shared]
    for one in many:  # every stated IoU is that of the boxes at the stated places
        if one.original is not None and one.deployed is not None:
            first, second = answer(*ours).boxes[one.original], answer(*theirs).boxes[one.deployed]
            assert one.iou == box_iou(first[None], second[None])[0, 0]

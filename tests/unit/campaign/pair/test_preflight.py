from typing import Any

import numpy as np
import pytest

from edgeflare.campaign.pair.preflight import (
    BetterPreprocessing,
    SeedFigures,
    better_preprocessing,
    check_labels,
    check_pair,
    slowness,
)
from edgeflare.campaign.settings.config import SearchConfig
from edgeflare.errors import InferenceFailedError, PreflightError, SeedError
from edgeflare.models import InputSpec
from edgeflare.seeds import SeedInput
from edgeflare.statistics import wilson
from edgeflare.types import (
    Decision,
    DetectionRules,
    Detections,
    Output,
    Outputs,
    Query,
    Seed,
    Values,
)

SAMPLE = np.zeros((1, 1, 1), np.uint8)


def one_hot(label: int) -> np.ndarray:  # type: ignore[type-arg]
    return np.eye(10)[label]


def seeds(total: int, differing: int, *, wrong: int | None = None) -> list[SeedFigures]:
    made = []
    for k in range(total):
        deviates = k < differing
        outputs = Outputs(
            one_hot(k % 10),
            one_hot((k + deviates) % 10),
            Decision.DEVIATION if deviates else Decision.AGREE,
        )
        label = None if wrong is None else (k + (k < wrong)) % 10
        made.append(SeedFigures.of(f"s{k}", label, outputs))
    return made


def test_wilson_interval_against_known_values() -> None:
    assert wilson(10, 20) == pytest.approx((0.2993, 0.7007), abs=1e-4)
    assert all(wilson(0, total)[0] == 0 for total in range(1, 100))
    assert all(wilson(total, total)[1] == 1 for total in range(1, 100))


def test_ordinary_compression_passes() -> None:
    assert check_pair(seeds(50, 5, wrong=6), allow=False) == []


def test_far_too_many_disagreements_stop_the_campaign_and_are_shown() -> None:
    with pytest.raises(PreflightError, match=r"50.*s0 \(0"):
        check_pair(seeds(50, 25), allow=False)


def test_the_advice_is_about_what_differs() -> None:
    better = BetterPreprocessing("pixel values divided by 255", 32, 32, 0.0, 0.3)
    cases: list[tuple[list[SeedFigures], dict[str, Any], str]] = [
        (seeds(50, 25), {"is_tried": True}, "no usual mistake of preprocessing explains it"),
        (seeds(50, 25), {"is_tried": True, "explanation": better}, "correct scale, mean"),
        (seeds(50, 25), {}, "check scale, mean"),
        (seeds(50, 25), {"audio": True}, "check front end, rate and length"),
        (seeds(40, 0, wrong=36), {"is_tried": True}, "check the labels, and scale, mean"),
    ]
    for figures, stated, advice in cases:
        explanation = stated.pop("explanation", None)
        with pytest.raises(PreflightError) as error:
            check_pair(figures, explanation, allow=False, **stated)
        assert advice in str(error.value)
        assert "--allow-disagreement (`edgeflare explain`" in str(error.value)
        assert ("edgeflare inputs" in str(error.value)) is ("scale" in advice)


def test_the_lower_bound_decides() -> None:
    assert check_pair(seeds(20, 7), allow=False) == []  # 35 %, lower bound 18 %
    with pytest.raises(PreflightError):
        check_pair(seeds(200, 70), allow=False)  # 35 %, lower bound 29 %


def test_accuracy_near_chance_stops_the_campaign() -> None:
    with pytest.raises(PreflightError, match="40 labelled"):
        check_pair(seeds(40, 0, wrong=36), allow=False)


def test_the_user_may_go_on() -> None:
    (notice,) = check_pair(seeds(50, 25), allow=True)
    assert "--allow-disagreement" in notice


def test_few_seeds_only_warn() -> None:
    (notice,) = check_pair(seeds(10, 9), allow=False)
    assert "only 10 seeds" in notice


@pytest.mark.parametrize("label", [-1, 10, 2**63 + 1])
def test_labels_must_be_class_numbers(label: int) -> None:
    check_labels([SeedInput("a", SAMPLE, 9), SeedInput("b", SAMPLE, None)], 10)
    with pytest.raises(SeedError, match="10 classes"):
        check_labels([SeedInput("a", SAMPLE, 0), SeedInput("b", SAMPLE, label)], 10)


def test_a_device_too_slow_for_the_query_budget_is_reported() -> None:
    search = SearchConfig(max_queries=1000, timeout_s=100)
    assert slowness([0.05, 0.01, 0.05], search) == []
    (notice,) = slowness([2.0, 2.0, 9.0], search)
    assert "--max-queries 50" in notice
    (notice,) = slowness([140.0], search)
    assert "inference takes 2.3" in notice
    assert slowness([2.0], SearchConfig(max_queries=1000, timeout_s=0)) == []


def deviating(total: int, original: Output, deployed: Output) -> list[SeedFigures]:
    outputs = Outputs(original, deployed, Decision.DEVIATION)
    return [SeedFigures.of(f"s{k}", None, outputs) for k in range(total)]


def detected(*labels: int, score: float = 0.9) -> Detections:
    """Objects of these classes, each at its own place."""
    left = np.arange(len(labels)) / 10
    boxes = np.stack([left, left, left + 0.1, left + 0.1], axis=1).reshape(-1, 4)
    scores = np.full(len(labels), score)
    return Detections(boxes, np.array(labels, np.int64), scores, DetectionRules(0.5))


def test_detectors_may_differ_on_every_seed_but_not_clearly_on_many_objects() -> None:
    original = detected(*[0] * 10)
    assert check_pair(deviating(40, original, detected(*[0] * 9, 1)), allow=False) == []
    with pytest.raises(PreflightError, match=r"\(10\) against"):
        check_pair(deviating(40, original, detected(*[0] * 8, 1, 1)), allow=False)


def test_objects_near_the_confidence_may_all_differ() -> None:
    seeds = deviating(40, detected(*[0] * 10, score=0.54), detected())
    assert check_pair(seeds, allow=False) == []


def test_a_detector_that_sees_nothing_is_told_of() -> None:
    (notice,) = check_pair(deviating(3, detected(), detected()), allow=False)
    assert "3 seeds: check" in notice
    many = detected(*[0] * 101)
    (notice,) = check_pair(deviating(3, many, many), allow=False)
    assert "detects 101 objects" in notice


def test_how_far_values_may_be_apart_is_the_users_to_say() -> None:
    zeros, ones = Values(np.zeros(3)), Values(np.ones(3))
    assert check_pair(deviating(40, zeros, ones), allow=False) == []


def test_a_preprocessing_with_which_the_original_fails_explains_nothing() -> None:
    spec = InputSpec((1, 8, 8, 3), "float32", (8, 8), 3, scale=(1, 255))
    outputs = Outputs(one_hot(0), one_hot(1), Decision.DEVIATION)
    some = [Seed(f"s{k}", np.zeros((8, 8, 3), np.uint8), outputs) for k in range(20)]
    asked: list[InputSpec] = []

    def answer(_: Query, spec: InputSpec) -> Output:
        if spec not in asked:
            asked.append(spec)
        if spec == asked[0]:
            raise InferenceFailedError("original model: crashed")
        return one_hot(1)

    better = better_preprocessing(some, (spec, spec), answer)
    assert len(asked) > 2
    assert better is not None
    assert better.closer == 20

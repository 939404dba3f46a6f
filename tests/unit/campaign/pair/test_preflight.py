import numpy as np
import pytest

from edgeflare.campaign.pair.preflight import (
    PairAnswers,
    SeedFigures,
    check_pair,
    pair_issues,
    slowness,
)
from edgeflare.campaign.seeds import check_labels
from edgeflare.campaign.settings.config import SearchConfig
from edgeflare.errors import SeedError
from edgeflare.seeds import SeedInput
from edgeflare.statistics import wilson
from edgeflare.types import (
    Decision,
    DetectionRules,
    Detections,
    Issue,
    Output,
    Outputs,
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


def issue(seeds: list[SeedFigures], *, allow: bool = False) -> Issue:
    (only,) = pair_issues(PairAnswers(seeds, allow=allow))
    return only


def test_ordinary_compression_passes() -> None:
    assert check_pair(PairAnswers(seeds(50, 5, wrong=6))) == ([], "", False)


def test_far_too_many_disagreements_stop_the_campaign_and_are_shown() -> None:
    found = issue(seeds(50, 25))
    assert (found.code, found.severity) == ("disagreement", "stop")
    assert (found.data["differing"], found.data["seeds"]) == (25, 50)
    assert found.data["examples"][0] == {"seed": "s0", "difference": "0 against 1"}
    assert found.data["margins"] == {"original": 1, "deployed": 1}
    assert found.fix.keys() == {"original.input", "deployed.input"}
    assert check_pair(PairAnswers(seeds(50, 25)))[1].startswith(
        "the two models disagree on 25 of 50 seeds"
    )


def test_the_lower_bound_decides() -> None:
    assert pair_issues(PairAnswers(seeds(20, 7))) == []  # 35 %, lower bound 18 %
    assert issue(seeds(200, 70)).data["low"] == pytest.approx(0.287, abs=1e-3)


def test_accuracy_near_chance_stops_the_campaign() -> None:
    found = pair_issues(PairAnswers(seeds(40, 0, wrong=36)))
    assert [one.code for one in found] == ["accuracy-original", "accuracy-deployed"]
    assert [one.data["right"] for one in found] == [4, 4]
    assert found[0].data["accuracies"] == {"original": (4, 40), "deployed": (4, 40)}


@pytest.mark.parametrize("label", [3, None])
def test_labels_of_one_class_tell_nothing(label: int | None) -> None:
    labelled = [seed._replace(label=label, original=3, deployed=3) for seed in seeds(40, 0)]
    found = pair_issues(PairAnswers(labelled))
    assert [(one.code, one.severity) for one in found] == [("one-class", "note")] * (label == 3)


def test_the_user_may_accept_it() -> None:
    assert issue(seeds(50, 25), allow=True).severity == "warning"
    (notice,), problem, _ = check_pair(PairAnswers(seeds(50, 25), allow=True))
    assert ("disagree on 25 of 50 seeds" in notice, problem) == (True, "")


def test_few_seeds_only_warn() -> None:
    assert issue(seeds(10, 9)).severity == "warning"
    (notice,), problem, _ = check_pair(PairAnswers(seeds(10, 9)))
    assert ("only 10 seeds" in notice, problem) == (True, "")


@pytest.mark.parametrize("label", [-1, 10, 2**63 + 1])
def test_labels_must_be_class_numbers(label: int) -> None:
    check_labels([SeedInput("a", SAMPLE, 9), SeedInput("b", SAMPLE, None)], 10)
    with pytest.raises(SeedError, match="10 classes"):
        check_labels([SeedInput("a", SAMPLE, 0), SeedInput("b", SAMPLE, label)], 10)


def test_a_device_too_slow_for_the_query_budget_is_reported() -> None:
    search = SearchConfig(max_queries=1000, timeout_s=100)
    assert slowness([0.05, 0.01, 0.05], search) is None
    slow = slowness([2.0, 2.0, 9.0], search)
    assert slow.fix["search.max_queries"] == slow.data["affordable"] == 50
    slow = slowness([140.0], search)
    assert (slow.data["device_s"], slow.data["affordable"]) == (140, 0)
    assert slowness([2.0], SearchConfig(max_queries=1000, timeout_s=0)) is None


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
    assert pair_issues(PairAnswers(deviating(40, original, detected(*[0] * 9, 1)))) == []
    found = issue(deviating(40, original, detected(*[0] * 8, 1, 1)))
    assert found.code == "disagreement"
    difference = found.data["examples"][0]["difference"]
    assert difference == "class 0 (10) against class 0 (8), class 1 (2)"


def test_objects_near_the_confidence_may_all_differ() -> None:
    seeds = deviating(40, detected(*[0] * 10, score=0.54), detected())
    assert pair_issues(PairAnswers(seeds)) == []


@pytest.mark.parametrize("objects", [0, 101])
def test_a_detector_that_sees_nothing_or_too_much_is_told_of(objects: int) -> None:
    same = detected(*[0] * objects)
    found = issue(deviating(3, same, same))
    assert (found.code, found.severity) == ("objects", "note")
    assert found.data == {"seeds": 3, "median": objects}


def test_how_far_values_may_be_apart_is_the_users_to_say() -> None:
    zeros, ones = Values(np.zeros(3)), Values(np.ones(3))
    assert pair_issues(PairAnswers(deviating(40, zeros, ones))) == []

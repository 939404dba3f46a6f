"""Steps from a seed to a triggering input, in words."""

import numpy as np
import pytest
from shown_numbers import numbers

from edgeflare.strategies.operators import (
    corruption_names,
    describe_finding,
    describe_last_mutations,
    describe_mutations,
)
from edgeflare_mutators import Mutation, SampleSpec, corruptions, default_pool

JPEG = {"operator": "jpeg", "params": {"quality": 37}}
TURNED = {"operator": "rotation", "params": {"degrees": -4.2}}


def test_a_corruption_says_what_it_does() -> None:
    assert numbers("\n".join(describe_mutations([JPEG, TURNED]))) == "37 4.2"


@pytest.mark.parametrize("name", [*corruptions("image"), *corruptions("audio")])
def test_every_corruption_as_a_search_records_it_has_its_own_words(name: str) -> None:
    operator = (corruptions("image") | corruptions("audio"))[name]
    spec = {"image": SampleSpec("image", (32, 32, 3)), "audio": SampleSpec("audio", (99,), 8000)}
    drawn = operator.draw(np.random.default_rng(3), spec[operator.kind])
    graded = operator.graded(drawn, 0.6)
    assert describe_mutations([Mutation(name, graded).to_json()]) == [operator.words(graded)]


def test_another_operator_is_reported_by_name_and_parameters_without_its_noise_s_seed() -> None:
    drawn = default_pool()["gaussian-noise"].draw(
        np.random.default_rng(3), SampleSpec.of(np.zeros((8, 8, 1), np.uint8))
    )
    (told,) = describe_mutations([Mutation("gaussian-noise", drawn).to_json()])
    kept = {key: value for key, value in drawn.items() if key != "seed"}
    assert kept
    assert told.startswith("gaussian-noise (")
    assert all(f"{key}=" in told for key in kept)
    assert str(drawn["seed"]) not in told


def test_what_cannot_be_had_or_does_not_fit_is_reported_plainly() -> None:
    steps = [
        {
            "operator": "operator-that-was-uninstalled",
            "params": {"strength": 0.123456, "way": "up"},
        },
        {"operator": "jpeg", "params": {"quality": "fine"}},
        {"operator": "average"},
    ]
    assert describe_mutations(steps) == [
        "operator-that-was-uninstalled (strength=0.1235, way=up)",
        "jpeg (quality=fine)",
        "average",
    ]
    assert corruption_names(steps[:1]) == []


def test_corruptions_are_named_once_each_and_nothing_else_is() -> None:
    blurred = {"operator": "average-blur", "params": {"size": 3}}
    assert corruption_names([TURNED, blurred, JPEG, TURNED]) == ["rotation", "jpeg"]


def test_a_finding_is_one_sentence() -> None:
    assert numbers(describe_finding([JPEG, TURNED], 3, 5, most=5)) == "37 4.2 3 5"
    assert describe_finding([], 3, None, most=5) == "original 3"
    assert numbers(describe_last_mutations([JPEG] * 7, most=2)) == "5 37 37"
    assert describe_last_mutations([], most=2) == ""


def test_steps_that_change_nothing_are_not_reported() -> None:
    idle = [
        {"operator": "random-pixel-change", "params": {"count": 0, "seed": 3}},
        {"operator": "median-blur", "params": {"kernel": 1}},
    ]
    assert describe_last_mutations([*idle, JPEG, *idle], most=2) == "JPEG quality 37"


def test_what_recognisers_heard_is_quoted() -> None:
    assert '"no", device "go"' in describe_finding([], "no", "go", most=5)
    assert 'original "no", device' in describe_finding([], "no", "", most=5)

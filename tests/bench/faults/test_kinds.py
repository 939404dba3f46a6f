"""Faults are planted in a small convolutional net with random weights."""

from pathlib import Path

import numpy as np
import pytest
from small_originals import small_original

from edgeflare.errors import UsageError
from edgeflare_bench.faults import (
    KINDS,
    Evaluation,
    Inapplicable,
    Original,
    Parameters,
    area_under_curve,
    draws,
    faulty_model,
    find_witness,
    healthy_models,
    is_reserved,
)
from edgeflare_bench.faults.evaluation import METHODS, SearchResult
from edgeflare_bench.faults.originals import predict, session

FULL = Parameters(1.0, 0.0, 0.4, 0.6)


@pytest.fixture(scope="module")
def original() -> Original:
    return small_original()


@pytest.mark.parametrize("kind", [one for one in KINDS if one != "stale-state"])
def test_a_full_fault_changes_some_answer_and_leaves_the_original(original, kind) -> None:
    before = original.model.SerializeToString()
    faulty = faulty_model(original, kind, FULL)
    assert original.model.SerializeToString() == before
    found = find_witness(original, faulty, np.random.default_rng(0), gradients=False)
    assert found is not None
    assert found.sample.shape == (1, 8, 8, 3)
    assert found.margin >= 0.3
    assert found.decides_otherwise or found.total_variation > 0.3
    sound = predict(session(original.model), found.sample)
    wrong = predict(session(faulty), found.sample)
    assert np.abs(sound - wrong).sum() / 2 == pytest.approx(found.total_variation, abs=1e-5)
    np.testing.assert_allclose(found.sample * 255, np.rint(found.sample * 255), atol=1e-4)


@pytest.mark.parametrize("kind", [one for one in KINDS if one != "stale-state"])
def test_the_same_parameters_make_the_same_model(original: Original, kind: str) -> None:
    given = Parameters(0.5, 0.9, 0.1, 0.2)
    first, second = (faulty_model(original, kind, given) for _ in range(2))
    assert first.SerializeToString() == second.SerializeToString()


def test_a_model_without_a_recurrent_layer_has_no_stale_state(original: Original) -> None:
    with pytest.raises(Inapplicable, match="recurrent layer"):
        faulty_model(original, "stale-state", FULL)


def test_an_unknown_kind_is_refused(original: Original) -> None:
    with pytest.raises(UsageError, match="'rust'"):
        faulty_model(original, "rust", FULL)


def test_the_original_itself_has_no_witness(original: Original) -> None:
    assert find_witness(original, original.model, np.random.default_rng(0), gradients=False) is None


@pytest.mark.torch
def test_gradients_find_a_witness_that_random_inputs_miss(original: Original) -> None:
    rare = Parameters(0.02, 0.0, 0.4, 0.6)
    faulty = faulty_model(original, "wrong-calibration", rare)
    assert find_witness(original, faulty, np.random.default_rng(0), gradients=False) is None
    found = find_witness(original, faulty, np.random.default_rng(0))
    assert found is not None
    assert found.found_by == "gradient"


def test_half_of_the_draws_of_each_kind_and_size_are_reserved() -> None:
    every = list(draws())
    assert [one.parameters for one in every] == [one.parameters for one in draws()]
    for kind in KINDS:
        for size in ("large", "medium", "mild"):
            mine = [one for one in every if (one.kind, one.size) == (kind, size)]
            assert sum(map(is_reserved, mine)) * 2 == len(mine) > 0
            assert len({one.parameters for one in mine}) == len(mine)


@pytest.mark.filterwarnings("ignore")  # of onnxruntime's quantiser
def test_healthy_models_answer_nearly_as_the_original(original: Original) -> None:
    sound = predict(session(original.model), original.inputs)
    made = list(healthy_models(original))
    assert len({one.name for one in made}) == len(made) == 24
    for one in made:
        moved = np.abs(predict(session(one.model), original.inputs) - sound).sum(1) / 2
        assert moved.mean() < 0.25, one.name
    assert any(
        not np.array_equal(sound, predict(session(one.model), original.inputs)) for one in made
    )


@pytest.mark.extended
def test_a_faulty_model_is_found_and_called_worse(original: Original, tmp_path: Path) -> None:
    evaluation = Evaluation(original, tmp_path, seeds=12)
    faulty = faulty_model(original, "layer-scale", FULL)
    sound = evaluation.respond(original.model, [2, 6])
    wrong = evaluation.respond(faulty, [2, 6])
    assert [(one.deviations, one.first) for one in sound.values()] == [(0, None)] * 2
    assert sound[2].queries == 24
    assert sound[6].verdict != "worse"
    assert wrong[6].verdict == "worse"
    assert wrong[2].first is not None
    assert wrong[2].deviations < wrong[6].deviations
    assert (wrong[6].excess or 0) > (sound[6].excess or 0)
    found = evaluation.pursue(faulty)
    assert found.found
    assert found.queries <= 36
    assert not evaluation.pursue(original.model).found


@pytest.mark.parametrize("method", METHODS)
def test_a_search_stays_within_its_queries(original: Original, tmp_path: Path, method: str) -> None:
    evaluation = Evaluation(original, tmp_path, seeds=2)
    assert evaluation.search(original.model, method) == SearchResult(False, 12, False)
    found = evaluation.search(faulty_model(original, "layer-scale", FULL), method)
    assert found.triggers
    assert 1 <= found.queries <= 12


@pytest.mark.parametrize(
    ("healthy", "faulty", "area"), [([1, 2], [3], 1), ([1, 2], [0], 0), ([1, 3], [1, 2], 0.375)]
)
def test_the_area_counts_ordered_pairs(healthy, faulty, area) -> None:
    assert area_under_curve(healthy, faulty) == area

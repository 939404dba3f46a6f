"""Priorities of seeds against hand-made cases and plain formulas, and how early an order finds."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgeflare.errors import UsageError
from edgeflare.models.tensors import UnitActivations
from edgeflare.types import SeedInput, Transcript
from edgeflare_whitebox import (
    DSC,
    PRIORITY_MEASURES,
    Activations,
    apfd,
    drift_priorities,
    found_within,
    gini,
    order_of,
    priorities,
    rarity_priorities,
    surprise_priorities,
)

SCORES = [
    np.array([0.7, 0.2, 0.1]), np.array([0.4, 0.35, 0.25]), np.array([0.4, 0.35, 0.25]),
    np.array([np.nan, 0.5, 0.5]), np.array([0.5, 0.5, 0.0]), None, np.array([0.0, 1.0, 0.0]),
]  # fmt: skip
LAYER = "layer"


def seeds(count: int) -> list[SeedInput]:
    return [SeedInput(str(k), np.full((1, 1, 1), k, np.uint8)) for k in range(count)]


def answers(samples: Sequence[Any]) -> list[Any]:
    return [SCORES[int(one[0, 0, 0])] for one in samples]


def traces(values: Any, labels: Any) -> list[Activations]:
    return [
        Activations({LAYER: UnitActivations(np.array(one, np.float32), 0, 1)}, int(label))
        for one, label in zip(values, labels, strict=True)
    ]


def test_the_smallest_margin_comes_first_and_ties_keep_the_sources_order() -> None:
    found = priorities("margin", seeds(len(SCORES)), answers)
    np.testing.assert_allclose(found, [-0.5, -0.05, -0.05, np.nan, 0, np.nan, -1])
    assert order_of(found).tolist() == [4, 1, 2, 0, 6, 3, 5]


def test_gini_is_one_minus_the_squares() -> None:
    found = priorities("gini", seeds(len(SCORES)), answers)
    second = 1 - 0.4**2 - 0.35**2 - 0.25**2
    np.testing.assert_allclose(found, [0.46, second, second, np.nan, 0.5, np.nan, 0], atol=1e-12)
    assert order_of(found).tolist() == [1, 2, 4, 0, 6, 3, 5]
    assert np.isnan(gini(Transcript(("a",), np.array([[0.9, 0.1]]))))


def test_samples_are_given_64_at_a_time_in_their_order() -> None:
    sizes: list[int] = []

    def scores(samples: Sequence[Any]) -> list[Any]:
        sizes.append(len(samples))
        return [np.array([one.size, 0.0]) / one.size for one in samples]

    assert len(priorities("margin", seeds(150), scores)) == 150
    assert sizes == [64, 64, 22]


def test_surprise_is_that_of_the_other_half_of_each_class() -> None:
    rng = np.random.default_rng(3)
    values, labels = rng.normal(size=(41, 5)).astype(np.float32), rng.integers(3, size=41)
    values[7, 2] = np.nan
    found = surprise_priorities(traces(values, labels), "0" * 64, LAYER)
    halves = np.full(41, -1)
    for label in range(3):
        usable = [k for k in range(41) if labels[k] == label and k != 7]
        for place, k in enumerate(usable):
            halves[k] = place % 2
    for k in range(41):
        if k == 7:
            assert np.isnan(found[k])
            continue
        other = np.flatnonzero(halves == 1 - halves[k])
        same = [j for j in other if labels[j] == labels[k]]
        near = min(same, key=lambda j: np.linalg.norm(values[j] - values[k]))
        far = min(np.linalg.norm(values[j] - values[near]) for j in other if labels[j] != labels[k])
        assert found[k] == pytest.approx(np.linalg.norm(values[near] - values[k]) / far, rel=1e-5)
    assert order_of(found)[-1] == 7


def test_surprise_without_anything_to_compare_with_is_infinite_and_first() -> None:
    values = [[0.0], [1.0], [5.0], [0.1], [1.2]]
    found = surprise_priorities(traces(values, [0, 1, 2, 0, 1]), "0" * 64, LAYER)
    assert found[2] == np.inf
    assert np.isfinite(found[[0, 1, 3, 4]]).all()
    assert order_of(found)[0] == 2
    assert surprise_priorities(traces([[1.0]], [0]), "0" * 64, LAYER).tolist() == [np.inf]
    assert surprise_priorities([], "0" * 64, LAYER).shape == (0,)
    all_bad = surprise_priorities(traces([[np.nan]] * 3, [0, 1, 0]), "0" * 64, LAYER)
    assert np.isnan(all_bad).all()


def test_a_layer_that_was_not_read_is_refused() -> None:
    with pytest.raises(UsageError):
        DSC("0" * 64, ["other"]).fit(traces([[1.0]], [0]))


def test_the_rarest_combination_comes_first_then_the_smallest_margin() -> None:
    combinations = [(0, 1), (0, 1), (1, 1), None, (0, 0), (0, 1), (1, 1), (0, 1)]
    margins = [0.3, 0.1, 0.5, 0.0, 0.9, None, 0.5, 0.3]
    found = rarity_priorities(combinations, margins)
    assert np.isnan(found[3])
    assert order_of(found).tolist() == [4, 2, 6, 1, 0, 7, 5, 3]
    assert found[2] == found[6]
    assert found[0] == found[7]
    assert rarity_priorities([], []).shape == (0,)


def test_combinations_without_as_many_margins_are_refused() -> None:
    with pytest.raises(UsageError, match="2 combinations"):
        rarity_priorities([(0,), (1,)], [0.1])


def test_drift_is_the_mean_and_seeds_without_answers_are_last() -> None:
    found = drift_priorities([[0.1, 0.3], [], [0.2], [0.9, 0.0]])
    np.testing.assert_allclose(found, [0.2, np.nan, 0.2, 0.45])
    assert order_of(found).tolist() == [3, 0, 2, 1]


def test_what_a_measure_lacks_is_said() -> None:
    with pytest.raises(UsageError, match="see drift_priorities"):
        priorities("drift", seeds(1), answers)
    with pytest.raises(UsageError, match="measure best"):
        priorities("best", seeds(1), answers)  # type: ignore[arg-type]
    for measure in ("surprise", "rarity"):
        with pytest.raises(UsageError, match=f"{measure} looks"):
            priorities(measure, seeds(1), answers)  # type: ignore[arg-type]
    speech = Transcript(("a",), np.array([[0.9, 0.1]]))
    for measure in ("margin", "gini"):
        with pytest.raises(UsageError, match="returns text"):
            priorities(measure, seeds(1), lambda _: [speech])  # type: ignore[arg-type]
    assert set(PRIORITY_MEASURES) == {"margin", "gini", "surprise", "rarity", "drift"}


def test_infinity_is_first_and_nothing_known_last() -> None:
    found = np.array([np.nan, -np.inf, 2.0, np.inf, np.nan, 2.0, np.inf])
    assert order_of(found).tolist() == [3, 6, 2, 5, 1, 0, 4]


def test_apfd_of_cases_by_hand() -> None:
    assert apfd([0, 1, 2, 3], [0]) == pytest.approx(1 - 1 / 4 + 1 / 8)
    assert apfd([3, 2, 1, 0], [0]) == pytest.approx(1 - 4 / 4 + 1 / 8)
    # 10 seeds, of which those at the places 1, 3 and 10 of the order have findings
    assert apfd([5, 0, 6, 1, 2, 3, 4, 7, 8, 9], [5, 6, 9]) == pytest.approx(1 - 14 / 30 + 1 / 20)
    assert apfd([1, 0], [0, 1]) == pytest.approx(0.5)


@given(st.permutations(range(9)), st.sets(st.integers(0, 8), min_size=1))
def test_apfd_is_the_area_below_the_curve_of_findings(order: list[int], found: set[int]) -> None:
    share = [0.0]
    for place in order:
        share.append(share[-1] + (place in found) / len(found))
    assert apfd(order, found) == pytest.approx(np.trapezoid(share) / len(order))


@given(
    st.permutations(range(7)),
    st.sets(st.integers(0, 6), min_size=1),
    st.lists(st.integers(0, 9), min_size=7, max_size=7),
    st.sampled_from([0, 0.1, 0.25, 0.5, 0.9, 1]),
)
def test_found_within_counts_what_is_paid_for(order, found, costs, share) -> None:
    spent = hits = 0
    for place in order:
        spent += costs[place]
        if spent > share * sum(costs):
            break
        hits += place in found
    assert found_within(order, found, share, costs) == pytest.approx(hits / len(found))


def test_shares_of_the_budget_by_hand() -> None:
    order, found = [3, 1, 0, 2], [1, 2]
    assert [found_within(order, found, share) for share in (0.25, 0.5, 0.75, 1)] == [0, 0.5, 0.5, 1]
    assert found_within(order, found, 0.5, [0, 8, 1, 1]) == 0
    assert found_within(order, found, 0.9, [0, 8, 1, 1]) == 0.5
    assert found_within(list(range(10)), [0], 0.1) == 1  # 0.1 * 10 is a whole seed


@pytest.mark.parametrize("judge", [apfd, lambda order, found: found_within(order, found, 0.5)])
def test_orders_that_are_none_are_refused(judge: Any) -> None:
    for order in ([0, 0], [1, 2], [0, 2]):
        with pytest.raises(UsageError, match="0, each"):
            judge(order, [0])
    for found in ([], [2], [-1]):
        with pytest.raises(UsageError, match="one finding"):
            judge([0, 1], found)


def test_budgets_that_are_none_are_refused() -> None:
    for share in (-0.1, 1.1, np.nan):
        with pytest.raises(UsageError, match="from 0"):
            found_within([0, 1], [0], share)
    for costs in ([1], [1, -1], [1, np.nan]):
        with pytest.raises(UsageError, match="cost of"):
            found_within([0, 1], [0], 0.5, costs)


@pytest.mark.torch
def test_combinations_are_those_of_the_important_units(tmp_path: Path) -> None:
    pytest.importorskip("torch", reason="it is in the extra inspection")
    from command import DEMO

    from edgeflare.models import InputOptions, TensorInfo, resolve_input
    from edgeflare.models.tensors import open_graph
    from edgeflare_whitebox import (
        IDC,
        InspectedOriginal,
        RelevanceModel,
        activations_of,
        important_units,
        model_digest,
        penultimate_layer,
        total_relevance,
    )

    path = DEMO / "original.onnx"
    graph = open_graph(path, "onnx", {"threads": 1})
    with np.load(DEMO / "seeds.npz") as archive:
        images = archive["images"][:30].reshape(30, 28, 28, 1)
        labels = [int(one) for one in archive["labels"][:30]]
    tensor = TensorInfo(graph.input, (1, 1, 28, 28), "float32", None)
    spec = resolve_input(tensor, InputOptions(scale="1/255"), InputOptions(), "the original")
    given_seeds = [
        SeedInput(str(k), image, label)
        for k, (image, label) in enumerate(zip(images, labels, strict=True))
    ]
    sure = np.random.default_rng(0).dirichlet(np.ones(10), size=30)
    found = priorities(
        "rarity",
        given_seeds,
        lambda samples: list(sure[: len(samples)]),
        InspectedOriginal(path, graph, spec),
    )
    layer = penultimate_layer(graph)
    totals, _ = total_relevance(
        RelevanceModel(path, graph), spec, zip(images, labels, strict=True), [layer]
    )
    idc = IDC(model_digest(path), layer, important_units(totals[layer], 6))
    all_of = list(activations_of(graph, spec, images, [layer]))
    idc.fit(all_of)
    combinations = [idc.combination(one) for one in all_of]
    two = np.sort(sure, axis=1)[:, -2:]
    expected = sorted(
        range(30), key=lambda k: (combinations.count(combinations[k]), two[k, 1] - two[k, 0], k)
    )
    assert order_of(found).tolist() == expected

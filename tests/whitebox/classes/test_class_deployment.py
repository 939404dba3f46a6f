"""What deployment changed by classes: exact tests against scipy's, planted biases, and the rate of false alarms."""

import numpy as np
import pytest
import scipy
from numpy.typing import NDArray

from edgeflare.errors import UsageError
from edgeflare_whitebox import (
    avg_cd,
    both_directions,
    compare_deployment,
    directional_type1_confusion,
    tarone_holm,
)
from edgeflare_whitebox.classes import campaign, deployment

Scores = NDArray[np.float64]


def softmax(logits: Scores) -> Scores:
    powers = np.exp(logits - logits.max(axis=1, keepdims=True))
    return np.asarray(powers / powers.sum(axis=1, keepdims=True))


def task(seed: int, count: int = 300, classes: int = 6) -> tuple[Scores, NDArray[np.int64]]:
    """Logits of a model that is mostly right, and the labels."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(classes, size=count)
    logits = rng.normal(size=(count, classes))
    logits[np.arange(count), labels] += 2.5
    return logits, labels


@pytest.mark.parametrize("labelled", [True, False])
def test_counts_and_ps_are_those_of_plain_loops_and_scipy(labelled: bool) -> None:
    logits, labels = task(0)
    other = logits + np.random.default_rng(1).normal(size=logits.shape)
    before, after = logits.argmax(axis=1), other.argmax(axis=1)
    found = compare_deployment(softmax(logits), softmax(other), labels if labelled else None)
    assert (found.inputs, found.moved) == (300, np.count_nonzero(before != after))
    assert sorted(one.label for one in found.classes) == list(range(6))
    for one in found.classes:
        gained = np.count_nonzero((after == one.label) & (before != one.label))
        lost = np.count_nonzero((before == one.label) & (after != one.label))
        assert (one.original, one.deployed) == tuple(
            np.count_nonzero(side == one.label) for side in (before, after)
        )
        assert one.p == pytest.approx(scipy.stats.binomtest(gained, gained + lost).pvalue)
        assert one.moved == gained + lost
        assert one.change.low <= (gained - lost) / 300 <= one.change.high
        if labelled:
            of_class = labels == one.label
            assert one.inputs == of_class.sum()
            assert one.original_recall == np.mean(before[of_class] == one.label)
            assert one.deployed_recall == np.mean(after[of_class] == one.label)
        else:
            assert (one.inputs, one.original_recall, one.deployed_recall) == (None, None, None)
    assert found.tested_pairs == 30
    assert len({(one.label, one.said) for one in found.pairs}) == len(found.pairs) > 5
    for pair in found.pairs:
        label, said = pair.label, pair.said
        of_pair = labels == label if labelled else (before == label) | (after == label)
        was, is_ = before[of_pair] == said, after[of_pair] == said
        gained, lost = np.count_nonzero(is_ & ~was), np.count_nonzero(was & ~is_)
        assert (pair.inputs, pair.original, pair.deployed) == (of_pair.sum(), was.sum(), is_.sum())
        expected = scipy.stats.binomtest(gained, gained + lost).pvalue if gained + lost else 1
        assert pair.p == pytest.approx(expected)
        for leak, scores in ((pair.original_leak, logits), (pair.deployed_leak, other)):
            assert leak == pytest.approx(softmax(scores)[of_pair, said].mean())
        assert pair.leak_change.low <= pair.deployed_leak - pair.original_leak  # type: ignore[operator]
        assert pair.deployed_leak - pair.original_leak <= pair.leak_change.high  # type: ignore[operator]
        for place in pair.examples:
            assert of_pair[place]
            assert (before[place] == said) != (after[place] == said)


def test_equal_models_have_no_change() -> None:
    logits, labels = task(2)
    for known in (labels, None):
        found = compare_deployment(softmax(logits), softmax(logits), known)
        assert (found.moved, found.pairs) == (0, ())
        assert not any(one.is_significant or one.in_pairs for one in found.classes)
        assert not any(one.is_significant for one in found.biases)


@pytest.mark.parametrize("label", range(6))
@pytest.mark.parametrize("shift", [-2.0, 2.0])
def test_the_class_that_was_damaged_is_named_first(label: int, shift: float) -> None:
    logits, labels = task(3)
    damaged = logits.copy()
    damaged[:, label] += shift
    for known in (labels, None):
        found = compare_deployment(softmax(logits), softmax(damaged), known)
        first = found.classes[0]
        assert first.label == label
        assert first.is_significant
        assert first.moved == found.moved
        assert (first.deployed > first.original) == (shift > 0)
        assert label in (found.pairs[0].label, found.pairs[0].said)


def test_it_is_named_first_where_it_takes_as_many_inputs_as_it_loses() -> None:
    """Class 0 takes inputs of class 1, and loses its own to class 2: it is decided for as often as before."""
    labels = np.repeat([0, 1, 2], 40)
    before = np.eye(3)[labels] * 0.8 + 0.2 / 3
    after = before.copy()
    after[:20] = [0.2, 0.0, 0.8]
    after[40:60] = [0.8, 0.2, 0.0]
    found = compare_deployment(before, after, labels)
    first = found.classes[0]
    assert (first.label, first.original, first.deployed, first.moved) == (0, 40, 40, 40)
    assert first.p == 1
    assert first.in_pairs
    assert all(one.is_significant for one in found.classes[1:])


def test_a_leak_without_another_decision_is_found() -> None:
    logits, labels = task(4, count=240, classes=4)
    logits[np.arange(240), labels] += 4
    scores = softmax(logits)
    leaking = scores.copy()
    of_one = labels == 1
    leaking[of_one] = scores[of_one] * 0.95
    leaking[of_one, 3] += 0.05
    found = compare_deployment(scores, leaking, labels)
    assert found.moved == 0
    assert [(one.label, one.said) for one in found.pairs if one.is_significant] == [(1, 3)]
    assert [one.label for one in found.classes[:2]] in ([1, 3], [3, 1])
    alone = compare_deployment(scores, leaking, labels, has_probabilities=False)
    assert not alone.pairs
    assert all(one.shift is None for one in alone.classes)


def test_bias_is_the_disparity_of_confusion() -> None:
    logits, labels = task(5, count=400, classes=4)
    damaged = logits.copy()
    damaged[labels == 0, 2] += 2.5
    found = compare_deployment(softmax(logits), softmax(damaged), labels)
    for which, scores in (("original", logits), ("deployed", damaged)):
        confusion = directional_type1_confusion(labels, scores.argmax(axis=1), 4)
        expected = avg_cd(both_directions(confusion))
        for one in found.biases:
            assert getattr(one, which) == pytest.approx(expected[one.first, one.second])
    assert len(found.biases) == 6
    first = found.biases[0]
    assert first.is_significant
    assert first.change.low > 0
    assert {first.first, first.second} & {0, 2}
    again = compare_deployment(softmax(logits), softmax(damaged), labels)
    assert again == found
    drawn = compare_deployment(softmax(logits), softmax(damaged), labels, random_seed=1)
    assert drawn.biases != found.biases


@pytest.mark.extended
def test_where_nothing_was_changed_something_is_found_in_a_twentieth_at_most(monkeypatch) -> None:
    """Two models that differ by noise alone, of both with the same distribution."""
    monkeypatch.setattr(deployment, "MOST_PAIRS", 2)  # the others have larger p
    rng = np.random.default_rng(6)
    alarms, draws = 0, 300
    for number in range(draws):
        logits, labels = task(100 + number, count=80, classes=3)
        one, other = (softmax(logits + rng.normal(size=logits.shape)) for _ in range(2))
        found = compare_deployment(one, other, labels if number % 2 else None)
        assert found.moved > 5
        parts = (*found.classes, *found.pairs, *found.biases)
        alarms += any(part.is_significant for part in parts)  # type: ignore[attr-defined]
    assert alarms <= 0.05 * draws


def test_a_tie_is_no_other_decision() -> None:
    """As of an integer softmax: the class of the original shares the largest score."""
    logits, labels = task(8)
    scores = softmax(logits)
    coarse = np.round(scores * 16) / 16
    every = np.arange(len(scores))
    alike = coarse[every, scores.argmax(axis=1)] == coarse.max(axis=1)
    assert (coarse.argmax(axis=1) != scores.argmax(axis=1)).sum() > (~alike).sum()
    found = compare_deployment(scores, coarse, labels)
    assert found.moved == np.count_nonzero(~alike)
    other = softmax(logits + np.random.default_rng(9).normal(size=logits.shape))
    agree = np.ones(len(scores), bool)
    assert compare_deployment(scores, other, labels, agree=agree).moved == 0


def test_a_leak_among_many_classes_is_found() -> None:
    rng = np.random.default_rng(10)
    labels = np.repeat(np.arange(60), 40)
    logits = rng.normal(size=(2400, 60))
    logits[np.arange(2400), labels] += 12
    scores = softmax(logits)
    leaking = scores.copy()
    leaking[labels == 1, 2] += rng.uniform(0.1, 0.3, size=40)
    leaking /= leaking.sum(axis=1, keepdims=True)

    found = compare_deployment(scores, leaking, labels)

    assert found.moved == 0
    assert [(one.label, one.said) for one in found.pairs if one.is_significant] == [(1, 2)]
    assert found.biases == ()


def test_inputs_without_a_label_count_for_no_class() -> None:
    logits, labels = task(11, count=400, classes=4)
    damaged = logits.copy()
    damaged[labels == 0, 2] += 2.5
    before, after = softmax(logits), softmax(damaged)
    expected = compare_deployment(before, after, labels)
    found = compare_deployment(
        np.concatenate([before, before[:60]]),
        np.concatenate([after, after[:60]]),
        np.concatenate([labels, np.full(60, -1)]),
    )
    for one in found.biases:
        same = next(
            other
            for other in expected.biases
            if (other.first, other.second) == (one.first, one.second)
        )
        assert (one.original, one.deployed) == pytest.approx((same.original, same.deployed))


def test_the_interval_of_shares_covers_in_small_samples() -> None:
    rng = np.random.default_rng(7)
    for count, gains, losses in ((30, 0.2, 0.05), (60, 0.05, 0.02), (200, 0.1, 0.1)):
        tables = rng.multinomial(count, [gains, losses, 1 - gains - losses], 2000)
        changes = [deployment._Moves(count, 10, a, b).change for a, b, _ in tables.tolist()]
        covered = np.mean([one.low <= gains - losses <= one.high for one in changes])
        assert covered > 0.935


def test_tests_that_could_not_be_significant_cost_the_others_nothing() -> None:
    ps, least = [0.002, 0.5, 0.25, 0.25], [0.001, 0.5, 0.25, 0.25]
    assert tarone_holm(ps, least, level=0.05) == [0.002, 1, 1, 1]
    # Three tests could be significant if there were two or three: all three are adjusted by Holm.
    assert tarone_holm([0.01, 0.02, 0.016, 0.9], [0.01, 0.016, 0.016, 0.9], level=0.05) == (
        pytest.approx([0.03, 0.032, 0.032, 1])
    )
    assert tarone_holm([1.0], [1.0], level=0.05) == [1.0]
    assert tarone_holm([], [], level=0.05) == []


def test_classes_with_few_inputs_are_in_no_pair() -> None:
    labels = np.repeat([0, 1, 2, 3], [40, 40, 9, 1])
    before = np.eye(5)[labels]
    after = before[::-1].copy()
    found = compare_deployment(before, after, labels)
    assert {one.label for one in found.pairs} == {0, 1}
    assert found.tested_pairs == 6
    assert [one.label for one in found.classes if one.inputs == 1] == [3]
    assert found.biases == ()
    assert 4 not in [one.label for one in found.classes]


def test_a_thousand_classes_with_few_inputs_each_are_no_burden() -> None:
    rng = np.random.default_rng(8)
    before, after = rng.dirichlet(np.full(1000, 0.1), (2, 600))
    found = compare_deployment(before, after, rng.integers(1000, size=600))
    assert (found.pairs, found.tested_pairs) == ((), 0)
    assert not any(one.is_significant for one in found.classes)


def test_bad_arguments_are_told() -> None:
    scores = np.full((4, 3), 1 / 3)
    with pytest.raises(UsageError, match="models' answers"):
        compare_deployment(scores, scores[:, :2])
    with pytest.raises(UsageError, match="not finite"):
        compare_deployment(scores, scores * np.nan)
    with pytest.raises(UsageError, match="2 inputs"):
        compare_deployment(scores, scores, np.array([0, 1]))
    with pytest.raises(UsageError, match="class index"):
        compare_deployment(scores, scores, np.ones((4, 3), bool))
    assert compare_deployment(scores[:0], scores[:0]).classes == ()


def test_a_table_of_many_classes_has_those_in_the_strongest_changes() -> None:
    labels = np.repeat(np.arange(60), 12)
    before = np.eye(60)[labels]
    after = before.copy()
    after[labels == 41] = np.eye(60)[7]
    found = compare_deployment(before, after, labels)
    sides = (before.argmax(axis=1), after.argmax(axis=1))
    table = campaign._decisions(labels, *sides, found.classes, found.pairs)
    assert table.classes == (7, 41)
    assert table.original == ((12, 0), (0, 12))
    assert table.deployed == ((12, 0), (12, 0))

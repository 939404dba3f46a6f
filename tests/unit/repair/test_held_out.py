"""What a repair is said to do holds for inputs that it wasn't made from."""

import numpy as np
import pytest
from numpy.typing import NDArray

from edgeflare.errors import UsageError
from edgeflare.repair import Examples, RepairedCampaign
from edgeflare.repair.abstention import abstention_of
from edgeflare.repair.training import train_repair
from edgeflare.reports import repaired_document


def made_examples(
    margins: NDArray[np.float64], wanted: NDArray[np.int64], triggering: NDArray[np.bool_]
) -> Examples:
    """Return an example of each seed input, with these margins of class 0 above two others."""
    rest = (1 - margins) / 3
    count = len(margins)
    return Examples(
        scores=np.stack([rest + margins, rest, rest], axis=1),
        wanted=wanted,
        labels=np.full(count, -1),
        groups=np.arange(count),
        is_seed=~triggering,
        triggering=triggering,
        kind="probabilities",
    )


def both_kinds(rng: np.random.Generator, count: int) -> Examples:
    """Return a seed input that agrees and a triggering input for each number, with margins in 0 to 1."""
    triggering = np.repeat([False, True], count)
    wanted = np.where(triggering, rng.integers(1, 3, 2 * count), 0)
    examples = made_examples(rng.uniform(size=2 * count), wanted, triggering)
    return examples._replace(groups=np.tile(np.arange(count), 2))


def test_nothing_is_learnt_of_a_test_input_from_others_of_its_seed(monkeypatch) -> None:
    """The class of each seed's inputs is drawn by chance: only a leak would tell it."""
    monkeypatch.setattr("edgeflare.repair.training._ITERATIONS", 300)  # so much remembers them
    rng = np.random.default_rng(0)
    count = 40
    scores = np.tile(rng.dirichlet(np.ones(4), count), (8, 1))
    wanted = np.tile(rng.integers(0, 4, count), 8)
    examples = Examples(
        scores=scores + rng.uniform(0, 1e-6, scores.shape),
        wanted=wanted,
        labels=np.full(len(wanted), -1),
        groups=np.tile(np.arange(count), 8),
        is_seed=np.arange(len(wanted)) < count,
        triggering=scores.argmax(axis=1) != wanted,
        kind="probabilities",
    )
    trained = train_repair(examples, variant="standardised", random_seeds=1)
    assert trained.mean("repair_ratio") < 0.5
    known = [trained.repair.of_scores(one).argmax() for one in examples.scores]
    assert np.mean(known == wanted) > 0.7  # it does remember what it was trained on


def noisy(rng: np.random.Generator, count: int) -> Examples:
    """Return examples of two classes, where a high score of the third tells a deviation mostly."""
    signal = rng.uniform(0, 0.4, count)
    first = rng.uniform(0.4, 0.55, count)
    scores = np.stack([first, 1 - first - signal, signal], axis=1)
    wanted = np.where(rng.uniform(size=count) < 2.5 * signal, 1, 0)
    decided = scores.argmax(axis=1)
    triggering = decided != wanted
    return Examples(
        scores, wanted, np.full(count, -1), np.arange(count), ~triggering, triggering,
        "probabilities",
    )  # fmt: skip


def test_a_fall_of_accuracy_is_harm_though_fewer_inputs_deviate() -> None:
    """The original is wrong where it differs: the repair copies it, and so loses what was right."""
    examples = noisy(np.random.default_rng(1), 400)
    harmed = examples._replace(labels=examples.decided)
    trained = train_repair(harmed, variant="standardised", random_seeds=1)
    right, wrong = trained.changed_accuracy
    assert trained.accuracy is not None
    before, after = trained.accuracy
    assert (before, right) == (1.0, 0)
    assert wrong == round((before - after) * 400) > 5
    assert trained.loses_accuracy
    assert RepairedCampaign("", "", 0, "dflare", trained).is_harmful

    unlabelled = train_repair(examples, variant="standardised", random_seeds=1)
    assert (unlabelled.changed_accuracy, unlabelled.loses_accuracy) == ((0, 0), False)


def test_training_that_does_not_converge_is_told(monkeypatch, recwarn) -> None:
    monkeypatch.setattr("edgeflare.repair.training._ITERATIONS", 3)
    trained = train_repair(both_kinds(np.random.default_rng(0), 20), random_seeds=1)
    assert trained.unconverged == 6  # of five folds, and its own
    words = str(repaired_document(RepairedCampaign("", "", 0, "dflare", trained)))
    assert "6 of 6" in words
    assert "after 3 iterations" in words
    assert not recwarn.list


@pytest.mark.slow
def test_a_bound_on_what_is_induced_holds_on_average_on_other_inputs() -> None:
    rng = np.random.default_rng(0)
    bound, plain, bounded = 0.05, [], []
    others = noisy(rng, 4000)
    agree = others.wanted[~others.triggering]
    for _ in range(4):
        examples = noisy(rng, 200)
        for found, wanted in ((plain, None), (bounded, bound)):
            repair = train_repair(examples, max_inducing=wanted, random_seeds=1).repair
            answers = [repair.of_scores(one) for one in others.scores[~others.triggering]]
            found.append(np.mean(np.argmax(answers, axis=1) != agree))
    assert np.mean(plain) > 2 * bound
    assert np.mean(bounded) <= bound
    assert max(bounded) > 0


def test_a_bound_that_so_few_inputs_cannot_tell_is_refused() -> None:
    with pytest.raises(UsageError, match="248 inputs"):
        train_repair(both_kinds(np.random.default_rng(0), 60), max_inducing=0.01)


def test_a_threshold_catches_what_its_bound_says_on_average() -> None:
    """Half of 41 deviations are 20, of whose 21 ranks the 19th is the first at 90 %."""
    rng = np.random.default_rng(0)
    bounds, caught = set(), []
    for _ in range(100):
        found = abstention_of(both_kinds(rng, 40), catch=0.9)
        bounds.add(found.bound)
        caught.append(found.threshold)  # margins are uniform: the share below it
    assert bounds == {19 / 21}
    assert np.mean(caught) == pytest.approx(19 / 21, abs=0.02)


def test_only_the_other_halfs_fresh_deviations_count() -> None:
    rng = np.random.default_rng(0)
    found = abstention_of(both_kinds(rng, 40), catch=0.9)
    fresh = both_kinds(rng, 40)
    (counted,) = found.with_fresh("again", fresh).caught[1:]
    other = np.isin(fresh.groups, found.others) & fresh.triggering
    assert counted.deviations == other.sum() == 20
    assert counted.caught == (fresh.margins[other] < found.threshold).sum()


def test_no_threshold_catches_a_deviation_of_margin_one() -> None:
    examples = both_kinds(np.random.default_rng(0), 40)
    scores = np.where(examples.triggering[:, None], [1.0, 0.0, 0.0], examples.scores)
    with pytest.raises(UsageError, match="lower --catch"):
        abstention_of(examples._replace(scores=scores))

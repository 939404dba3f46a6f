"""DRepair: a perceptron that takes the deployed model's probabilities and returns the original's class.

DFLARE, section 5.5: a post-processing stage of the deployed model, trained on the probability
vectors of seed inputs and triggering inputs, with the original's label as the target, and judged by
five-fold cross-validation that is repeated with five random seeds. The paper names no settings; the
authors' code has 50 hidden units and up to 5,000 iterations, and so have we.

Differences: a seed input and the triggering inputs made from it are in one fold, so that nothing of
a test input is trained on. A seed input on which the models deviate counts as a triggering one.
Variant "standardised", ours, divides each class's probability by its standard deviation over the training
inputs: that repairs more, and induces more. With a bound on the inducing ratio, ours too, an answer
is replaced only where the deployed model's margin is below that of nearly all triggering inputs, and
the perceptron is sure enough. It is trained on half of the seed inputs then, and how sure it must be is
taken from the other half, so that the bound holds on average over inputs drawn as these (conformal
risk control, Angelopoulos et al. 2024).
"""

import math
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Annotated, Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, InstanceOf

from edgeflare._internal.extras import scikit_learn
from edgeflare._internal.records import JsonRecord, in_json
from edgeflare.errors import UsageError
from edgeflare.repair.examples import NO_LABEL, Examples
from edgeflare.statistics import binomial_tail
from edgeflare_agent.repair import Repair

Variant: TypeAlias = Literal["paper", "standardised"]
"""How a perceptron is trained."""
VARIANTS = get_args(Variant)
FOLDS = 5
RANDOM_SEEDS = 5
_HIDDEN = 50
_ITERATIONS = 5000
"""The most that training takes; it ends before, once its loss falls no more."""
_SET_ASIDE = 0.5 * (1 - 1 / FOLDS)
"""The share of the inputs, in a fold, that a bound is taken from."""
_GATED = 0.99
"""The share of triggering inputs whose margin is below the one from which on answers are kept."""
_ALPHA = 0.05
"""What p of a fall in accuracy is below where it counts as harm."""
_SMALLEST_STD = 1e-3
"""The least standard deviation that a class's probability is divided by."""


@dataclass(frozen=True)
class FoldFigures:
    """What a repair does to the inputs of a fold that it was not trained on (equations of 5.5.2).

    `triggering` and `others` are the numbers of inputs; of these `repaired` deviate no more, and
    `induced` deviate only since. `labelled` inputs have a known class, which `right_before` and
    `right_after` of them are given; `made_right` and `made_wrong` are those of which that changed.
    `converged`: the training ended by itself, before its largest number of iterations.
    """

    fold: int
    random_seed: int
    triggering: int
    others: int
    repaired: int
    induced: int
    labelled: int
    right_before: int
    right_after: int
    made_right: int
    made_wrong: int
    converged: bool

    @property
    def improvement(self) -> int:
        """How many fewer inputs deviate than before; below 0 for more."""
        return self.repaired - self.induced

    @property
    def repair_ratio(self) -> float:
        """The share of triggering inputs that deviate no more."""
        return self.repaired / self.triggering

    @property
    def inducing_ratio(self) -> float:
        """The share of other inputs that deviate now; 0 without any."""
        return self.induced / max(1, self.others)

    @property
    def improvement_ratio(self) -> float:
        """Deviations less than before, as a share of those before; below 0 for more."""
        return self.improvement / self.triggering


@dataclass(frozen=True)
class TrainedRepair(JsonRecord):
    """A trained repair, and how repairs trained in the same way do on other inputs.

    `inputs` and `triggering` count what it was trained on. `folds` are those of the
    cross-validation. `max_inducing` is the bound that was asked for, None without one. `converged`:
    its own training ended by itself; `iterations` is the largest number of them. Where there is a
    bound, an answer is replaced whose margin is `below` that, and of which the perceptron is so `sure`.
    A campaign stores it without the `repair`, which has a file.
    """

    variant: Variant
    inputs: int
    triggering: int
    folds: tuple[FoldFigures, ...]
    max_inducing: float | None
    converged: Annotated[bool, Field(exclude=True)]
    iterations: int
    sure: float | None
    below: Annotated[float | None, Field(exclude=True)]
    repair: Annotated[InstanceOf[Repair] | None, Field(exclude=True)] = None

    def mean(self, figure: str) -> float:
        """Return the mean of a property of the folds."""
        return float(np.mean([getattr(fold, figure) for fold in self.folds]))

    def spread(self, figure: str) -> float:
        """Return the standard deviation, over the random seeds, of the mean over their folds."""
        seeds = {fold.random_seed for fold in self.folds}
        means = [
            np.mean([getattr(fold, figure) for fold in self.folds if fold.random_seed == seed])
            for seed in seeds
        ]
        return float(np.std(means, ddof=1)) if len(means) > 1 else 0.0

    @in_json
    def unconverged(self) -> int:
        """How many of its trainings, those of the folds and its own, didn't end by themselves."""
        return sum(not fold.converged for fold in self.folds) + (not self.converged)

    @property
    def changed_accuracy(self) -> tuple[int, int]:
        """How many labelled inputs become right, and wrong: the mean over the times, rounded."""
        times = len({fold.random_seed for fold in self.folds})
        return (
            round(sum(fold.made_right for fold in self.folds) / times),
            round(sum(fold.made_wrong for fold in self.folds) / times),
        )

    @property
    def accuracy_p(self) -> float:
        """p of the sign test that not more labelled inputs become wrong than right; 1 without any."""
        right, wrong = self.changed_accuracy
        return binomial_tail(wrong, right + wrong, 0.5) if right + wrong else 1.0

    @in_json
    def loses_accuracy(self) -> bool:
        """Whether more labelled inputs become wrong than right, beyond chance."""
        return self.accuracy_p < _ALPHA

    @in_json
    def accuracy(self) -> tuple[float, float] | None:
        """The share of labelled inputs that were classified rightly before, and are now."""
        labelled = sum(fold.labelled for fold in self.folds)
        if not labelled:
            return None
        before, after = (
            sum(getattr(fold, f"right_{when}") for fold in self.folds) for when in _WHEN
        )
        return before / labelled, after / labelled

    @in_json
    def repair_ratio(self) -> float:
        """The mean over the folds; so are the next two."""
        return self.mean("repair_ratio")

    @in_json
    def inducing_ratio(self) -> float:
        """See `FoldFigures`."""
        return self.mean("inducing_ratio")

    @in_json
    def improvement_ratio(self) -> float:
        """See `FoldFigures`."""
        return self.mean("improvement_ratio")

    @in_json
    def made_right(self) -> int:
        """The first of `changed_accuracy`."""
        return self.changed_accuracy[0]

    @in_json
    def made_wrong(self) -> int:
        """The second of `changed_accuracy`."""
        return self.changed_accuracy[1]


_WHEN = ("before", "after")


def train_repair(
    examples: Examples,
    *,
    variant: Variant = "paper",
    max_inducing: float | None = None,
    random_seeds: int = RANDOM_SEEDS,
    tell: Callable[[int], None] = lambda _: None,
) -> TrainedRepair:
    """Train a repair, and judge it by cross-validation with so many random seeds.

    `max_inducing` (above 0, up to 1) bounds the inducing ratio, on average over inputs drawn as these; None:
    there is no bound. `tell` gets the number of folds done, 0 once the inputs are known to do. Raises UsageError for too few inputs and
    where scikit-learn is missing.
    """
    if max_inducing is not None and not 0 < max_inducing <= 1:
        raise UsageError(
            f"the bound on the inducing ratio is {max_inducing:.15g}, but it lies above 0 and up to 1, such as "
            "0.01 or 1%"
        )
    count = len(np.unique(examples.groups[examples.triggering]))
    if count < FOLDS:
        raise UsageError(
            f"triggering inputs of {FOLDS} seed inputs are needed to train a repair, and there are "
            f"{count}; search from more, some hundred for figures that can be relied on"
        )
    agreeing = int((~examples.triggering).sum())
    if max_inducing is not None and max_inducing * (agreeing * _SET_ASIDE + 1) < 1:
        needed = math.ceil((1 / max_inducing - 1) / _SET_ASIDE)
        raise UsageError(
            f"a bound of {100 * max_inducing:g} % needs {needed:,} inputs at least on which the "
            f"models agree, and there are {agreeing:,}: search from more seeds, or raise --max-inducing"
        )
    if len(np.unique(examples.wanted)) < 2:
        raise UsageError("the original decides for one class alone; search from other seed inputs")
    figures: list[FoldFigures] = []
    tell(0)
    for random_seed in range(random_seeds):
        for fold, test in enumerate(_divided(examples, random_seed)):
            repair, converged = _trained(examples.at(~test), variant, max_inducing, random_seed)
            figures.append(_figures(examples.at(test), repair, fold, random_seed, converged))
            tell(len(figures))
    repair, converged = _trained(examples, variant, max_inducing, 0)
    return TrainedRepair(
        variant,
        len(examples.scores),
        int(examples.triggering.sum()),
        tuple(figures),
        max_inducing,
        converged,
        _ITERATIONS,
        repair.sure,
        repair.below,
        repair,
    )


def _figures(
    examples: Examples, repair: Repair, fold: int, random_seed: int, converged: bool
) -> FoldFigures:
    """Return what a repair does to these inputs."""
    after = np.array([repair.of_scores(score).argmax() for score in examples.scores])
    agrees, known = after == examples.wanted, examples.labels != NO_LABEL
    right_before = (examples.decided == examples.labels)[known]
    right_after = (after == examples.labels)[known]
    return FoldFigures(
        fold,
        random_seed,
        int(examples.triggering.sum()),
        int((~examples.triggering).sum()),
        int((agrees & examples.triggering).sum()),
        int((~agrees & ~examples.triggering).sum()),
        int(known.sum()),
        int(right_before.sum()),
        int(right_after.sum()),
        int((right_after & ~right_before).sum()),
        int((right_before & ~right_after).sum()),
        converged,
    )


def _trained(
    examples: Examples, variant: Variant, max_inducing: float | None, random_seed: int
) -> tuple[Repair, bool]:
    """Return a repair of these inputs, under the bound where there is one, and whether it converged."""
    if max_inducing is None:
        return _fitted(examples, variant, random_seed)
    groups = np.random.default_rng(random_seed).permutation(np.unique(examples.groups))
    is_ours = np.isin(examples.groups, groups[: len(groups) // 2])
    ours, others = examples.at(is_ours), examples.at(~is_ours & ~examples.triggering)
    repair, converged = _fitted(ours, variant, random_seed)
    below = float(np.quantile([0.0, *ours.margins[ours.triggering]], _GATED))
    made = repair.made_of(others.scores)
    leads = made.max(axis=1) - made[np.arange(len(made)), others.decided]
    wrong = (made.argmax(axis=1) != others.wanted) & (others.margins < below)
    found = np.sort(leads[wrong])[::-1]
    allowed = math.floor(max_inducing * (len(made) + 1)) - 1
    sure = float(found[allowed]) if 0 <= allowed < len(found) else 0.0
    repair = repair._replace(below=min(1.0, below), sure=sure if allowed >= 0 else 1.0)
    return repair, converged


def _divided(examples: Examples, random_seed: int) -> Iterator[NDArray[np.bool_]]:
    """Yield the test inputs of each fold; those of one seed input are in one, triggering in each."""
    rng = np.random.default_rng(random_seed)
    names = np.unique(examples.groups)
    has_trigger = np.isin(names, examples.groups[examples.triggering])
    order = np.concatenate(
        [rng.permutation(names[has_trigger]), rng.permutation(names[~has_trigger])]
    )
    place = np.empty(int(names.max()) + 1, np.int64)
    place[order] = np.arange(len(order)) % FOLDS
    for number in range(FOLDS):
        yield place[examples.groups] == number


def _fitted(examples: Examples, variant: Variant, random_seed: int) -> tuple[Repair, bool]:
    """Return a repair that is trained on these inputs, and whether its training ended by itself."""
    size = examples.scores.shape[1]
    mean, std = np.zeros(size), np.ones(size)
    if variant == "standardised":
        mean = examples.scores.mean(axis=0)
        std = np.maximum(examples.scores.std(axis=0), _SMALLEST_STD)
    perceptron = scikit_learn("neural_network").MLPClassifier(
        (_HIDDEN,), max_iter=_ITERATIONS, random_state=random_seed
    )
    unconverged = scikit_learn("exceptions").ConvergenceWarning
    with warnings.catch_warnings():
        warnings.simplefilter(
            "ignore", unconverged
        )  # the report says it for all trainings together
        perceptron.fit((examples.scores - mean) / std, examples.wanted)
    layers = [
        (np.asarray(weights, np.float64), np.asarray(bias, np.float64))
        for weights, bias in zip(perceptron.coefs_, perceptron.intercepts_, strict=True)
    ]
    weights, bias = layers[-1]
    if len(perceptron.classes_) == 2:  # scikit-learn has one output then, of the second class
        layers[-1] = np.hstack([np.zeros_like(weights), weights]), np.append(0.0, bias)
    repair = Repair(
        size,
        examples.kind,
        mean=mean,
        std=std,
        classes=perceptron.classes_.astype(np.int64),
        layers=tuple(layers),
    )
    return repair, perceptron.n_iter_ < _ITERATIONS

"""DRepair: a perceptron that takes the deployed model's probabilities and returns the original's class.

DFLARE, section 5.5: a post-processing stage of the deployed model, trained on the probability
vectors of seed inputs and triggering inputs, with the original's label as the target, and judged by
five-fold cross-validation that is repeated with five random seeds.

Differences: a seed input and the triggering inputs made from it are in one fold, so that nothing of
a test input is trained on. A seed input on which the models deviate counts as a triggering one. The
size of the hidden layer isn't in the paper; it is 100, scikit-learn's default. Variant
"standardised", ours, divides each class's probability by its standard deviation over the training
inputs, and replaces an answer only where the perceptron is sure, so far that no more than a stated
share of the non-triggering inputs deviates afterwards.
"""

import warnings
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from edgeflare._internal.extras import scikit_learn
from edgeflare.errors import UsageError
from edgeflare.repair.examples import NO_LABEL, Examples, examples_of
from edgeflare_agent.repair import Repair

Variant: TypeAlias = Literal["standardised", "paper"]
"""How a perceptron is trained."""
FOLDS = 5
RANDOM_SEEDS = 5
MAX_INDUCING = 0.01
"""The largest share of non-triggering inputs that may deviate once repaired, by default."""
_HIDDEN = 100
_ITERATIONS = 500
_INNER_FOLDS = 3
_SMALLEST_STD = 1e-3
"""Classes that are hardly ever given a probability are not blown up."""


@dataclass(frozen=True)
class FoldFigures:
    """What a repair does to the inputs of a fold that it was not trained on (equations of 5.5.2).

    `triggering` and `others` are the numbers of inputs; of these `repaired` deviate no more, and
    `induced` deviate only since. `labelled` inputs have a known class, which `right_before` and
    `right_after` of them are given.
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
        return (self.repaired - self.induced) / self.triggering


@dataclass(frozen=True)
class TrainedRepair:
    """A trained repair, and how repairs trained in the same way do on other inputs.

    `inputs` and `triggering` count what it was trained on. `folds` are those of the
    cross-validation. `max_inducing` is the bound that was asked for, None without one.
    """

    repair: Repair
    variant: Variant
    inputs: int
    triggering: int
    folds: tuple[FoldFigures, ...]
    max_inducing: float | None

    def mean(self, figure: str) -> float:
        """Return the mean of a property of the folds."""
        return float(np.mean([getattr(one, figure) for one in self.folds]))

    def spread(self, figure: str) -> float:
        """Return the standard deviation, over the random seeds, of the mean over their folds."""
        seeds = {one.random_seed for one in self.folds}
        means = [
            np.mean([getattr(one, figure) for one in self.folds if one.random_seed == seed])
            for seed in seeds
        ]
        return float(np.std(means, ddof=1)) if len(means) > 1 else 0.0

    @property
    def accuracy(self) -> tuple[float, float] | None:
        """The share of labelled inputs that were classified rightly before, and are now."""
        labelled = sum(one.labelled for one in self.folds)
        if not labelled:
            return None
        before, after = (sum(getattr(one, f"right_{when}") for one in self.folds) for when in _WHEN)
        return before / labelled, after / labelled

    def to_json(self) -> dict[str, Any]:
        """Return a JSON object, without the repair's numbers."""
        figures = ("repair_ratio", "inducing_ratio", "improvement_ratio")
        return {
            "variant": self.variant,
            "inputs": self.inputs,
            "triggering": self.triggering,
            "max_inducing": self.max_inducing,
            "sure": self.repair.sure,
            **{name: self.mean(name) for name in figures},
            "accuracy": None if self.accuracy is None else list(self.accuracy),
            "folds": [asdict(one) for one in self.folds],
        }


_WHEN = ("before", "after")


def train_repair(
    folder: Path,
    *,
    variant: Variant = "standardised",
    max_inducing: float = MAX_INDUCING,
    random_seeds: int = RANDOM_SEEDS,
    tell: Callable[[int, int], None] | None = None,
) -> TrainedRepair:
    """Train a repair on a campaign's inputs and judge it by cross-validation; nothing is written.

    `max_inducing` (0 to 1) bounds the inducing ratio of the variant "standardised", as far as the
    training inputs tell it; "paper" has no bound. `tell` gets the number of folds done, and of all.
    Raises UsageError as `examples_of`, for too few inputs, and where scikit-learn is missing;
    StoreError.
    """
    if not 0 <= max_inducing <= 1:
        raise UsageError(f"max_inducing is {max_inducing:g}, but a share lies in 0 to 1")
    examples = examples_of(folder)
    groups = np.unique(examples.groups[examples.triggering])
    if len(groups) < FOLDS:
        raise UsageError(
            f"{folder} has triggering inputs of {len(groups)} seed inputs; {FOLDS} are needed at "
            "least, and some hundred for figures that can be relied on"
        )
    if len(np.unique(examples.wanted)) < 2:
        raise UsageError(f"the original decides for one class alone in {folder}: add seed inputs")
    training = _Training(variant, max_inducing)
    folds = []
    for fold in _folds(examples, random_seeds):
        repair = training.fit(examples.where(~fold.test), fold.random_seed)
        folds.append(figures_of(repair, examples.where(fold.test), fold.number, fold.random_seed))
        if tell is not None:
            tell(len(folds), FOLDS * random_seeds)
    return TrainedRepair(
        training.fit(examples, 0),
        variant,
        len(examples.scores),
        int(examples.triggering.sum()),
        tuple(folds),
        max_inducing if variant == "standardised" else None,
    )


def figures_of(repair: Repair, examples: Examples, fold: int, random_seed: int) -> FoldFigures:
    """Return what a repair does to these inputs."""
    before = examples.decided
    after = np.array([repair.of_scores(one).argmax() for one in examples.scores])
    agrees, known = after == examples.wanted, examples.labels != NO_LABEL
    return FoldFigures(
        fold,
        random_seed,
        int(examples.triggering.sum()),
        int((~examples.triggering).sum()),
        int((agrees & examples.triggering).sum()),
        int((~agrees & ~examples.triggering).sum()),
        int(known.sum()),
        int((before == examples.labels)[known].sum()),
        int((after == examples.labels)[known].sum()),
    )


class _Fold(NamedTuple):
    number: int
    random_seed: int
    test: NDArray[np.bool_]


def _folds(examples: Examples, random_seeds: int) -> Iterator[_Fold]:
    for random_seed in range(random_seeds):
        for number, test in enumerate(_divided(examples, FOLDS, random_seed)):
            yield _Fold(number, random_seed, test)


def _divided(examples: Examples, folds: int, random_seed: int) -> Iterator[NDArray[np.bool_]]:
    """Yield the test inputs of each fold; those of one seed input are in one, triggering in each."""
    rng = np.random.default_rng(random_seed)
    has_trigger = np.isin(np.unique(examples.groups), examples.groups[examples.triggering])
    names = np.unique(examples.groups)
    order = np.concatenate(
        [rng.permutation(names[has_trigger]), rng.permutation(names[~has_trigger])]
    )
    place = np.empty(int(names.max()) + 1, np.int64)
    place[order] = np.arange(len(order)) % folds
    for number in range(folds):
        yield place[examples.groups] == number


class _Training(NamedTuple):
    variant: Variant
    max_inducing: float

    def fit(self, examples: Examples, random_seed: int) -> Repair:
        """Return a repair that is trained on these inputs, and as sure as the bound demands."""
        repair = self._fit(examples, random_seed)
        if self.variant == "paper":
            return repair
        parts = []
        for test in _divided(examples, _INNER_FOLDS, random_seed):
            part = examples.where(test)
            inner = self._fit(examples.where(~test), random_seed)
            made = np.array([inner.made_of(one) for one in part.scores])
            lead = made.max(axis=1) - made[np.arange(len(made)), part.decided]
            parts.append((lead, made.argmax(axis=1) == part.wanted, part.triggering))
        lead, right, triggering = (np.concatenate(one) for one in zip(*parts, strict=True))
        return repair._replace(sure=_sure_enough(lead[~right & ~triggering], triggering, self))

    def _fit(self, examples: Examples, random_seed: int) -> Repair:
        size = examples.scores.shape[1]
        mean, std = np.zeros(size), np.ones(size)
        if self.variant == "standardised":
            mean = examples.scores.mean(axis=0)
            std = np.maximum(examples.scores.std(axis=0), _SMALLEST_STD)
        perceptron = scikit_learn("neural_network").MLPClassifier(
            (_HIDDEN,), max_iter=_ITERATIONS, random_state=random_seed
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that it may be trained for longer
            perceptron.fit((examples.scores - mean) / std, examples.wanted)
        return Repair(
            size,
            examples.kind,
            mean=mean,
            std=std,
            classes=perceptron.classes_.astype(np.int64),
            layers=_layers(perceptron),
        )


def _sure_enough(
    wrong: NDArray[np.float64], triggering: NDArray[np.bool_], training: _Training
) -> float:
    """Return how sure the perceptron must be for no more than the allowed share to be induced.

    `wrong` are its leads, over the model's own class, on the non-triggering inputs that it would
    make deviate.
    """
    allowed = int(training.max_inducing * float((~triggering).sum()))
    if len(wrong) <= allowed:
        return 0.0
    return min(1.0, float(np.nextafter(np.sort(wrong)[::-1][allowed], np.inf)))


def _layers(perceptron: Any) -> tuple[tuple[NDArray[np.float64], NDArray[np.float64]], ...]:
    """Return the weights; where there are two classes both get an output, as of a softmax."""
    layers = [
        (np.asarray(weights, np.float64), np.asarray(bias, np.float64))
        for weights, bias in zip(perceptron.coefs_, perceptron.intercepts_, strict=True)
    ]
    weights, bias = layers[-1]
    if len(perceptron.classes_) == 2:
        layers[-1] = np.hstack([np.zeros_like(weights), weights]), np.append(0.0, bias)
    return tuple(layers)

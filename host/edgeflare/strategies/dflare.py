"""DFLARE (Tian et al., TOSEM 2023): mutation search by Metropolis-Hastings, and variants.

Section 3, algorithms 1 and 2. `DflareOptions` says what each variant is; the rules of acceptance
and of selection say how the paper's text and its authors' code differ in each step.

Differences from both: the search is stopped by the scheduler's budgets, not by a clock of its own,
and every search has its own randomness: a seed reproduces a run. With a margin floor, a mutant on
which the original's margin is below it is no query: it has no fitness, is never accepted, and the
next one is drawn. Differences of the text variant from the authors' code:
an input replaces x_max only if its fitness is not lower; operators are drawn by algorithm 2; pixel
values are clipped, never wrapped; the six operators of table 3, with ranges that change the input
each time. Differences of the reference variant from the authors' code: nearest states are found
exactly, not approximately; a top-1 tie is no deviation; every seed input has randomness of its own
(the code begins each with the same numbers); the seed's own query is counted, apart from the
search's.

Audio (section 6.1): the pool is the paper's four operators, in every variant: the authors published
no code for it, and floats don't wrap around, so that `pool` and `overflow` make no difference
there. `dflare_fitness` says what is compared.
"""

import math
from collections.abc import Mapping, Sequence
from functools import lru_cache, partial
from typing import Any, ClassVar, Literal, Protocol, TypeAlias

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, model_validator

from edgeflare.strategies.dflare_fitness import Fitness, ObservedStates, top1_difference
from edgeflare.strategies.operators import Trail, check_operator_pool, mutation_path, spec_of
from edgeflare.types import Answer, Ask, Decision, Outcome, Output, Search, Seed, Strategy
from edgeflare_mutators import Kind, Mutation, Operator, default_pool, reference_pool, wrapping

SelectionName: TypeAlias = Literal["metropolis-hastings", "rank", "uniform"]


class Selection(Protocol):
    """Draws operators, and learns from those whose input was accepted."""

    def draw(self, rng: np.random.Generator) -> str:
        """Return the next operator."""
        ...

    def accepted(self, operator: str) -> None:
        """Learn that the input made with this operator, the last one drawn, replaced x_max."""
        ...


class UniformSelection:
    """Every operator is equally likely, always (DFLARE-R, section 5.3)."""

    def __init__(self, operators: Sequence[str]) -> None:
        self._operators = list(operators)

    def draw(self, rng: np.random.Generator) -> str:
        """Return the next operator."""
        return self._operators[rng.integers(len(self._operators))]

    def accepted(self, operator: str) -> None:
        """Do nothing."""


class OperatorRanking:
    """Orders operators by v(op) = N_i / (N_op + epsilon), the highest first.

    N_op is the number of times an operator was selected, N_i the number of times its input was
    accepted (algorithm 1 updates the ranking on H(x) >= H(x_max)).

    Differences: the paper does not say how equal ranking values are ordered; here, as in the
    authors' code, at random.
    """

    def __init__(self, operators: Sequence[str], epsilon: float) -> None:
        self._operators = list(operators)
        self._epsilon = epsilon
        self._selected = dict.fromkeys(self._operators, 0)
        self._improved = dict.fromkeys(self._operators, 0)
        self._values = {operator: self._value(operator) for operator in self._operators}

    def draw_uniform(self, rng: np.random.Generator) -> str:
        """Return an operator drawn uniformly."""
        return self._operators[rng.integers(len(self._operators))]

    def ordered(self, rng: np.random.Generator) -> list[str]:
        """Return all operators, the highest ranking value first."""
        shuffled = [self._operators[i] for i in rng.permutation(len(self._operators)).tolist()]
        return sorted(shuffled, key=self._values.__getitem__, reverse=True)

    def value(self, operator: str) -> float:
        """Return v(op)."""
        return self._values[operator]

    def select(self, operator: str) -> None:
        """Count a selection of this operator."""
        self._selected[operator] += 1
        self._values[operator] = self._value(operator)

    def improve(self, operator: str) -> None:
        """Count an accepted input of this operator."""
        self._improved[operator] += 1
        self._values[operator] = self._value(operator)

    def _value(self, operator: str) -> float:
        return self._improved[operator] / (self._selected[operator] + self._epsilon)


class MetropolisHastings:
    """Algorithm 2: an operator is proposed uniformly and accepted with (1 - p) ** (k_i - k_(i-1)).

    k is an operator's place in the ranking, k_(i-1) that of the operator drawn last, p one over
    their number. The first one is drawn uniformly (algorithm 1, line 1).
    """

    def __init__(self, operators: Sequence[str], epsilon: float) -> None:
        self.ranking = OperatorRanking(operators, epsilon)
        self._last: str | None = None

    def draw(self, rng: np.random.Generator) -> str:
        """Return the next operator."""
        if self._last is None:
            drawn = self.ranking.draw_uniform(rng)
        else:
            ordered = self.ranking.ordered(rng)
            drawn = _propose(ordered, ordered.index(self._last), rng)
        self.ranking.select(drawn)
        self._last = drawn
        return drawn

    def accepted(self, operator: str) -> None:
        """Raise the operator's ranking value (algorithm 1, ``op.update()``)."""
        self.ranking.improve(operator)


class RankSelection:
    """What the authors' code does: rank k, counted from 0, is accepted with (1 - p) ** (k + 1).

    Until an input has been accepted, operators are drawn uniformly. That code looks up the last
    operator up by comparing an object with names, which always fails and gives -1: so the choice
    does not depend on the last operator, and is no Markov chain.
    """

    def __init__(self, operators: Sequence[str], epsilon: float) -> None:
        self.ranking = OperatorRanking(operators, epsilon)
        self._has_accepted = False

    def draw(self, rng: np.random.Generator) -> str:
        """Return the next operator."""
        if self._has_accepted:
            drawn = _propose(self.ranking.ordered(rng), -1, rng)
        else:
            drawn = self.ranking.draw_uniform(rng)
        self.ranking.select(drawn)
        return drawn

    def accepted(self, operator: str) -> None:
        """Raise the operator's ranking value; from now on the ranking counts."""
        self.ranking.improve(operator)
        self._has_accepted = True


def make_selection(name: SelectionName, operators: Sequence[str], epsilon: float) -> Selection:
    """Return a new selection of this name over these operators."""
    if name == "uniform":
        return UniformSelection(operators)
    if name == "rank":
        return RankSelection(operators, epsilon)
    return MetropolisHastings(operators, epsilon)


@lru_cache(maxsize=1024)
def acceptance_probability(base: float, index: int, last_index: int) -> float:
    """Return (1 - p) ** (k_i - k_(i-1)), at least 1 for an operator ranked no lower than the last.

    `base` is 1 - p. With a single operator p is 1 and base is 0: it is always accepted.
    """
    return math.prod([base] * (index - last_index))


def _propose(ordered: Sequence[str], last_index: int, rng: np.random.Generator) -> str:
    if len(ordered) == 1:
        return ordered[0]
    base = 1.0 - 1.0 / len(ordered)
    while True:
        index = int(rng.integers(len(ordered)))
        if rng.random() < acceptance_probability(base, index, last_index):
            return ordered[index]


AcceptanceName: TypeAlias = Literal["not-lower", "change", "none"]

VARIANTS: dict[str, dict[str, Any]] = {
    "text": {
        "acceptance": "not-lower",
        "selection": "metropolis-hastings",
        "overflow": "clip",
        "pool": "table-3",
    },
    "reference": {
        "acceptance": "change",
        "selection": "rank",
        "overflow": "wrap",
        "pool": "reference",
    },
}
"""The options that each variant chooses."""


class DflareOptions(BaseModel):
    """DFLARE: mutants of mutants of the seed, until the two models decide differently.

    `variant` chooses acceptance, selection, overflow and pool together; each can be chosen alone as
    well. The rules of the authors' code are the default because of the suites ``default-variant``
    and ``mnist``: of those measured, only they were among the fewest queries on every pair and
    found a trigger from nearly every seed; the text's triggering inputs are nearer to the seed.
    Operators named by the user replace the pool, unchanged.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    variant: Literal["reference", "text"] = Field(
        default="reference",
        description="The rules of the authors' code, or those of the paper's text.",
    )
    acceptance: AcceptanceName = Field(
        default="change",
        description="When a mutant replaces its parent: if its fitness is not lower; if D, the "
        "difference of the two top-1 probabilities, changed by more than delta, up or down, or the "
        "state is new; or never.",
    )
    selection: SelectionName = Field(
        default="rank",
        description="How the next operator is chosen: Metropolis-Hastings (algorithm 2), by rank, "
        "or uniformly.",
    )
    overflow: Literal["clip", "wrap"] = Field(
        default="wrap",
        description="Values that the pool's noises move out of 0 to 255 are clipped or wrap around; "
        "images only.",
    )
    pool: Literal["table-3", "reference"] = Field(
        default="reference",
        description="The six operators of table 3, or the code's seven with its ranges; images "
        "only.",
    )
    state_tracing: bool = Field(
        default=True, description="Whether O, the new states, is part of the fitness."
    )
    delta: float = Field(
        default=1e-3, gt=0, description="Tolerance of the fitness function (section 3.3.2)."
    )
    threshold: float = Field(
        default=0.5,
        ge=0,
        description="Squared L2 distance within which a state counts as observed (the authors' "
        "code).",
    )
    epsilon: float = Field(
        default=1e-7,
        gt=0,
        description="Keeps the ranking value defined for an operator that was never selected "
        "(section 3.4).",
    )

    fixed: ClassVar[dict[str, Any]] = {}
    """The options that make it the strategy of its name."""

    @model_validator(mode="before")
    @classmethod
    def _from_variant(cls, data: Any) -> Any:
        chosen = VARIANTS.get(str(data.get("variant", "reference")), {})
        return {**chosen, **cls.fixed, **data}

    @model_validator(mode="after")
    def _keeps_fixed(self) -> "DflareOptions":
        for name, value in self.fixed.items():
            if getattr(self, name) != value:
                raise ValueError(
                    f"this strategy has {name}={str(value).lower()}; use dflare for another"
                )
        return self


class DflareDOptions(DflareOptions):
    """DFLARE-D (section 5.3): the fitness is D alone, no states are recorded.

    With the variant reference, the default, no mutant is ever accepted, as in the authors' code,
    whose figures table 6 has; with text the search climbs by D.
    """

    fixed: ClassVar[dict[str, Any]] = {"state_tracing": False}

    @model_validator(mode="before")
    @classmethod
    def _as_reference(cls, data: Any) -> Any:
        reference = data.get("variant", "reference") == "reference"
        return {"acceptance": "none", **data} if reference else data


class DflareROptions(DflareOptions):
    """DFLARE-R (section 5.3): operators are drawn uniformly."""

    fixed: ClassVar[dict[str, Any]] = {"selection": "uniform"}


def dflare(options: DflareOptions, operators: Mapping[str, Operator] | None) -> Strategy:
    """Return the strategy; with `operators` None the options choose the pool for the seed's kind.

    Before its first query a search raises UsageError where operators are for another kind than its
    seed, or their library is missing.
    """
    return partial(_search, options, operators)


def _default_operators(options: DflareOptions, kind: Kind) -> Mapping[str, Operator]:
    if kind != "image":
        return default_pool(kind)
    wrap = options.overflow == "wrap"
    if options.pool == "reference":
        return reference_pool(wrap=wrap)
    return wrapping(default_pool()) if wrap else default_pool()


def _search(
    options: DflareOptions,
    named: Mapping[str, Operator] | None,
    seed: Seed,
    rng: np.random.Generator,
) -> Search:
    spec = spec_of(seed)
    operators = check_operator_pool(
        _default_operators(options, spec.kind) if named is None else named, spec.kind
    )
    selection = make_selection(options.selection, tuple(operators), options.epsilon)
    acceptance = make_acceptance(
        options.acceptance,
        _both_outputs(Answer((seed.outputs,))),
        options.delta,
        options.threshold,
        states=options.state_tracing,
    )
    best = seed.sample
    best_trail: Trail = None
    while True:
        name = selection.draw(rng)
        params = operators[name].draw(rng, spec)
        sample = operators[name].apply(best, params)
        trail = (best_trail, Mutation(name, params))
        answer = yield Ask((sample,), of="both")
        if answer.outputs[0].decision is Decision.DEVIATION:
            return Outcome(sample, mutation_path(trail))
        if answer.outputs[0].deployed is None:
            continue
        if acceptance.accepts(*_both_outputs(answer)):
            best, best_trail = sample, trail
            selection.accepted(name)


class Acceptance(Protocol):
    """Which mutant is the parent of the next one, x_max of algorithm 1; the seed at first."""

    def accepts(self, original: Output, deployed: Output) -> bool:
        """Return whether the input with these answers becomes the new x_max."""
        ...


class AcceptNotLower:
    """The paper's rule: H(x) >= H(x_max) (algorithm 1); without state tracing H is D (5.3.1).

    Where the text leaves a choice: H(x_max) is computed when it is compared, and the state of
    x_max, the seed's too, has been observed by then: its O is 0. With an O of 1, a search from a
    seed on which both models are sure hardly ever leaves it.
    """

    def __init__(
        self, seed: tuple[Output, Output], delta: float, threshold: float, *, states: bool
    ) -> None:
        self._fitness = Fitness(delta, threshold if states else None)
        self._fitness.of_new(*seed)
        self._best = self._fitness.of_observed(*seed)

    def accepts(self, original: Output, deployed: Output) -> bool:
        """Return whether the input with these answers replaces x_max."""
        if self._fitness.of_new(original, deployed) < self._best:
            return False
        self._best = self._fitness.of_observed(original, deployed)
        return True


class AcceptChange:
    """The authors' code: D(x) differs from D(x_max) by more than delta, or the state is new.

    D(x_max) is 0 at first, whatever the seed's. Without state tracing only D counts.
    """

    def __init__(
        self, seed: tuple[Output, Output], delta: float, threshold: float, *, states: bool
    ) -> None:
        self._delta = delta
        self._states = ObservedStates(threshold) if states else None
        if self._states is not None:
            self._states.observe(*seed)
        self._best = 0.0

    def accepts(self, original: Output, deployed: Output) -> bool:
        """Return whether the input with these answers replaces x_max."""
        here = top1_difference(original, deployed)
        new = self._states is not None and self._states.observe(original, deployed)
        if not new and abs(here - self._best) <= self._delta:
            return False
        self._best = here
        return True


class AcceptNothing:
    """No mutant replaces the seed: what the authors' code does for DFLARE-D.

    It requires D(x) > D(x_max) and begins with a D(x_max) of 1 (the absolute value of -1), which no
    D exceeds: every mutant is one step from the seed.
    """

    def accepts(self, original: Output, deployed: Output) -> bool:
        """Return False."""
        del original, deployed
        return False


def make_acceptance(
    name: AcceptanceName,
    seed: tuple[Output, Output],
    delta: float,
    threshold: float,
    *,
    states: bool,
) -> Acceptance:
    """Return a new rule of this name that begins with the seed's answers."""
    if name == "none":
        return AcceptNothing()
    rule = AcceptChange if name == "change" else AcceptNotLower
    return rule(seed, delta, threshold, states=states)


def _both_outputs(answer: Answer) -> tuple[Output, Output]:
    outputs = answer.outputs[0]
    assert outputs.original is not None  # noqa: S101 - both models were asked
    assert outputs.deployed is not None  # noqa: S101
    return outputs.original, outputs.deployed

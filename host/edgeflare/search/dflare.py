"""DFLARE (Tian et al., TOSEM 2023): a mutation search guided by Metropolis-Hastings.

Section 3, algorithms 1 and 2, as the paper's text has them.

Differences from the text: the search is stopped by the scheduler's budgets, not by a clock of its
own. Where the text leaves a choice: H(x_max) in algorithm 1 is taken when it is compared, and the
state of x_max, the seed's too, has been observed by then: its O is 0. (With O kept at 1, seeds on
which both models are sure never leave the seed: 36 instead of 39 of 40 on the demo's models.)
Differences from the authors' code: an input replaces x_max only if its fitness is not lower (the code
takes any change of D above delta, up or down); operators are drawn by algorithm 2 (in the code the
look-up of the last operator fails); pixel values are clipped, never wrapped; the six operators of
table 3 (the code has a seventh, salt and pepper).
"""

from collections.abc import Mapping
from functools import partial

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from edgeflare.search.fitness import Fitness
from edgeflare.search.selection import OperatorSelection
from edgeflare.types import Answer, Ask, Decision, Outcome, Scores, Search, Seed, Strategy
from edgeflare_mutators import Mutation, Operator, SampleSpec


class DflareOptions(BaseModel):
    """The paper's constants.

    `delta`: tolerance of the fitness function (section 3.3.2). `threshold`: squared L2 distance
    within which a state counts as observed (the authors' code). `epsilon`: keeps the ranking value
    defined for an operator that was never selected (section 3.4).
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    delta: float = Field(default=1e-3, gt=0)
    threshold: float = Field(default=0.5, ge=0)
    epsilon: float = Field(default=1e-7, gt=0)


def dflare(options: DflareOptions, operators: Mapping[str, Operator]) -> Strategy:
    """Return the strategy with these constants over this pool of operators."""
    return partial(_search, options, operators)


def _search(
    options: DflareOptions, operators: Mapping[str, Operator], seed: Seed, rng: np.random.Generator
) -> Search:
    spec = SampleSpec.of(seed.sample)
    fitness = Fitness(options.delta, options.threshold)
    selection = OperatorSelection(tuple(operators), options.epsilon)
    best = seed.sample
    best_steps: tuple[Mutation, ...] = ()
    seed_scores = _scores(Answer((seed.outputs,)))
    fitness.of_new(*seed_scores)
    best_fitness = fitness.of_observed(*seed_scores)
    name = selection.first(rng)
    while True:
        params = operators[name].draw(rng, spec)
        sample = operators[name].apply(best, params)
        steps = (*best_steps, Mutation(name, params))
        answer = yield Ask((sample,), of="both")
        if answer.outputs[0].decision is Decision.DEVIATION:
            return Outcome(sample, tuple(step.to_json() for step in steps))
        scores = _scores(answer)
        if fitness.of_new(*scores) >= best_fitness:
            best, best_steps, best_fitness = sample, steps, fitness.of_observed(*scores)
            selection.reward(name)
        name = selection.next(name, rng)


def _scores(answer: Answer) -> tuple[Scores, Scores]:
    outputs = answer.outputs[0]
    assert outputs.original is not None  # noqa: S101 - both models were asked
    assert outputs.deployed is not None  # noqa: S101
    return outputs.original, outputs.deployed

"""DiffChaser (Xie et al., IJCAI 2019): the genetic baseline of DFLARE's evaluation.

Algorithm 1: an initial population of m inputs is made by mutating the seed input; in each generation the
fitness of all is calculated; the search ends where one of them is a disagreement; the best one stays, and
every other is replaced by a crossover of two selected ones, mutated at the rate r2.

What is known, from the paper's published algorithm and from DFLARE (sections 2.5, 4.4): the outline above; that
k-uncertainty is the difference between the highest and the k-highest probability of either model; that
there are three fitness functions, basic, k-uncertainty and targeted; that the mutation operators are those
of DFLARE's table 3. What is chosen here, since neither the paper nor its code was at hand:

- m = 1000. DFLARE's table 4 counts about 6,000 queries on every MNIST pair and about 2,000 on every
  CIFAR-10 pair, hardly depending on the compression: counts that come in whole, large generations.
- k = 2; of the two models the less certain one counts. Lower is fitter.
- basic: the largest absolute difference between the two models' probabilities; higher is fitter.
- targeted: the highest probability less that of class `target`; of the two models the smaller one.
- parents are selected by tournaments of two; crossover takes each pixel from either, evenly.
- a child is mutated with probability r2 = 0.5, by one operator drawn uniformly from the pool.

Differences: inputs are asked in batches, and the search ends with the batch in which a disagreement is found
(the paper looks at whole generations), which favours DiffChaser by up to one generation. The best input
keeps its scores and isn't asked again. A batch that the query budget can't pay is not asked. An input that
came from a crossover has no list of mutations. With a margin floor an input on which the original's margin
is below it isn't given to the device: its fitness is that of the original's answer alone (see `unfit`).

Memory: a search holds its population, m times the size of a sample: 0.8 MB for 28 x 28, 150 MB for 224 x 224 x 3;
choose a smaller `population` or a low concurrency there.
"""

from collections.abc import Generator, Mapping
from functools import partial
from typing import Literal, NamedTuple

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, model_validator

from edgeflare.errors import UsageError
from edgeflare.search.trail import Trail, steps_of
from edgeflare.types import (
    Answer,
    Ask,
    Decision,
    Outcome,
    Outputs,
    Sample,
    Scores,
    Search,
    Seed,
    Strategy,
)
from edgeflare_mutators import Mutation, Operator, SampleSpec, default_pool


class DiffchaserOptions(BaseModel):
    """The constants; see the module for their sources.

    `population`: inputs of a generation (m). `fitness`: what is bred for; "targeted" needs `target`, a
    class index. `k`: of k-uncertainty. `mutation_rate`: r2. `batch`: inputs asked at once.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    population: int = Field(default=1000, ge=2, le=100_000)
    fitness: Literal["k-uncertainty", "basic", "targeted"] = "k-uncertainty"
    k: int = Field(default=2, ge=2)
    target: int | None = Field(default=None, ge=0)
    mutation_rate: float = Field(default=0.5, ge=0, le=1)
    batch: int = Field(default=25, ge=1, le=1000)

    @model_validator(mode="after")
    def _has_target(self) -> "DiffchaserOptions":
        if (self.fitness == "targeted") != (self.target is not None):
            raise ValueError("fitness=targeted and a target class go together")
        return self


class _Individual(NamedTuple):
    """An input of the population; `trail` is None where a crossover made it."""

    sample: Sample
    trail: Trail = None
    outputs: Outputs | None = None


def diffchaser(options: DiffchaserOptions, operators: Mapping[str, Operator] | None) -> Strategy:
    """Return the strategy; `operators` None means the paper's table 3."""
    return partial(_search, options, dict(default_pool() if operators is None else operators))


def _search(
    options: DiffchaserOptions,
    operators: Mapping[str, Operator],
    seed: Seed,
    rng: np.random.Generator,
) -> Search:
    _check_target(options, seed)
    breeder = _Breeder(options, operators, seed, rng)
    population = [breeder.mutant(_Individual(seed.sample)) for _ in range(options.population)]
    while True:
        population, found = yield from _ask(population, options.batch)
        if found is not None:
            return Outcome(found.sample, steps_of(found.trail))
        unfitness = [unfit(options, one.outputs) for one in population if one.outputs is not None]
        best = int(np.argmin(unfitness))
        population = [
            population[place] if place == best else breeder.child(population, unfitness)
            for place in range(len(population))
        ]


def _ask(
    population: list[_Individual], batch: int
) -> Generator[Ask, Answer, tuple[list[_Individual], _Individual | None]]:
    """Ask about those who have no outputs yet; return all with theirs, and the first disagreement."""
    known = list(population)
    places = [place for place, one in enumerate(known) if one.outputs is None]
    for begin in range(0, len(places), batch):
        asked = places[begin : begin + batch]
        answer = yield Ask(tuple(known[place].sample for place in asked), of="both")
        for place, outputs in zip(asked, answer.outputs, strict=True):
            known[place] = known[place]._replace(outputs=outputs)
            if outputs.decision is Decision.DEVIATION:
                return known, known[place]
    return known, None


def _check_target(options: DiffchaserOptions, seed: Seed) -> None:
    classes = 0 if seed.outputs.original is None else len(seed.outputs.original)
    if options.target is not None and options.target >= classes:
        raise UsageError(
            f"strategy diffchaser: there is no target class {options.target}: the models have "
            f"{classes} classes, counted from 0"
        )


class _Breeder:
    """Makes inputs out of others."""

    def __init__(
        self,
        options: DiffchaserOptions,
        operators: Mapping[str, Operator],
        seed: Seed,
        rng: np.random.Generator,
    ) -> None:
        self._rate = options.mutation_rate
        self._operators = tuple(operators.items())
        self._spec = SampleSpec.of(seed.sample)
        self._rng = rng

    def mutant(self, parent: _Individual) -> _Individual:
        """Return the parent after one operator of the pool, drawn uniformly."""
        name, operator = self._operators[self._rng.integers(len(self._operators))]
        params = operator.draw(self._rng, self._spec)
        trail = (parent.trail, Mutation(name, params))
        return _Individual(operator.apply(parent.sample, params), trail)

    def child(self, population: list[_Individual], unfitness: list[float]) -> _Individual:
        """Return a crossover of two selected inputs, mutated at the rate."""
        first, second = (population[self._select(unfitness)].sample for _ in range(2))
        mask = self._rng.integers(0, 2, (*first.shape[:2], 1), dtype=np.uint8).astype(bool)
        child = _Individual(np.where(mask, first, second))
        if self._rng.random() < self._rate:
            child = self.mutant(child)
        return child._replace(trail=None)

    def _select(self, unfitness: list[float]) -> int:
        one, other = (int(place) for place in self._rng.integers(len(unfitness), size=2))
        return one if unfitness[one] <= unfitness[other] else other


def unfit(options: DiffchaserOptions, outputs: Outputs) -> float:
    """Return how unfit an input with these outputs is: the fittest has the lowest number.

    Where a margin floor kept it from the device, the original's answer alone counts: an uncertain input,
    or one near the target, is what is bred for all the same. Of a difference (basic) it has none to show.
    """
    known = [scores for scores in (outputs.original, outputs.deployed) if scores is not None]
    if options.fitness == "basic":
        return -float(np.ptp(known, axis=0).max())
    if options.target is not None:
        return min(_above_target(scores, options.target) for scores in known)
    return min(_uncertainty(scores, options.k) for scores in known)


def _uncertainty(scores: Scores, k: int) -> float:
    ordered = np.sort(scores)[::-1]
    return float(ordered[0] - ordered[min(k, len(ordered)) - 1])


def _above_target(scores: Scores, target: int) -> float:
    return float(scores.max() - scores[target])

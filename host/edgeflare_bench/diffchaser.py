"""DiffChaser (Xie et al., IJCAI 2019): the genetic baseline of DFLARE's evaluation.

Algorithm 1: an initial population of m inputs is made by mutating the seed input; in each
generation the fitness of all is calculated; the search ends where one of them is a disagreement;
the best one stays, and every other is replaced by a crossover of two selected ones, mutated at the
rate r2.

Known from the paper's published algorithm and from DFLARE (sections 2.5, 4.4): the outline above;
that k-uncertainty is the difference between the highest and the k-highest probability of either
model; that there are three fitness functions, basic, k-uncertainty and targeted; that the mutation
operators are those of DFLARE's table 3. Chosen here, since neither the paper nor its code was
available. So this is an approximation of the tool, and a stronger one: on the paper's three pairs it
takes 2.3 to 20 times fewer queries than DFLARE's table 4 has for DiffChaser (docs/research/dflare.md).
A comparison with it is none with DiffChaser.

- m = 1000. DFLARE's table 4 counts about 6,000 queries on every MNIST pair and about 2,000 on every
  CIFAR-10 pair, almost independent of the compression: multiples of a large generation.
- k = 2; the less certain of the two models counts. Lower is fitter.
- basic: the largest absolute difference between the two models' probabilities; higher is fitter.
- targeted: the highest probability less that of class `target`; the smaller of the two models
  counts.
- parents are selected by tournaments of two; crossover takes each pixel from either, evenly. Of
  audio it takes each segment of 20 ms from either: sample by sample the mix of two clips is noise,
  and words are longer than 20 ms. The child is as long as the first parent; where the second has
  ended it has the first one's segments.
- a child is mutated with probability r2 = 0.5, by one operator drawn uniformly from the pool.

Differences: inputs are asked about in batches, and the search ends with the batch in which a
disagreement is found (the paper evaluates whole generations), which favours DiffChaser by up to one
generation. The best input keeps its scores and is not asked about again. A batch larger than the
rest of the query budget is not asked about. An input from a crossover has no list of mutations.
With a margin floor, an input on which the original's margin is below it is not given to the device:
its fitness is that of the original's answer alone (see `unfitness`).

Speech (DFLARE, section 6.1, which says only that what is compared was adjusted): k-uncertainty is
the smallest margin of a word, that is its least certain token's probability less that of the best
other token (k = 2, as a transcript knows no more); basic is the largest difference of a word's
probability, as in `top1_difference`; a transcript has no classes, so that there is no targeted
fitness. One without words is the least fit.

Memory: a search holds its population, m times the size of a sample: 0.8 MB for 28 x 28, 150 MB for
224 x 224 x 3, 640 MB for 10 s of audio at 16 kHz, less the inputs that were not asked about yet.
Choose a smaller `population` or a low concurrency there. A `batch` travels in one request, of at
most 256 MiB: 139 clips of 30 s at 16 kHz.
"""

from collections.abc import Generator, Iterator, Mapping
from functools import partial
from typing import Literal, NamedTuple

import numpy as np
from pydantic import BaseModel, Field, model_validator

from edgeflare.answers import common_kind, kind_of_answer
from edgeflare.answers.metrics import class_scores
from edgeflare.errors import UsageError
from edgeflare.strategies.boundary import Answered
from edgeflare.strategies.operators import Trail, check_operator_pool, mutation_path, spec_of
from edgeflare.types import (
    Answer,
    Ask,
    Decision,
    Outcome,
    Output,
    Outputs,
    Sample,
    Search,
    Seed,
    Strategy,
)
from edgeflare_mutators import Kind, Mutation, Operator, SampleSpec, default_pool

_SEGMENTS_A_SECOND = 50
_MARGIN_WITHOUT_WORDS = 1.0


class DiffchaserOptions(BaseModel, extra="forbid", frozen=True):
    """DiffChaser (Xie et al., IJCAI 2019): a genetic search, the baseline of DFLARE's evaluation.

    An approximation, since neither its settings nor its code were available: it takes 2 to 20 times
    fewer queries than published. ``edgeflare_bench/diffchaser.py`` says what is known and what was chosen.
    """

    population: int = Field(
        default=1000, ge=2, le=100_000, description="Inputs of a generation (m)."
    )
    fitness: Literal["k-uncertainty", "basic", "targeted"] = Field(
        default="k-uncertainty",
        description="What is optimised: the uncertainty of the less certain model, the largest "
        "difference of a probability, or how near the class target is.",
    )
    k: int = Field(
        default=2, ge=2, description="Uncertainty is the highest less the k-highest probability."
    )
    target: int | None = Field(
        default=None, ge=0, description="The class index of the fitness targeted, which needs it."
    )
    mutation_rate: float = Field(
        default=0.5, ge=0, le=1, description="The probability that a child is mutated (r2)."
    )
    batch: int = Field(
        default=25, ge=1, le=1000, description="Inputs that both models are asked about at once."
    )

    @model_validator(mode="after")
    def _has_target(self) -> "DiffchaserOptions":
        if (self.fitness == "targeted") != (self.target is not None):
            raise ValueError("fitness=targeted and a target class go together")
        return self

    def __call__(self, seed: Seed, rng: np.random.Generator) -> Search:
        """Search from a seed with DFLARE's operators (table 3 for images, section 6.1 for audio)."""
        return _search(self, None, seed, rng)

    def with_operators(self, operators: Mapping[str, Operator]) -> Strategy:
        """Return the strategy with these operators in their place.

        Before its first query a search raises UsageError where they are for another kind than its
        seed, or their library is missing.
        """
        return partial(_search, self, operators)

    def check_search(
        self, name: str, operators: Mapping[str, Operator] | None, kind: Kind, answered: Answered
    ) -> None:
        """Raise UsageError where a library of the operators is missing."""
        del name, answered
        if operators is None:
            check_operator_pool(default_pool(kind), kind)


class _Individual(NamedTuple):
    """An input of the population; `trail` is None where a crossover made it."""

    sample: Sample
    trail: Trail = None
    outputs: Outputs | None = None


def _search(
    options: DiffchaserOptions,
    named: Mapping[str, Operator] | None,
    seed: Seed,
    rng: np.random.Generator,
) -> Search:
    _check_fitness(options, seed)
    spec = spec_of(seed)
    operators = check_operator_pool(default_pool(spec.kind) if named is None else named, spec.kind)
    breeder = _Breeder(options, operators, spec, rng)
    generation: Iterator[_Individual] = (
        breeder.mutant(_Individual(seed.sample)) for _ in range(options.population)
    )
    while True:
        population, found = yield from _ask(generation, options.batch)
        if found is not None:
            return Outcome(found.sample, mutation_path(found.trail))
        generation = breeder.children(population, options)


def _ask(
    generation: Iterator[_Individual], batch: int
) -> Generator[Ask, Answer, tuple[list[_Individual], _Individual | None]]:
    """Ask about inputs without outputs; return all with outputs, and the first disagreement.

    An input is made only for the batch in which it is asked about: a search that ends early has not
    made the others.
    """
    known: list[_Individual] = []
    for some in _batches(generation, batch):
        asked = [place for place, one in enumerate(some) if one.outputs is None]
        if asked:
            answer = yield Ask(tuple(some[place].sample for place in asked), of="both")
            for place, outputs in zip(asked, answer.outputs, strict=True):
                some[place] = some[place]._replace(outputs=outputs)
                if outputs.decision is Decision.DEVIATION:
                    return known + some, some[place]
        known += some
    return known, None


def _batches(generation: Iterator[_Individual], batch: int) -> Iterator[list[_Individual]]:
    """Yield all in their order, in lists with `batch` inputs without outputs in each."""
    some: list[_Individual] = []
    unasked = 0
    for one in generation:
        some.append(one)
        unasked += one.outputs is None
        if unasked == batch:
            yield some
            some, unasked = [], 0
    if some:
        yield some


def _check_fitness(options: DiffchaserOptions, seed: Seed) -> None:
    answer, kind = seed.outputs.original, seed.kind
    classes = 0 if answer is None else kind.class_count(answer)
    if answer is not None and not classes:
        if options.target is not None:
            raise UsageError(
                "strategy diffchaser: the targeted fitness is of class scores, which these answers "
                "don't have; state fitness=k-uncertainty or fitness=basic"
            )
        if kind.is_measured and options.fitness != "basic":
            raise UsageError(
                f"strategy diffchaser: the fitness {options.fitness} is that of a decision, which "
                f"{kind.noun} don't have; state fitness=basic"
            )
        if options.fitness == "k-uncertainty" and options.k != 2:
            raise UsageError(
                f"strategy diffchaser: k is 2 without class scores, not {options.k}: an answer is as "
                "uncertain as its decision is near to another one"
            )
        return
    if options.target is not None and options.target >= classes:
        raise UsageError(
            f"strategy diffchaser: there is no target class {options.target}: the models have "
            f"{classes} classes, counted from 0"
        )


class _Breeder:
    """Makes new inputs from a population by mutation and crossover."""

    def __init__(
        self,
        options: DiffchaserOptions,
        operators: Mapping[str, Operator],
        spec: SampleSpec,
        rng: np.random.Generator,
    ) -> None:
        self._rate = options.mutation_rate
        self._operators = tuple(operators.items())
        self._spec = spec
        self._rng = rng

    def mutant(self, parent: _Individual) -> _Individual:
        """Return the parent after one operator of the pool, drawn uniformly."""
        name, operator = self._operators[self._rng.integers(len(self._operators))]
        params = operator.draw(self._rng, self._spec)
        trail = (parent.trail, Mutation(name, params))
        return _Individual(operator.apply(parent.sample, params), trail)

    def children(
        self, population: list[_Individual], options: DiffchaserOptions
    ) -> Iterator[_Individual]:
        """Yield the next generation lazily: the best input unchanged, and children."""
        scores = [unfitness(options, one.outputs) for one in population if one.outputs is not None]
        best = int(np.argmin(scores))
        for place in range(len(population)):
            yield population[place] if place == best else self.child(population, scores)

    def child(self, population: list[_Individual], scores: list[float]) -> _Individual:
        """Return a crossover of two selected inputs, mutated at the rate."""
        first, second = (population[self._select(scores)].sample for _ in range(2))
        child = _Individual(self._crossed(first, second))
        if self._rng.random() < self._rate:
            child = self.mutant(child)
        return child._replace(trail=None)

    def _crossed(self, first: Sample, second: Sample) -> Sample:
        if self._spec.kind == "image":
            mask = self._rng.integers(0, 2, (*first.shape[:2], 1), dtype=np.uint8).astype(bool)
            mixed: Sample = np.where(mask, first, second)
            return mixed
        child: Sample = first.copy()
        both = min(first.size, second.size)
        length = max(1, (self._spec.rate or first.size) // _SEGMENTS_A_SECOND)
        drawn = self._rng.integers(0, 2, -(-both // length), dtype=np.uint8).astype(bool)
        from_second = np.repeat(drawn, length)[:both]
        child[:both][from_second] = second[:both][from_second]
        return child

    def _select(self, scores: list[float]) -> int:
        one, other = (int(place) for place in self._rng.integers(len(scores), size=2))
        return one if scores[one] <= scores[other] else other


def unfitness(options: DiffchaserOptions, outputs: Outputs) -> float:
    """Return the unfitness of an input with these outputs; the fittest has the lowest.

    Where a margin floor kept it from the device, the original's answer alone counts: whether it is
    uncertain, or near the target. The difference (basic) is 0 then.
    """
    known = [answer for answer in (outputs.original, outputs.deployed) if answer is not None]
    if options.fitness == "basic":
        return -_difference(known)
    return min(_certainty(options, answer) for answer in known)


def _difference(known: list[Output]) -> float:
    if len(known) < 2:
        return 0.0
    kind = common_kind(*known)
    if kind.class_count(known[0]):
        return float(np.ptp(known, axis=0).max())
    return kind.top_difference(*known)


def _certainty(options: DiffchaserOptions, answer: Output) -> float:
    if options.target is not None:
        scores = class_scores(answer)
        return float(scores.max() - scores[options.target])
    uncertainty = kind_of_answer(answer).uncertainty(answer, options.k)
    return _MARGIN_WITHOUT_WORDS if uncertainty is None else uncertainty

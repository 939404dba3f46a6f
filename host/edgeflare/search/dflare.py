"""DFLARE (Tian et al., TOSEM 2023): a mutation search guided by Metropolis-Hastings, and its variants.

Section 3, algorithms 1 and 2. `DflareOptions` says what each variant is; `acceptance` and `selection`
how the paper's text and its authors' code differ in each step.

Differences from both: the search is stopped by the scheduler's budgets, not by a clock of its own, and
randomness is the chain's own: a seed reproduces a run on the same kind of CPU. With a margin floor a mutant on which the original's
margin is below it is no query: it has no fitness, is never accepted, and the next one is drawn.
Differences of the text variant from the authors' code: an input replaces x_max only if its fitness is
not lower; operators are drawn by algorithm 2; pixel values are clipped, never wrapped; the six operators
of table 3, with ranges that change the input each time.
Differences of the reference variant from the authors' code: nearest states are found exactly, not
approximately; a top-1 tie is no deviation; every seed input has randomness of its own (the code begins
each with the same numbers); the seed's own query is counted, apart from the search's.

Audio (section 6.1): the pool is the paper's four operators, in every variant: the authors published no code for it, and
floats don't wrap around, so that `pool` and `overflow` make no difference there. What is compared is told in `fitness`.
"""

from collections.abc import Mapping
from functools import partial
from typing import Any, ClassVar, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, model_validator

from edgeflare.search.acceptance import AcceptanceName, acceptance_of
from edgeflare.search.pools import spec_of, usable
from edgeflare.search.selection import SelectionName, selection_of
from edgeflare.search.trail import Trail, steps_of
from edgeflare.types import Answer, Ask, Decision, Outcome, Output, Search, Seed, Strategy
from edgeflare_mutators import (
    Kind,
    Mutation,
    Operator,
    default_pool,
    reference_pool,
    wrapping,
)

_VARIANTS: dict[str, dict[str, Any]] = {
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


class DflareOptions(BaseModel):
    """What the search does in each step, and the paper's constants.

    `variant` chooses the next four together: "reference" (the default) as the authors' code does, "text" as
    the paper says. The code's rules are the default by the figures of the suites ``default-variant`` and
    ``mnist``: of those measured only they were among the fewest queries on every pair and found on nearly
    every seed; the text's triggering inputs are nearer to the seed. Each can be chosen alone as well.
    `acceptance`: "not-lower" (H(x) >= H(x_max)) or "change" (D
    changed by more than delta, up or down, or a new state), or "none" (the seed stays the parent). `selection`: "metropolis-hastings"
    (algorithm 2), "rank" or "uniform". `pool`: the six operators of table 3, or the code's seven with its
    ranges. `overflow`: whether values that the pool's noises drive out of [0, 255] are clipped or wrap
    around; both are for images. Operators named by the user replace the pool, as they are. `state_tracing`: whether O counts in the fitness.

    `delta`: tolerance of the fitness function (section 3.3.2). `threshold`: squared L2 distance
    within which a state counts as observed (the authors' code). `epsilon`: keeps the ranking value
    defined for an operator that was never selected (section 3.4).
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    variant: Literal["reference", "text"] = "reference"
    acceptance: AcceptanceName = "change"
    selection: SelectionName = "rank"
    overflow: Literal["clip", "wrap"] = "wrap"
    pool: Literal["table-3", "reference"] = "reference"
    state_tracing: bool = True
    delta: float = Field(default=1e-3, gt=0)
    threshold: float = Field(default=0.5, ge=0)
    epsilon: float = Field(default=1e-7, gt=0)

    fixed: ClassVar[dict[str, Any]] = {}
    """What makes the strategy the one that its name says."""

    @model_validator(mode="before")
    @classmethod
    def _of_variant(cls, data: Any) -> Any:
        chosen = _VARIANTS.get(str(data.get("variant", "reference")), {})
        return {**chosen, **cls.fixed, **data}

    @model_validator(mode="after")
    def _still_itself(self) -> "DflareOptions":
        for name, value in self.fixed.items():
            if getattr(self, name) != value:
                raise ValueError(
                    f"this strategy has {name}={str(value).lower()}; use dflare for another"
                )
        return self


class DflareDOptions(DflareOptions):
    """DFLARE-D (section 5.3): the fitness is D alone, no state is traced.

    With variant "reference", the default, no mutant is ever accepted, as in the authors' code (see
    `acceptance.Nothing`), whose figures table 6 has; with "text" the search climbs by D.
    """

    fixed: ClassVar[dict[str, Any]] = {"state_tracing": False}

    @model_validator(mode="before")
    @classmethod
    def _as_the_code(cls, data: Any) -> Any:
        reference = data.get("variant", "reference") == "reference"
        return {"acceptance": "none", **data} if reference else data


class DflareROptions(DflareOptions):
    """DFLARE-R (section 5.3): operators are drawn uniformly."""

    fixed: ClassVar[dict[str, Any]] = {"selection": "uniform"}


def dflare(options: DflareOptions, operators: Mapping[str, Operator] | None) -> Strategy:
    """Return the strategy; `operators` None means the pool that the options choose for the seed's kind.

    A search raises UsageError before it asks where operators are of another kind than its seed, or need a library
    that is missing.
    """
    return partial(_search, options, operators)


def _pool_of(options: DflareOptions, kind: Kind) -> Mapping[str, Operator]:
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
    operators = usable(_pool_of(options, spec.kind) if named is None else named, spec.kind)
    selection = selection_of(options.selection, tuple(operators), options.epsilon)
    acceptance = acceptance_of(
        options.acceptance,
        _both(Answer((seed.outputs,))),
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
            return Outcome(sample, steps_of(trail))
        if answer.outputs[0].deployed is None:
            continue
        if acceptance.accepts(*_both(answer)):
            best, best_trail = sample, trail
            selection.accepted(name)


def _both(answer: Answer) -> tuple[Output, Output]:
    outputs = answer.outputs[0]
    assert outputs.original is not None  # noqa: S101 - both models were asked
    assert outputs.deployed is not None  # noqa: S101
    return outputs.original, outputs.deployed

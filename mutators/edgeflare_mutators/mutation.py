"""A mutation that was made, as a record that replays exactly."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from edgeflare_mutators.base import Params
from edgeflare_mutators.errors import RecordError
from edgeflare_mutators.registry import get
from edgeflare_mutators.sample import Sample, SampleSpec


@dataclass(frozen=True)
class Mutation:
    """One application of an operator: its name and the parameters that were drawn."""

    operator: str
    params: Params

    def to_json(self) -> dict[str, Any]:
        """Return a JSON object, from which `from_json` makes an equal mutation."""
        return {"operator": self.operator, "params": dict(self.params)}

    @classmethod
    def from_json(cls, data: Any) -> "Mutation":
        """Return what `to_json` wrote. Raises RecordError for anything else."""
        match data:
            case {"operator": str(operator), "params": dict(params), **rest} if not rest:
                return cls(operator, dict(params))
            case _:
                raise RecordError(
                    "a recorded mutation is a JSON object of 'operator', a name, and 'params', an "
                    f"object, not {data!r:.80}"
                )


def mutate(sample: Sample, mutation: Mutation) -> Sample:
    """Return the mutated sample, a new array; the same sample and mutation give the same bits.

    Raises UnknownOperatorError or MutatorLoadError where the operator is not to be had, and what
    `Operator.apply` raises.
    """
    return get(mutation.operator).apply(sample, mutation.params)


def replay(sample: Sample, mutations: Iterable[Mutation]) -> Sample:
    """Return the sample, a new array, after all mutations in their order. Raises as `mutate`."""
    SampleSpec.of(sample)
    mutated: Sample = np.array(sample)
    for mutation in mutations:
        mutated = mutate(mutated, mutation)
    return mutated

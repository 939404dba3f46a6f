"""Inputs that a pursuit may ask about: drawn anew, or made from inputs that deviated."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple, TypeAlias, get_args

import numpy as np

from edgeflare.survey.family import SEVERITIES, Family
from edgeflare.types import Sample

CHAIN = "chain"
"""Name of the family of inputs that several families made, one after the other."""


class Derivation(NamedTuple):
    """How an input was made: the place of its seed among the seeds, family, severity and params.

    Of the family "chain", `params` are {"steps": [{"family", "severity", "params"}, ...]}.
    """

    seed: int
    family: str
    severity: int
    params: dict[str, Any]


class Chain:
    """Inputs that several families make, each of what the one before it made.

    `params` are {"steps": [{"family", "severity", "params"}, ...]}. Raises ValueError for a
    family that isn't among `families`.
    """

    def __init__(self, families: Mapping[str, Family]) -> None:
        self._families = families

    def apply(
        self, seed: Sample, params: Mapping[str, Any], partners: Sequence[Sample] = ()
    ) -> Sample:
        """Return the sample after the last step."""
        sample = seed
        for step in params["steps"]:
            sample = self._family(step).apply(sample, step["params"], partners)
        return sample

    def words(self, params: Mapping[str, Any]) -> str:
        """Return the words of all steps, in order."""
        return " + ".join(self._family(step).words(step["params"]) for step in params["steps"])

    def _family(self, step: Mapping[str, Any]) -> Family:
        family = self._families.get(step["family"])
        if family is None:
            raise ValueError(f"there is no family {step['family']!r}")
        return family


class Inputs(NamedTuple):
    """What inputs are made from: the seeds' samples, the families by name, the partners."""

    seeds: Sequence[Sample]
    families: Mapping[str, Family]
    partners: Sequence[Sample]

    def sample(self, made: Derivation) -> Sample:
        """Make an input again."""
        steps = {"steps": steps_of(made)}
        return Chain(self.families).apply(self.seeds[made.seed], steps, self.partners)


def steps_of(made: Derivation) -> list[dict[str, Any]]:
    """Return the families that made an input, in order, each with its severity and params."""
    if made.family == CHAIN:
        return list(made.params["steps"])
    return [{"family": made.family, "severity": made.severity, "params": made.params}]


Kind: TypeAlias = Literal["drawn", "moved", "redrawn", "extended", "varied"]
KINDS: tuple[Kind, ...] = get_args(Kind)
"""Ways to make an input: any family at any seed; a deviation's changes at another seed; a family of
it with other parameters; a deviation and another family after it; the same, mildly and at the same
seed."""

_LONGEST = 3


def propose(
    rng: np.random.Generator,
    inputs: Inputs,
    bases: Sequence[Derivation],
    count: int,
    kinds: Sequence[Kind] = KINDS,
) -> list[tuple[Derivation, bool]]:
    """Return `count` inputs of these kinds in turn, and of each whether it is close to a base.

    Bases that come first are taken more often. Without a base all are drawn anew.
    """
    return [
        _proposed(rng, inputs, bases, kinds[number % len(kinds)] if bases else "drawn")
        for number in range(count)
    ]


def _proposed(
    rng: np.random.Generator, inputs: Inputs, bases: Sequence[Derivation], kind: Kind
) -> tuple[Derivation, bool]:
    seed = int(rng.integers(len(inputs.seeds)))
    if kind == "drawn":
        return _drawn(rng, inputs, seed, _any_family(rng, inputs)), False
    base = bases[min(int(rng.integers(len(bases))), int(rng.integers(len(bases))))]
    if kind == "moved":
        return base._replace(seed=seed), True
    steps = steps_of(base)
    if kind == "redrawn":
        name = steps[int(rng.integers(len(steps)))]["family"]
        return _drawn(rng, inputs, seed, name), True
    at = base.seed if kind == "varied" or rng.integers(2) else seed
    most = 1 if kind == "varied" else SEVERITIES[-1]
    added = _drawn(rng, inputs, at, _any_family(rng, inputs), most)
    return chain(at, [*steps[-(_LONGEST - 1) :], *steps_of(added)]), True


def chain(seed: int, steps: Sequence[dict[str, Any]]) -> Derivation:
    """Return an input that these steps make of a seed; its severity is the largest of theirs."""
    severity = max(step["severity"] for step in steps)
    return Derivation(seed, CHAIN, severity, {"steps": [dict(step) for step in steps]})


def _any_family(rng: np.random.Generator, inputs: Inputs) -> str:
    names = sorted(inputs.families)
    return names[int(rng.integers(len(names)))]


def _drawn(
    rng: np.random.Generator, inputs: Inputs, seed: int, name: str, most: int = SEVERITIES[-1]
) -> Derivation:
    severity = 1 + int(rng.integers(most))
    return Derivation(
        seed, name, severity, inputs.families[name].draw(rng, inputs.seeds[seed], severity)
    )

"""DeepXplore (Pei et al., SOSP 2017, algorithm 1): images on which several models differ.

Gradient ascent on a joint objective (see `JointObjective`): one model is to leave the class that
all give to the seed, the others are to stay, and one unit of each that no earlier image has
activated is to become active. The models are the original and further ONNX models of the same task
on the host, such as a float copy of the deployed one. Images on which they differ are asked about
on the device.

Differences:

- The models differ on the host; what counts here is that the device decides otherwise than the
  original. So an image on which the host's models differ is given to both, and the search goes on
  where they agree. The authors end with the first difference.
- Each model in turn is the one that is to deviate, in a random order, until the device does; the
  authors draw one for each seed.
- Which units are covered is counted for each seed by itself: the authors count over all, so that a
  seed's result depends on those before it. Of the units that no image of this search activated one
  is drawn at random for each model, at each step.
- Images are clipped and rounded at each step, see `constraints`, which has further ones.
- The weight of the model that is to deviate is 2; the authors take 1, with which the scores of two
  models that are nearly the same cancel each other out, and no step leads to the boundary. The
  other settings are those that they use for MNIST: a weight of units of 0.1, a step of 10. Units
  changed neither what was found nor what was covered (docs/research/gradient-search.md).
"""

from collections.abc import Generator, Mapping
from functools import partial
from pathlib import Path
from typing import Annotated

import numpy as np
from numpy.typing import NDArray
from pydantic import BeforeValidator, Field

from edgeflare.metrics import class_scores
from edgeflare.models import AbsolutePath
from edgeflare.strategies.constraints import make_constraint, moved
from edgeflare.strategies.gradient import ConstrainedOptions, refuse_operators
from edgeflare.types import (
    Answer,
    Ask,
    Decision,
    JointGradient,
    JointObjective,
    Outcome,
    Sample,
    Search,
    Seed,
    Strategy,
)
from edgeflare_mutators import Operator


def _one_or_more(value: object) -> object:
    return [value] if isinstance(value, str | Path) else value


class DeepxploreOptions(ConstrainedOptions):
    """DeepXplore (Pei et al., SOSP 2017): gradient ascent until models on the host differ.

    What they differ on is asked about on the device. Images only, and a float ONNX original. Needs
    PyTorch (the extra torch); results depend on the processor. `gradient` needs no further model
    and found more.
    """

    others: Annotated[tuple[AbsolutePath, ...], BeforeValidator(_one_or_more)] = Field(
        min_length=1,
        max_length=8,
        description="ONNX files of other models of the same task, or of a float copy of the deployed "
        "model: they take what the original takes.",
    )
    weight: float = Field(
        default=2.0,
        ge=0,
        allow_inf_nan=False,
        description="Weight of the model that is to deviate against the others (lambda 1).",
    )
    unit_weight: float = Field(
        default=0.1,
        ge=0,
        allow_inf_nan=False,
        description="Weight of the units that no image has activated (lambda 2); 0: none are read.",
    )
    threshold: float = Field(
        default=0.5,
        ge=0,
        lt=1,
        allow_inf_nan=False,
        description="A unit is active above this share of its layer's range (t).",
    )


def deepxplore(options: DeepxploreOptions, operators: Mapping[str, Operator] | None) -> Strategy:
    """Return the strategy. Raises UsageError for operators, which it doesn't use."""
    refuse_operators("deepxplore", operators)
    return partial(_search, options)


def _search(options: DeepxploreOptions, seed: Seed, rng: np.random.Generator) -> Search:
    ascent = _Ascent(options, seed, rng)
    for attempt, deviating in enumerate(rng.permutation(1 + len(options.others)).tolist()):
        found = yield from ascent.run(int(deviating), attempt)
        if found is not None:
            return Outcome(found)
    return Outcome(None, reason=ascent.reason())


class _Ascent:
    """Walks from one seed, and what they have covered and asked of the device."""

    def __init__(self, options: DeepxploreOptions, seed: Seed, rng: np.random.Generator) -> None:
        original = seed.outputs.original
        assert original is not None  # noqa: S101 - seeds are answered before a search
        self._options = options
        self._seed = seed
        self._rng = rng
        self._label = int(np.argmax(class_scores(original)))
        self._others = tuple(map(str, options.others))
        self._covered: tuple[NDArray[np.bool_], ...] = ()
        self._asked = 0

    def run(self, deviating: int, attempt: int) -> Generator[Ask, Answer, Sample | None]:
        """Raise the objective step by step; return the first image on which the device deviates."""
        options, sample = self._options, self._seed.sample
        constraint = make_constraint(
            options.constraint, options.step, options.size, attempt, self._rng
        )
        for step in range(options.steps + 1):
            found = yield from self._gradient(sample, deviating)
            if step and len(set(found.labels)) > 1:
                self._asked += 1
                answer = yield Ask((sample,))
                if answer.outputs[0].decision is Decision.DEVIATION:
                    return sample
            after = moved(sample, constraint.step(sample, found.gradient))
            if np.array_equal(after, sample):
                return None
            sample = after
        return None

    def _gradient(self, sample: Sample, deviating: int) -> Generator[Ask, Answer, JointGradient]:
        options = self._options
        units = tuple(map(self._uncovered, range(1 + len(self._others))))
        objective = JointObjective(
            self._others,
            self._label,
            deviating,
            options.weight,
            options.unit_weight,
            options.threshold,
            units,
        )
        answer = yield Ask((sample,), of="original", want="gradient", joint=objective)
        (found,) = answer.joint
        if found.active:
            before = self._covered or tuple(map(np.zeros_like, found.active))
            self._covered = tuple(
                one | other for one, other in zip(before, found.active, strict=True)
            )
        return found._replace(gradient=np.nan_to_num(found.gradient, posinf=0.0, neginf=0.0))

    def _uncovered(self, place: int) -> int | None:
        """Return a unit of a model that no image has activated, drawn at random."""
        if not self._covered:
            return None
        left = np.flatnonzero(~self._covered[place])
        return int(self._rng.choice(left)) if len(left) else None

    def reason(self) -> str:
        """Return why nothing was found."""
        options = self._options
        if not self._asked:
            return (
                f"the models on the host never differed within {options.steps} steps of {options.step:g} "
                f"levels by {options.constraint}; nothing was asked of the device"
            )
        return (
            f"the device decides as the original where the models on the host differ by {options.constraint}; another "
            "constraint, or strategy gradient, may find a deviation"
        )

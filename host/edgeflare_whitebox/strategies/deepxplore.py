"""DeepXplore (Pei et al., SOSP 2017, algorithm 1): images on which several models differ.

Gradient ascent on a joint objective (see `JointObjective`): one model is to leave the class that
all give to the seed, the others are to stay, and one unit of each that no earlier image has
activated is to become active. The models are the original and further ONNX models of the same task
on the host, such as a float copy of the deployed one. Images on which they differ are asked about
on the device.

The paper's settings for MNIST and ImageNet, which the authors' code leaves to its caller: a weight of
1 of the model that is to deviate (lambda 1), 0.1 of units (lambda 2), a step of 10, a threshold of 0.
The gradient is divided by its root mean square, and in that code a step is in units of the models'
input: 0 to 1 for MNIST, so that 10 is 2,550 levels of 255; levels for ImageNet.

Differences:

- The models differ on the host; what counts here is that the device decides otherwise than the
  original. So an image on which the host's models differ is given to both, and the search goes on
  where they agree. The authors end with the first difference.
- A seed on which the models differ already is left out: its campaign has asked the device about it.
- Each model in turn is the one that is to deviate, in a random order, until the device does; the
  paper draws one for each seed, and in the authors' code it is the first unless stated.
- Which units are covered is counted for each seed by itself: the authors count over all, so that a
  seed's result depends on those before it. Of the units that no image of this search activated one
  is drawn at random for each model, at each step; the authors' code draws once for each seed.
- A step is 10 levels of 255, as theirs is for ImageNet. One of 2,550 levels makes a value black or
  white wherever its gradient is a tenth of the root mean square.
- A unit is active above 0.5 of its layer's range (the authors: 0, which nearly each unit is above).
- A score is the logarithm of a probability, up to what all classes have in common, see
  `JointObjective`; the authors take the output before the softmax for MNIST, and for ImageNet's
  models the probability.
- Images are clipped and rounded at each step, see `constraints`, which has further ones.
- The weight of the model that is to deviate is 2; with the authors' 1 the scores of two models that
  are nearly the same cancel each other out, and no step leads to the boundary. What units change
  was measured (docs/research/gradient-search.md): nothing that can be told.
"""

from collections.abc import Generator
from pathlib import Path
from typing import Annotated, ClassVar

import numpy as np
from numpy.typing import NDArray
from pydantic import BeforeValidator, Field

from edgeflare.answers.metrics import class_scores
from edgeflare.models import AbsolutePath
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
)
from edgeflare_whitebox.strategies.constraints import (
    ConstrainedOptions,
    check_class_scores,
    make_constraint,
    moved,
)


def _one_or_more(value: object) -> object:
    if not value:
        raise ValueError("name the ONNX file of a further model or more, such as others=copy.onnx")
    return [value] if isinstance(value, str | Path) else value


class DeepxploreOptions(ConstrainedOptions):
    """DeepXplore (Pei et al., SOSP 2017): gradient ascent until models on the host differ.

    What they differ on is asked about on the device. Images only, and a float ONNX original. Needs
    PyTorch (the extra torch); results depend on the processor. `gradient` needs no further model
    and found more.
    """

    strategy: ClassVar[str] = "deepxplore"
    further_models: ClassVar[str] = "others"

    others: Annotated[tuple[AbsolutePath, ...], BeforeValidator(_one_or_more)] = Field(
        default=(),
        validate_default=True,
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

    def __call__(self, seed: Seed, rng: np.random.Generator) -> Search:
        """Search from a seed."""
        return _search(self, seed, rng)


def _search(options: DeepxploreOptions, seed: Seed, rng: np.random.Generator) -> Search:
    check_class_scores("deepxplore", seed)
    ascent = _Ascent(options, seed, rng)
    for attempt, deviating in enumerate(rng.permutation(1 + len(options.others)).tolist()):
        found = yield from ascent.run(int(deviating), anywhere=attempt > 0)
        if found is not None:
            return Outcome(found)
        if ascent.differs_on_seed:
            break
    return Outcome(None, reason=ascent.reason())


class _Ascent:
    """Walks from one seed, and what they have covered and asked of the device.

    `differs_on_seed`: the models differ on the seed already, so that there is no class to leave.
    """

    def __init__(self, options: DeepxploreOptions, seed: Seed, rng: np.random.Generator) -> None:
        original = seed.outputs.original
        assert original is not None  # noqa: S101 - seeds are answered before a search
        self._options = options
        self._seed = seed
        self._rng = rng
        self._label = int(np.argmax(class_scores(original)))
        self._others = tuple(map(str, options.others))
        self._covered: tuple[NDArray[np.bool_], ...] = ()
        self._tried: set[bytes] = set()
        self._answered = 0
        self.differs_on_seed = False

    def run(self, deviating: int, *, anywhere: bool) -> Generator[Ask, Answer, Sample | None]:
        """Raise the objective step by step; return the first image on which the device deviates.

        Both models are asked where the original's scores are not finite. `anywhere` as of
        `make_constraint`.
        """
        options, sample = self._options, self._seed.sample
        constraint = make_constraint(
            options.constraint, options.step, options.size, self._rng, anywhere=anywhere
        )
        for step in range(options.steps + 1):
            found = yield from self._gradient(sample, deviating)
            differ = len(set(found.labels)) > 1
            if differ and not step:
                self.differs_on_seed = True
                return None
            if (differ or found.labels[0] is None) and sample.tobytes() not in self._tried:
                self._tried.add(sample.tobytes())
                answer = yield Ask((sample,))
                self._answered += answer.outputs[0].deployed is not None
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
        by = f"by {options.constraint} in {options.steps} steps of {options.step:g} levels"
        if self.differs_on_seed:
            return (
                "the models on the host differ on the seed already; nothing was asked of the device"
            )
        if not self._tried:
            return f"the models on the host never differed {by} at most; nothing was asked of the device"
        if not self._answered:
            return (
                f"no input on which the models on the host differed {by} has the wanted margin; nothing "
                "was asked of the device"
            )
        return (
            f"the device decides as the original where the models on the host differed {by}; another "
            "constraint, or strategy gradient, may find a deviation"
        )

"""DeepXplore (Pei et al., SOSP 2017, algorithm 1): images on which several models differ.

Gradient ascent on a joint objective (see `JointObjective`): one model is to leave the class that
all give to the seed, the others are to stay. The models are the original and further ONNX models of the same task
on the host, such as a float copy of the deployed one. Images on which they differ are asked about
on the device.

The paper's settings for MNIST and ImageNet, which the authors' code leaves to its caller: a weight of
1 of the model that is to deviate (lambda 1) and a step of 10.
The gradient is divided by its root mean square, and in that code a step is in units of the models'
input: 0 to 1 for MNIST, so that 10 is 2,550 levels of 255; levels for ImageNet.

Differences:

- The models differ on the host; what counts here is that the device decides otherwise than the
  original. So an image on which the host's models differ is given to both, and the search goes on
  where they agree. The authors end with the first difference.
- A seed on which the models differ already is left out: its campaign has asked the device about it.
- Each model in turn is the one that is to deviate, in a random order, until the device does; the
  paper draws one for each seed, and in the authors' code it is the first unless stated.
- Their objective has a term for units that no image has activated yet (lambda 2). It is left out:
  with it no more was found, and no more units were activated (docs/research/gradient-search.md).
- A step is 10 levels of 255, as theirs is for ImageNet. One of 2,550 levels makes a value black or
  white wherever its gradient is a tenth of the root mean square.
- A score is the logarithm of a probability, up to what all classes have in common, see
  `JointObjective`; the authors take the output before the softmax for MNIST, and for ImageNet's
  models the probability.
- Images are clipped and rounded at each step, see `constraints`, which has further ones.
- The weight of the model that is to deviate is 2; with the authors' 1 the scores of two models that
  are nearly the same cancel each other out, and no step leads to the boundary.
"""

from pathlib import Path
from typing import Annotated, ClassVar

import numpy as np
from pydantic import BeforeValidator, Field

from edgeflare.answers.metrics import class_scores
from edgeflare.models import AbsolutePath
from edgeflare.types import Ask, Decision, JointObjective, Outcome, Search, Seed
from edgeflare_whitebox.strategies.constraints import (
    ConstrainedOptions,
    check_class_scores,
    make_constraint,
    moved,
)
from edgeflare_whitebox.words.inspections import DIFFER_ON_SEED, not_by_models


def _one_or_more(value: object) -> object:
    if not value:
        raise ValueError("name the ONNX file of a further model or more, such as others=copy.onnx")
    return [value] if isinstance(value, str | Path) else value


class DeepxploreOptions(ConstrainedOptions):
    """DeepXplore (Pei et al., SOSP 2017): gradient ascent until models on the host differ.

    What they differ on is asked about on the device. Images only, and a float ONNX original. Needs
    PyTorch (the extra torch); results depend on the processor. `gradient` needs no further model
    and found more. `unit_weight` and `threshold`, which it had once, are accepted and not read.
    """

    strategy: ClassVar[str] = "deepxplore"
    further_models: ClassVar[str] = "others"
    dropped_options: ClassVar[tuple[str, ...]] = ("unit_weight", "threshold")

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

    def __call__(self, seed: Seed, rng: np.random.Generator) -> Search:
        """Search from a seed."""
        return _search(self, seed, rng)


def _search(options: DeepxploreOptions, seed: Seed, rng: np.random.Generator) -> Search:
    check_class_scores("deepxplore", seed)
    original = seed.outputs.original
    assert original is not None  # noqa: S101 - seeds are answered before a search
    label = int(np.argmax(class_scores(original)))
    others = tuple(map(str, options.others))
    tried: set[bytes] = set()
    answered = 0
    for attempt, deviating in enumerate(rng.permutation(1 + len(others)).tolist()):
        objective = JointObjective(others, label, int(deviating), options.weight)
        constraint = make_constraint(
            options.constraint, options.step, options.size, rng, anywhere=attempt > 0
        )
        sample = seed.sample
        for step in range(options.steps + 1):
            answer = yield Ask((sample,), of="original", want="gradient", joint=objective)
            (found,) = answer.joint
            differ = len(set(found.labels)) > 1
            if differ and not step:
                return Outcome(None, reason=DIFFER_ON_SEED)
            # both are asked, too, where the original's scores are not finite
            if (differ or found.labels[0] is None) and sample.tobytes() not in tried:
                tried.add(sample.tobytes())
                (outputs,) = (yield Ask((sample,))).outputs
                answered += outputs.deployed is not None
                if outputs.decision is Decision.DEVIATION:
                    return Outcome(sample)
            slopes = np.nan_to_num(found.gradient, posinf=0.0, neginf=0.0)
            before, sample = sample, moved(sample, constraint(sample, slopes))
            if np.array_equal(before, sample):
                break
    return Outcome(None, reason=not_by_models(options, tried=len(tried), answered=answered))

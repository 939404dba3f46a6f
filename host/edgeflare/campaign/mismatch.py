"""Does another preprocessing of the original explain the deployed model's answers better? Of images only.

Labels alone miss much: a network without large biases gives the same labels on pixels that were never
scaled, and a swapped colour order changes only every fourth label of a CIFAR network. Both models
see the same seeds, though, and the original can be run again under the usual mistakes: if one of
them brings it far closer to the deployed model, one of the two was told the wrong preprocessing.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from edgeflare.campaign.statistics import wilson
from edgeflare.models import InputSpec
from edgeflare.types import Decision, Sample, Scores, Seed

SEEDS_TRIED = 32
_SHARE_CLOSER = 0.6
_DISTANCE_RATIO = 0.5


class Explanation(NamedTuple):
    """A preprocessing of the original that explains the deployed model's answers better.

    `closer` of `tried` seeds; `distance` and `stated_distance` are medians of the total variation
    distance between both models' probabilities, 0 to 1; of their labels where the deployed model tells
    no more.
    """

    change: str
    closer: int
    tried: int
    distance: float
    stated_distance: float

    def sentence(self) -> str:
        """Say it to the user."""
        return (
            f"With {self.change}, the original comes closer to the deployed model on {self.closer} "
            f"of {self.tried} seeds (median distance {self.distance:.2g} instead of "
            f"{self.stated_distance:.2g}), so one of the two is told a wrong preprocessing."
        )


def alternatives(original: InputSpec, deployed: InputSpec) -> dict[str, InputSpec]:
    """Return the original's spec with each of the usual mistakes corrected, by a description of the correction."""
    numerator, denominator = original.scale
    changed = {
        "the other colour order": original._replace(
            color={"RGB": "BGR", "BGR": "RGB"}.get(original.color, original.color)
        ),
        "the deployed model's scale, mean and std": original._replace(
            scale=deployed.scale, mean=deployed.mean, std=deployed.std
        ),
        "pixel values 255 times larger": original._replace(scale=(numerator * 255, denominator)),
        "pixel values divided by 255": original._replace(scale=(numerator, denominator * 255)),
    }
    return {change: spec for change, spec in changed.items() if spec != original}


def better_explanation(
    seeds: Sequence[Seed],
    specs: tuple[InputSpec, InputSpec],
    scores: Callable[[Sample, InputSpec], Scores],
    *,
    labels_only: bool = False,
) -> Explanation | None:
    """Return the best alternative preprocessing where it is clearly better than the stated one.

    `specs` are those of original and deployed model; `scores` runs the original under a spec.
    Clearly better: closer on so many of the first 32 seeds that the lower 95 % bound of their share
    is above 60 %, at no more than half the median distance. `labels_only`: the deployed model tells a
    label and no scores, so labels are compared; a change that only makes the original surer is not
    closer then.
    """
    tried = [seed for seed in seeds[:SEEDS_TRIED] if _finite(seed)]
    if not tried:
        return None
    seen = _label_of if labels_only else _all_of
    stated = _distances(
        tried, [seen(np.asarray(seed.outputs.original, np.float64)) for seed in tried]
    )
    found = []
    for change, spec in alternatives(*specs).items():
        other = _distances(tried, [seen(scores(seed.sample, spec)) for seed in tried])
        closer = int(np.count_nonzero(other < stated))
        medians = float(np.median(other)), float(np.median(stated))
        if (
            wilson(closer, len(tried))[0] > _SHARE_CLOSER
            and medians[0] <= _DISTANCE_RATIO * medians[1]
        ):
            found.append(Explanation(change, closer, len(tried), *medians))
    return min(found, key=lambda one: one.distance, default=None)


def _all_of(scores: Scores) -> Scores:
    return scores


def _label_of(scores: Scores) -> Scores:
    return np.asarray(np.arange(len(scores)) == scores.argmax(), np.float64)


def _finite(seed: Seed) -> bool:
    return seed.outputs.decision is not Decision.NONFINITE


def _distances(seeds: Sequence[Seed], originals: Sequence[Scores]) -> NDArray[np.float64]:
    deployed = np.array([seed.outputs.deployed for seed in seeds], np.float64)
    return np.asarray(np.abs(np.array(originals) - deployed).sum(axis=1) / 2)

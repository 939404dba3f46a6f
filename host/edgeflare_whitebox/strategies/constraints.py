"""How a step along a gradient may change an image: DeepXplore's constraints.

Pei et al., SOSP 2017, section 6.2: the light of the whole image, a single rectangle that covers a
part of it, and small dark patches.

Differences: by the authors' code a step of ``light`` is the step's length times the mean gradient,
for ImageNet 10,000 times that and for driving 500 times, which makes all of an image white or black
at once; here its sign at the first step counts, so that a step is `step` levels and all go the same
way. They clip images once, at the end, and never round them; here each step ends at an image that a
file can hold (see `moved`): of images that are rounded at the end many no longer make a difference.
Their rectangle of ``occlusion`` lies where the caller says, in the upper left corner by default; here
where the gradient at the first step is steepest, or at random. Their patch of ``blackout`` is drawn
once a step, and may fall where all is black already or where it doesn't raise the objective; here
up to a hundred are drawn.
"""

from collections.abc import Callable, Mapping
from functools import partial
from typing import ClassVar, Literal, TypeAlias, get_args

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from edgeflare._internal.exact import Floats
from edgeflare.errors import UsageError
from edgeflare.strategies.boundary import Answered
from edgeflare.strategies.boundary.points import IMAGE_SPACE
from edgeflare.types import Sample, Seed, Strategy
from edgeflare_mutators import Kind, Operator

ConstraintName: TypeAlias = Literal["light", "occlusion", "blackout"]
CONSTRAINTS: tuple[str, ...] = get_args(ConstraintName)

_OCCLUSION_SHARE = 0.35
_PATCH_SHARE = 0.2
"""Sides of the rectangle and of a patch, as shares of the image's shorter side (the authors: 10 and
6 of 28 pixels)."""
_DRAWS = 100
_TINY = 1e-5


class ConstrainedOptions(BaseModel):
    """What walks along a gradient have in common."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    probe: ClassVar[str] = "gradient"
    needs_labels: ClassVar[bool] = True
    strategy: ClassVar[str]

    constraint: ConstraintName = Field(
        default="occlusion",
        description="How an image may change: all values alike (light), one square (occlusion), or "
        "dark patches (blackout).",
    )
    step: float = Field(
        default=10.0,
        ge=1,
        le=255,
        allow_inf_nan=False,
        description="Levels of a step, of 255; a patch of blackout becomes black at once.",
    )
    steps: int = Field(default=50, ge=1, le=10_000, description="The largest number of steps.")
    size: int | None = Field(
        default=None,
        ge=1,
        le=65_535,
        description="Side of the square of occlusion, or of a patch of blackout, in pixels; not "
        "stated: 35 and 20 % of the image's shorter side.",
    )

    def with_operators(self, operators: Mapping[str, Operator]) -> Strategy:
        """Raise UsageError: a walk uses no operators."""
        del operators
        raise UsageError(
            f"strategy {self.strategy} uses no mutation operators; leave --operator out"
        )

    def check_search(
        self, name: str, operators: Mapping[str, Operator] | None, kind: Kind, answered: Answered
    ) -> None:
        """Raise UsageError for seeds or answers of which no gradient is computed."""
        del operators
        if kind == "audio":
            raise UsageError(f"strategy {name} changes images alone; state boundary for audio")
        if answered == "transcript":
            raise UsageError(
                f"strategy {name} needs scores of classes, and these models return text; state "
                "boundary"
            )


Constraint: TypeAlias = Callable[[Sample, Floats], Floats]
"""Returns the change of an image, in levels, that follows the gradient there; of one walk.

Both are float64 [H, W, C]. 0 everywhere where no change that is allowed follows it."""


def make_constraint(
    name: ConstraintName,
    step: float,
    size: int | None,
    rng: np.random.Generator,
    *,
    anywhere: bool = False,
    against: bool = False,
) -> Constraint:
    """Return the constraint for a walk.

    `size`: the side of the rectangle or of a patch in pixels; None: in proportion to the image. The
    rectangle lies where the gradient at the first step is steepest, `anywhere` at random. `against`:
    light goes the other way than the gradient at the first step.
    """
    if name == "light":
        return _light(step, against=against)
    if name == "occlusion":
        return _occlusion(step, size, rng if anywhere else None)
    return partial(_blackout, size, rng)


def check_class_scores(strategy: str, seed: Seed) -> None:
    """Raise UsageError where the models answer with something else than scores of classes."""
    seed.kind.check_classes(
        UsageError(
            f"strategy {strategy} follows the gradient of a class score, which these models' answers "
            "don't have; state --strategy boundary"
        )
    )


def moved(sample: Sample, change: Floats) -> Sample:
    """Return an image after a change in levels, rounded and clipped to uint8."""
    return IMAGE_SPACE.sample(IMAGE_SPACE.values(sample) + change)


def _light(step: float, *, against: bool) -> Constraint:
    """All values become brighter, or darker, by the same number of levels at each step."""
    levels: float | None = None

    def change(sample: Sample, gradient: Floats) -> Floats:
        nonlocal levels
        del sample
        if levels is None:
            levels = step * float(np.sign(gradient.mean())) * (-1.0 if against else 1.0)
        return np.full(gradient.shape, levels)

    return change


def _occlusion(step: float, size: int | None, rng: np.random.Generator | None) -> Constraint:
    """One rectangle, whose place stays the same, follows the gradient over its root mean square."""
    place: tuple[slice, slice] | None = None

    def change(sample: Sample, gradient: Floats) -> Floats:
        nonlocal place
        del sample
        if place is None:
            side = _side(size, _OCCLUSION_SHARE, gradient.shape)
            place = _steepest(gradient, side) if rng is None else _drawn(gradient, side, rng)
        found = np.zeros(gradient.shape)
        size_of_all = float(np.sqrt(np.square(gradient).mean())) + _TINY  # as the authors' code
        found[place] = step * (gradient[place] / size_of_all)
        return found

    return change


def _blackout(
    size: int | None, rng: np.random.Generator, sample: Sample, gradient: Floats
) -> Floats:
    """A square patch at a random place becomes black, where that raises the objective."""
    side = _side(size, _PATCH_SHARE, gradient.shape)
    change = np.zeros(gradient.shape)
    for _ in range(_DRAWS):
        place = _drawn(gradient, side, rng)
        if gradient[place].mean() < 0 and sample[place].any():
            change[place] = -IMAGE_SPACE.high
            break
    return change


def _side(size: int | None, share: float, shape: tuple[int, ...]) -> int:
    shorter = min(shape[:2])
    if size is not None and size > shorter:
        raise UsageError(
            f"option size is {size} pixels, and a seed has {shape[0]} x {shape[1]}: state a smaller one"
        )
    return max(1, round(share * shorter)) if size is None else size


def _drawn(gradient: Floats, side: int, rng: np.random.Generator) -> tuple[slice, slice]:
    """Return a square at a random place."""
    row, column = (int(rng.integers(length - side + 1)) for length in gradient.shape[:2])
    return slice(row, row + side), slice(column, column + side)


def _steepest(gradient: Floats, side: int) -> tuple[slice, slice]:
    """Return the square in which the gradient's squares have the largest sum."""
    sums = np.pad(np.square(gradient).sum(axis=2).cumsum(axis=0).cumsum(axis=1), ((1, 0), (1, 0)))
    inside = sums[side:, side:] - sums[:-side, side:] - sums[side:, :-side] + sums[:-side, :-side]
    row, column = (int(start) for start in np.unravel_index(inside.argmax(), inside.shape))
    return slice(row, row + side), slice(column, column + side)

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
from typing import ClassVar, Literal, Protocol, TypeAlias, get_args

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from edgeflare._internal.exact import Floats
from edgeflare.answers.metrics import is_scores
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


class Constraint(Protocol):
    """Makes steps of one walk."""

    def step(self, sample: Sample, gradient: Floats) -> Floats:
        """Return the change of an image, in levels, that follows the gradient there.

        Both are float64 [H, W, C]. 0 everywhere where no change that is allowed follows it.
        """
        ...


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
    makers: Mapping[str, Callable[[], Constraint]] = {
        "light": lambda: _Light(step, against=against),
        "occlusion": lambda: _Occlusion(step, size, rng if anywhere else None),
        "blackout": lambda: _Blackout(size, rng),
    }
    return makers[name]()


def check_class_scores(strategy: str, seed: Seed) -> None:
    """Raise UsageError where the models answer with something else than scores of classes."""
    if not is_scores(seed.outputs.original):
        raise UsageError(
            f"strategy {strategy} follows the gradient of a class score, which these models' answers "
            "don't have; state --strategy boundary"
        )


def moved(sample: Sample, change: Floats) -> Sample:
    """Return an image after a change in levels, rounded and clipped to uint8."""
    return IMAGE_SPACE.sample(IMAGE_SPACE.values(sample) + change)


def _side(size: int | None, share: float, shape: tuple[int, ...]) -> int:
    shorter = min(shape[:2])
    if size is not None and size > shorter:
        raise UsageError(
            f"option size is {size} pixels, and a seed has {shape[0]} x {shape[1]}: state a smaller one"
        )
    return max(1, round(share * shorter)) if size is None else size


class _Light:
    """All values become brighter, or darker, by the same number of levels at each step."""

    def __init__(self, step: float, *, against: bool) -> None:
        self._step = step
        self._against = against
        self._direction: float | None = None

    def step(self, sample: Sample, gradient: Floats) -> Floats:
        del sample
        if self._direction is None:
            self._direction = float(np.sign(gradient.mean())) * (-1.0 if self._against else 1.0)
        return np.full(gradient.shape, self._step * self._direction)


class _Occlusion:
    """One rectangle, whose place stays the same, follows the gradient."""

    def __init__(self, step: float, size: int | None, rng: np.random.Generator | None) -> None:
        self._step = step
        self._size = size
        self._rng = rng
        self._place: tuple[slice, slice] | None = None

    def step(self, sample: Sample, gradient: Floats) -> Floats:
        del sample
        if self._place is None:
            self._place = self._placed(gradient)
        change = np.zeros(gradient.shape)
        change[self._place] = self._step * _normalised(gradient)[self._place]
        return change

    def _placed(self, gradient: Floats) -> tuple[slice, slice]:
        side = _side(self._size, _OCCLUSION_SHARE, gradient.shape)
        rows, columns = (length - side + 1 for length in gradient.shape[:2])
        if self._rng is not None:
            row, column = int(self._rng.integers(rows)), int(self._rng.integers(columns))
        else:
            steepness = np.zeros((rows + side, columns + side))
            steepness[1:, 1:] = np.square(gradient).sum(axis=2).cumsum(axis=0).cumsum(axis=1)
            inside = (
                steepness[side:, side:]
                - steepness[:rows, side:]
                - steepness[side:, :columns]
                + steepness[:rows, :columns]
            )
            row, column = (int(one) for one in np.unravel_index(inside.argmax(), inside.shape))
        return slice(row, row + side), slice(column, column + side)


class _Blackout:
    """A square patch at a random place becomes black, where that raises the objective."""

    def __init__(self, size: int | None, rng: np.random.Generator) -> None:
        self._size = size
        self._rng = rng

    def step(self, sample: Sample, gradient: Floats) -> Floats:
        side = _side(self._size, _PATCH_SHARE, gradient.shape)
        change = np.zeros(gradient.shape)
        for _ in range(_DRAWS):
            row, column = (
                int(self._rng.integers(length - side + 1)) for length in gradient.shape[:2]
            )
            place = slice(row, row + side), slice(column, column + side)
            if gradient[place].mean() < 0 and sample[place].any():
                change[place] = -IMAGE_SPACE.high
                break
        return change


def _normalised(gradient: Floats) -> Floats:
    """Return a gradient over its root mean square, as the authors' code has it."""
    return np.asarray(gradient / (float(np.sqrt(np.square(gradient).mean())) + _TINY))

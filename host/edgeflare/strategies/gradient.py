"""Descent on the original's own margin, within one of DeepXplore's constraints.

Each step follows the gradient of the log-odds of the seed's label over its best rival, as
`boundary` has it with ``gradients=true``, and ends at an image that a file can hold. Where the
original's decision changes between two steps the device is asked beside the boundary, as by the
boundary search, at images between those two, after a part of the step.

Source: none; the constraints are DeepXplore's, whose objective needs several models (see
`deepxplore`). Figures: docs/research/gradient-search.md.
"""

from collections.abc import Generator, Mapping
from functools import partial
from typing import Any

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from edgeflare._internal.exact import Floats
from edgeflare.errors import UsageError
from edgeflare.strategies.boundary.first_trigger import FirstTriggerSearch
from edgeflare.strategies.boundary.options import BoundaryOptions, Bounds
from edgeflare.strategies.boundary.paths import Bracket
from edgeflare.strategies.boundary.points import OriginalProbe, Path, PathPoint
from edgeflare.strategies.boundary.probing import DeviceProbe, SearchContext
from edgeflare.strategies.boundary.schedule import is_hopeless
from edgeflare.strategies.constraints import Constraint, ConstraintName, make_constraint, moved
from edgeflare.types import Answer, Ask, Outcome, Sample, Search, Seed, Strategy
from edgeflare_mutators import Operator


class ConstrainedOptions(BaseModel):
    """What walks along a gradient have in common."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    constraint: ConstraintName = Field(
        default="light",
        description="How an image may change: all values alike, one square, or dark patches.",
    )
    step: float = Field(
        default=10.0,
        gt=0,
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


class GradientOptions(ConstrainedOptions):
    """Follows the gradient of the original's own margin to its decision boundary.

    An image changes as one of DeepXplore's constraints allows, and the device is asked beside the
    boundary, as by `boundary`. Images only, and a float ONNX original. Needs PyTorch (the extra
    torch); results depend on the processor.
    """

    constraint: ConstraintName = Field(
        default="occlusion",
        description="How an image may change: all values alike (light), one square (occlusion), or "
        "dark patches (blackout).",
    )
    attempts: int = Field(
        default=10,
        ge=1,
        le=1000,
        description="Walks from a seed: with another square or other patches each. light has two.",
    )


class WalkPath:
    """A walk from the seed: the image after each step at a whole `t`, parts of a step between."""

    exact = True
    start: PathPoint | None = None

    def __init__(self, seed: Sample) -> None:
        self.max_t = 0.0
        self._ends = [seed]
        self._changes: list[Floats] = []

    def step(self, change: Floats) -> Sample:
        """Go on by a change in levels; return the image that this leads to."""
        self._changes.append(change)
        self._ends.append(moved(self._ends[-1], change))
        self.max_t += 1.0
        return self._ends[-1]

    def at(self, t: float) -> Sample:
        """Return the image at `t`."""
        before = min(int(t), len(self._changes))
        if t == before:
            return self._ends[before]
        return moved(self._ends[before], (t - before) * self._changes[before])

    def mutations(self, t: float) -> tuple[dict[str, Any], ...]:
        """Return (): a walk is no mutation."""
        del t
        return ()

    def perturbed(self, rng: np.random.Generator, scale: float) -> Path:
        """Return itself: other walks are made from the seed."""
        del rng, scale
        return self


def gradient(options: GradientOptions, operators: Mapping[str, Operator] | None) -> Strategy:
    """Return the strategy. Raises UsageError for operators, which it doesn't use."""
    refuse_operators("gradient", operators)
    return partial(_search, options)


def refuse_operators(name: str, operators: Mapping[str, Operator] | None) -> None:
    """Raise UsageError for operators."""
    if operators is not None:
        raise UsageError(f"strategy {name} uses no mutation operators; leave --operator out")


def _search(options: GradientOptions, seed: Seed, rng: np.random.Generator) -> Search:
    original = OriginalProbe(seed, has_gradients=True)
    device = DeviceProbe(original, None)
    context = SearchContext(
        original, device, Bounds(BoundaryOptions(), seed.sample), rng, seed.margin_floor
    )
    first = FirstTriggerSearch(context, coarse=False)
    crossings = 0
    for attempt in range(2 if options.constraint == "light" else options.attempts):
        constraint = make_constraint(options.constraint, options.step, options.size, attempt, rng)
        bracket = yield from _walk(original, constraint, options.steps)
        if bracket is None:
            continue
        crossings += 1
        yield from first.search(bracket)
        if original.best is not None:
            return original.best
        if is_hopeless(device.observations, seed.margin_floor):
            break
    return Outcome(None, reason=_reason(options, crossings, device))


def _walk(
    probe: OriginalProbe, constraint: Constraint, steps: int
) -> Generator[Ask, Answer, Bracket | None]:
    """Step until the original leaves the seed's label; None where it doesn't."""
    path = WalkPath(probe.seed.sample)
    here = probe.seed_point(path)
    for _ in range(steps):
        (slopes,) = yield from probe.gradients(here.sample, (probe.label, here.rival))
        sample = path.step(constraint.step(here.sample, -slopes))
        if np.array_equal(sample, here.sample):
            return None
        (point,) = yield from probe.ask((path,), (path.max_t,), (sample,))
        if point.log_odds < 0:
            return Bracket(here, point)
        here = point
    return None


def _reason(options: GradientOptions, crossings: int, device: DeviceProbe) -> str:
    """Return why nothing was found."""
    if not crossings:
        return (
            f"the original keeps its decision within {options.steps} steps of {options.step:g} levels by "
            f"{options.constraint}; nothing was asked of the device"
        )
    asked = "" if device.queries else ": no input there had the wanted margin"
    return (
        f"the device decides as the original beside its decision boundary by {options.constraint}"
        f"{asked}; another constraint, or strategy boundary, may find a deviation"
    )

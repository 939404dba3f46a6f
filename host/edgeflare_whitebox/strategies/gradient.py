"""Descent on the original's own margin, within one of DeepXplore's constraints.

Each step follows the gradient of the log-odds of the seed's label over its best rival, as
`boundary` has it with ``gradients=true``, and ends at an image that a file can hold. Where the
original's decision changes between two steps the device is asked beside the boundary, as by the
boundary search, at images between those two, after a part of the step.

Source: none; the constraints are DeepXplore's, whose objective needs several models (see
`deepxplore`). Figures: docs/research/gradient-search.md.
"""

from collections.abc import Generator
from typing import Any, ClassVar

import numpy as np
from pydantic import Field

from edgeflare._internal.exact import Floats
from edgeflare.strategies.boundary.first_trigger import FirstTriggerSearch
from edgeflare.strategies.boundary.options import BoundaryOptions, Bounds
from edgeflare.strategies.boundary.paths import Bracket
from edgeflare.strategies.boundary.points import OriginalProbe, Path, PathPoint
from edgeflare.strategies.boundary.probing import DeviceProbe, SearchContext
from edgeflare.strategies.boundary.schedule import is_hopeless
from edgeflare.types import Answer, Ask, Outcome, Sample, Search, Seed
from edgeflare_whitebox.strategies.constraints import (
    ConstrainedOptions,
    Constraint,
    check_class_scores,
    make_constraint,
    moved,
)
from edgeflare_whitebox.words.inspections import not_by_gradient


class GradientOptions(ConstrainedOptions):
    """Follows the gradient of the original's own margin to its decision boundary.

    An image changes as one of DeepXplore's constraints allows, and the device is asked beside the
    boundary, as by `boundary`. Images only, and a float ONNX original. Needs PyTorch (the extra
    torch); results depend on the processor.
    """

    strategy: ClassVar[str] = "gradient"

    attempts: int = Field(
        default=10,
        ge=1,
        le=1000,
        description="Walks from a seed: with another square or other patches each. light has two.",
    )

    def __call__(self, seed: Seed, rng: np.random.Generator) -> Search:
        """Search from a seed."""
        return _search(self, seed, rng)


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


def _search(options: GradientOptions, seed: Seed, rng: np.random.Generator) -> Search:
    check_class_scores("gradient", seed)
    original = OriginalProbe(seed, has_gradients=True)
    device = DeviceProbe(original, None)
    context = SearchContext(
        original, device, Bounds(BoundaryOptions(), seed.sample), rng, seed.margin_floor
    )
    first = FirstTriggerSearch(context, coarse=False)
    crossings = 0
    for attempt in range(2 if options.constraint == "light" else options.attempts):
        constraint = make_constraint(
            options.constraint,
            options.step,
            options.size,
            rng,
            anywhere=attempt > 0,
            against=attempt > 0,
        )
        bracket = yield from _walk(original, constraint, options.steps)
        if bracket is None:
            continue
        crossings += 1
        yield from first.search(bracket)
        if original.best is not None:
            return original.best
        if is_hopeless(device.observations, seed.margin_floor):
            break
    return Outcome(None, reason=not_by_gradient(options, crossings, device.queries))


def _walk(
    probe: OriginalProbe, constraint: Constraint, steps: int
) -> Generator[Ask, Answer, Bracket | None]:
    """Step until the original leaves the seed's label; None where it doesn't."""
    path = WalkPath(probe.seed.sample)
    point = probe.seed_point(path)
    for _ in range(steps):
        (slopes,) = yield from probe.gradients(point.sample, (probe.label, point.rival))
        sample = path.step(constraint(point.sample, -slopes))
        if np.array_equal(sample, point.sample):
            return None
        (further,) = yield from probe.ask((path,), (path.max_t,), (sample,))
        if further.log_odds < 0:
            return Bracket(point, further)
        point = further
    return None

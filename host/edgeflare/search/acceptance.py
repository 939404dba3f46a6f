"""Which mutant becomes the parent of the next one: x_max of DFLARE's algorithm 1."""

from typing import Literal, Protocol, TypeAlias

from edgeflare.search.fitness import Fitness, ObservedStates, distance
from edgeflare.types import Output

AcceptanceName: TypeAlias = Literal["not-lower", "change", "none"]


class Acceptance(Protocol):
    """Knows the fitness of x_max, at first that of the seed."""

    def accepts(self, original: Output, deployed: Output) -> bool:
        """Return whether the input with these answers replaces x_max; from now on it has, if so."""
        ...


class NotLower:
    """The text's rule: H(x) >= H(x_max) (algorithm 1); without state tracing H is D (section 5.3.1).

    Where the text leaves a choice: H(x_max) is taken when it is compared, and the state of x_max, the
    seed's too, has been observed by then: its O is 0. With O kept at 1, a search from a seed on which both
    models are sure hardly ever leaves it.
    """

    def __init__(
        self, seed: tuple[Output, Output], delta: float, threshold: float, *, states: bool
    ) -> None:
        self._fitness = Fitness(delta, threshold if states else None)
        self._fitness.of_new(*seed)
        self._best = self._fitness.of_observed(*seed)

    def accepts(self, original: Output, deployed: Output) -> bool:
        """Return whether the input with these answers replaces x_max."""
        if self._fitness.of_new(original, deployed) < self._best:
            return False
        self._best = self._fitness.of_observed(original, deployed)
        return True


class AnyChange:
    """The authors' code's rule: D(x) is more than delta above *or below* D(x_max), or the state is new.

    D(x_max) is 0 at first, whatever the seed's. Without state tracing only D counts.
    """

    def __init__(
        self, seed: tuple[Output, Output], delta: float, threshold: float, *, states: bool
    ) -> None:
        self._delta = delta
        self._states = ObservedStates(threshold) if states else None
        if self._states is not None:
            self._states.observe(*seed)
        self._best = 0.0

    def accepts(self, original: Output, deployed: Output) -> bool:
        """Return whether the input with these answers replaces x_max."""
        here = distance(original, deployed)
        new = self._states is not None and self._states.observe(original, deployed)
        if not new and abs(here - self._best) <= self._delta:
            return False
        self._best = here
        return True


class Nothing:
    """No mutant replaces the seed: what the authors' code does for DFLARE-D.

    It asks for D(x) > D(x_max) and begins with a D(x_max) of 1 (the absolute value of -1), which no D
    exceeds: every mutant is one step from the seed.
    """

    def accepts(self, original: Output, deployed: Output) -> bool:
        """Return False."""
        del original, deployed
        return False


def acceptance_of(
    name: AcceptanceName,
    seed: tuple[Output, Output],
    delta: float,
    threshold: float,
    *,
    states: bool,
) -> Acceptance:
    """Return a new rule of this name, that starts at the seed's answers."""
    if name == "none":
        return Nothing()
    rule = AnyChange if name == "change" else NotLower
    return rule(seed, delta, threshold, states=states)

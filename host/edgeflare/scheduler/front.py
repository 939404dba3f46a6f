"""The Pareto front of a search: deviations by margin and distance to the seed."""

from edgeflare.distances import l2, linf
from edgeflare.oracles import margins
from edgeflare.types import Decision, FrontPoint, Outputs, Sample


class Front:
    """Margin and distance to `seed` of the deviations found, in the order of the queries."""

    def __init__(self, seed: Sample) -> None:
        self._seed = seed
        self._points: list[FrontPoint] = []

    @property
    def points(self) -> tuple[FrontPoint, ...]:
        """Each deviation that no earlier one beats: none had its margin or more at its L2 or less."""
        return tuple(self._points)

    def meet(self, sample: Sample, outputs: Outputs, queries: int) -> None:
        """Add a sample and both models' outputs; `queries`: how many were made up to and with this one."""
        if outputs.decision is not Decision.DEVIATION:
            return
        assert outputs.original is not None  # noqa: S101 - a deviation is one of two answers
        assert outputs.deployed is not None  # noqa: S101
        smaller = margins(outputs.original, outputs.deployed).smaller or 0.0
        length = l2(self._seed, sample)
        if not any(one.margin >= smaller and one.l2 <= length for one in self._points):
            self._points.append(FrontPoint(queries, smaller, length, linf(self._seed, sample)))

"""Which crossing is tried next, by what the device answered at those before; and when to stop."""

from collections.abc import Generator, Sequence

import numpy as np

from edgeflare.strategies.boundary.crossings import Crossing
from edgeflare.strategies.boundary.paths import Bracket
from edgeflare.strategies.boundary.probing import Observation
from edgeflare.strategies.boundary.ties import Tie
from edgeflare.types import Answer, Ask

_MAX_CROSSINGS = 300
_MAX_FAILURES = 40
_PATIENCE = 3
"""Number of crossings without enough drift in a row after which the chosen method is left."""
_PATIENCE_UNASKED = 8
"""Number of crossings in a row beside which no input had the wanted margin."""
_RECENT = 3
_NO_DRIFT = 1e-9
_HOPELESS = ((10, 0.4), (20, 1.2))
"""After so many queries the search ends unless a severity of this many floors was seen.

Measured: docs/research/boundary.md.
"""


class CrossingSchedule:
    """The methods of crossing the boundary: the first is the chosen one, the others follow it.

    A method is left for the next one after a try that found no crossing, and after one at which the
    deployed model showed too little drift; the chosen one after three of these. Once all were tried,
    every second crossing is by the method with the largest severities, the others take turns.
    `bounded`: with bounds on the distance a crossing without an input within them is no failure.
    """

    def __init__(self, methods: Sequence[Crossing], *, bounded: bool = False) -> None:
        self._methods = methods
        self._patience_unasked = _MAX_CROSSINGS if bounded else _PATIENCE_UNASKED
        self._severities: list[list[float]] = [[] for _ in methods]
        self._at = 0
        self._turn = 0
        self._weak = 0
        self._unasked = 0
        self._failures = 0
        self._tried = 0

    @property
    def is_exhausted(self) -> bool:
        """Whether the number of tries, or of failures in a row, has reached its limit."""
        return self._failures >= _MAX_FAILURES or self._tried >= _MAX_CROSSINGS

    def find(self) -> Generator[Ask, Answer, Bracket | None]:
        """Return another crossing; None where this try did not find one."""
        bracket = yield from self._methods[self._at].find()
        self._failures = 0 if bracket is not None else self._failures + 1
        self._tried += 1
        if bracket is None:
            self._leave()
        return bracket

    def find_tie(self, found: Bracket) -> Generator[Ask, Answer, Tie | None]:
        """Return a tie of a third class with the two of the last crossing."""
        return (yield from self._methods[self._at].find_tie(found))

    def rate(self, seen: Sequence[Observation], *, enough: bool) -> None:
        """Note what was seen at the last crossing, and whether there was `enough` drift."""
        if not seen:
            self._unasked += 1
        else:
            self._severities[self._at].append(max(one.severity for one in seen))
            self._weak = 0 if enough else self._weak + max(1, len(seen) // 2)
            self._unasked = 0
        chosen = self._at == 0 and self._turn == 0
        if self._weak >= (_PATIENCE if chosen else 1) or self._unasked >= self._patience_unasked:
            self._leave()

    def _leave(self) -> None:
        """Go on with another method."""
        self._weak = self._unasked = 0
        if not self._severities[self._at]:
            self._severities[self._at].append(0.0)
        self._turn += 1
        untried = [place for place, seen in enumerate(self._severities) if not seen]
        if untried:
            self._at = untried[0]
        elif self._turn % 2:
            self._at = int(np.argmax([max(seen[-_RECENT:]) for seen in self._severities]))
        else:
            self._at = (self._turn // 2) % len(self._methods)


def largest_severity(observations: Sequence[Observation]) -> float | None:
    """Return the largest severity seen at any input; None without any that is known."""
    known = [one.severity for one in observations if one.drift is not None]
    return max(known, default=None)


def is_hopeless(observations: Sequence[Observation], floor: float) -> bool:
    """Whether the severities seen so far are too small for any other input to reach the floor.

    Never where the device returns labels only, which say nothing of how far it is from deciding
    otherwise; with a floor of 0 where there was no drift at all.
    """
    largest = largest_severity(observations)
    if largest is None:
        return False
    least = max(floor, _NO_DRIFT)
    return any(len(observations) >= count and largest < by * least for count, by in _HOPELESS)

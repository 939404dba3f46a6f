"""The choice of the next mutation operator (DFLARE, section 3.4)."""

from collections.abc import Sequence
from typing import Literal, Protocol, TypeAlias

import numpy as np

SelectionName: TypeAlias = Literal["metropolis-hastings", "rank", "uniform"]


class Selection(Protocol):
    """Draws operators, and learns from those whose input was accepted."""

    def draw(self, rng: np.random.Generator) -> str:
        """Return the next operator."""
        ...

    def accepted(self, operator: str) -> None:
        """Learn that the input made with this operator, the last one drawn, replaced x_max."""
        ...


class UniformSelection:
    """Every operator is equally likely, always (DFLARE-R, section 5.3)."""

    def __init__(self, operators: Sequence[str]) -> None:
        self._operators = list(operators)

    def draw(self, rng: np.random.Generator) -> str:
        """Return the next operator."""
        return self._operators[rng.integers(len(self._operators))]

    def accepted(self, operator: str) -> None:
        """Do nothing."""


class Ranking:
    """Orders operators by v(op) = N_i / (N_op + epsilon), the highest first.

    N_op is the number of times an operator was selected, N_i the number of times its input was
    accepted (algorithm 1 updates the ranking on H(x) >= H(x_max)).

    Differences: the paper does not say how equal ranking values are ordered; here, as in the
    authors' code, at random.
    """

    def __init__(self, operators: Sequence[str], epsilon: float) -> None:
        self._operators = list(operators)
        self._epsilon = epsilon
        self.selected = dict.fromkeys(self._operators, 0)
        self.improved = dict.fromkeys(self._operators, 0)

    def draw_uniform(self, rng: np.random.Generator) -> str:
        """Return an operator drawn uniformly."""
        return self._operators[rng.integers(len(self._operators))]

    def ordered(self, rng: np.random.Generator) -> list[str]:
        """Return all operators, the highest ranking value first."""
        shuffled = [self._operators[i] for i in rng.permutation(len(self._operators))]
        return sorted(shuffled, key=self.value, reverse=True)

    def value(self, operator: str) -> float:
        """Return v(op)."""
        return self.improved[operator] / (self.selected[operator] + self._epsilon)


class MetropolisHastings:
    """Algorithm 2: an operator is proposed uniformly and accepted with (1 - p) ** (k_i - k_(i-1)).

    k is an operator's place in the ranking, k_(i-1) that of the operator drawn last, p one over
    their number. The first one is drawn uniformly (algorithm 1, line 1).
    """

    def __init__(self, operators: Sequence[str], epsilon: float) -> None:
        self.ranking = Ranking(operators, epsilon)
        self._last: str | None = None

    def draw(self, rng: np.random.Generator) -> str:
        """Return the next operator."""
        if self._last is None:
            drawn = self.ranking.draw_uniform(rng)
        else:
            ordered = self.ranking.ordered(rng)
            drawn = _propose(ordered, ordered.index(self._last), rng)
        self.ranking.selected[drawn] += 1
        self._last = drawn
        return drawn

    def accepted(self, operator: str) -> None:
        """Raise the operator's ranking value (algorithm 1, ``op.update()``)."""
        self.ranking.improved[operator] += 1


class RankSelection:
    """What the authors' code does: rank k, counted from 0, is accepted with (1 - p) ** (k + 1).

    Until an input has been accepted, operators are drawn uniformly. That code looks the last
    operator up by comparing an object with names, which always fails and gives -1: so the choice
    does not depend on the last operator, and is no Markov chain.
    """

    def __init__(self, operators: Sequence[str], epsilon: float) -> None:
        self.ranking = Ranking(operators, epsilon)
        self._has_accepted = False

    def draw(self, rng: np.random.Generator) -> str:
        """Return the next operator."""
        if self._has_accepted:
            drawn = _propose(self.ranking.ordered(rng), -1, rng)
        else:
            drawn = self.ranking.draw_uniform(rng)
        self.ranking.selected[drawn] += 1
        return drawn

    def accepted(self, operator: str) -> None:
        """Raise the operator's ranking value; from now on the ranking counts."""
        self.ranking.improved[operator] += 1
        self._has_accepted = True


def make_selection(name: SelectionName, operators: Sequence[str], epsilon: float) -> Selection:
    """Return a new selection of this name over these operators."""
    if name == "uniform":
        return UniformSelection(operators)
    if name == "rank":
        return RankSelection(operators, epsilon)
    return MetropolisHastings(operators, epsilon)


def acceptance_probability(base: float, index: int, last_index: int) -> float:
    """Return (1 - p) ** (k_i - k_(i-1)), at least 1 for an operator ranked no lower than the last.

    `base` is 1 - p. With a single operator p is 1 and base is 0: it is always accepted.
    """
    return 1.0 if index <= last_index else float(base ** (index - last_index))


def _propose(ordered: Sequence[str], last_index: int, rng: np.random.Generator) -> str:
    if len(ordered) == 1:
        return ordered[0]
    base = 1.0 - 1.0 / len(ordered)
    while True:
        index = int(rng.integers(len(ordered)))
        if rng.random() < acceptance_probability(base, index, last_index):
            return ordered[index]

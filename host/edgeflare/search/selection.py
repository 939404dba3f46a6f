"""Selection of mutation operators by Metropolis-Hastings (DFLARE, section 3.4, algorithm 2)."""

from collections.abc import Sequence

import numpy as np


class OperatorSelection:
    """Ranks operators by v(op) = N_i / (N_op + epsilon) and draws the next one.

    N_op counts how often an operator was selected, N_i how often the fitness then did not fall
    (algorithm 1 updates the ranking on H(x) >= H(x_max)).

    Differences: the paper does not say how equal ranking values are ordered; here, as in the
    authors' code, at random.
    """

    def __init__(self, operators: Sequence[str], epsilon: float) -> None:
        self._operators = list(operators)
        self._epsilon = epsilon
        self._selected = dict.fromkeys(self._operators, 0)
        self._improved = dict.fromkeys(self._operators, 0)

    def first(self, rng: np.random.Generator) -> str:
        """Draw the first operator uniformly (algorithm 1, line 1)."""
        return self._count(self._operators[rng.integers(len(self._operators))])

    def next(self, last: str, rng: np.random.Generator) -> str:
        """Draw the next operator given the last one (algorithm 2)."""
        shuffled = [self._operators[i] for i in rng.permutation(len(self._operators))]
        ranked = sorted(shuffled, key=self.ranking_value, reverse=True)
        last_index = ranked.index(last)
        base = 1.0 - 1.0 / len(ranked)
        while True:
            index = int(rng.integers(len(ranked)))
            if rng.random() < acceptance(base, index, last_index):
                return self._count(ranked[index])

    def reward(self, operator: str) -> None:
        """Record that the fitness did not fall after this operator (algorithm 1, ``op.update()``)."""
        self._improved[operator] += 1

    def ranking_value(self, operator: str) -> float:
        """Return v(op)."""
        return self._improved[operator] / (self._selected[operator] + self._epsilon)

    def _count(self, operator: str) -> str:
        self._selected[operator] += 1
        return operator


def acceptance(base: float, index: int, last_index: int) -> float:
    """Return (1 - p) ** (k_i - k_(i-1)), at least 1 for an operator ranked no lower than the last.

    `base` is 1 - p. With a single operator p is 1 and base is 0: it is always accepted.
    """
    return 1.0 if index <= last_index else float(base ** (index - last_index))

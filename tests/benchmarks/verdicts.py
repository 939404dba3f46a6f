"""How often a comparison of equals gives a verdict, and how often an interval of a mean leaves the true one out.

python tests/benchmarks/verdicts.py [--draws 2000] [--seeds 20 30 50 100]

Two candidates' values on so many seeds are drawn from one distribution: normal; 80 % zeros; lognormal; queries of which
2.5 % of the searches find nothing and count as the cap in a mean. Nominal are 5 %. Exits with 1 where more than 7 %
of the verdicts are wrong with 20 seeds or more.
"""

import argparse
import sys
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from edgeflare.analysis.ranking.paired_tests import Duel, duels_between
from edgeflare.statistics import bootstrap_interval, mean_ranks

MOST_WRONG = 0.07
FEWEST_SEEDS = 20
CAP = 2000
_NOT_FOUND = 0.025
_LARGE = 200_000
"""So many values tell the true mean."""

Draw = Callable[[np.random.Generator, int], NDArray[np.float64]]


def _zero_inflated(rng: np.random.Generator, count: int) -> NDArray[np.float64]:
    return np.where(rng.random(count) < 0.8, 0, rng.uniform(0, 1, count))


def _capped(rng: np.random.Generator, count: int) -> NDArray[np.float64]:
    """Draw queries, infinite for the 2.5 % of searches that find nothing."""
    found = np.ceil(np.minimum(rng.lognormal(3, 1, count), CAP))
    return np.where(rng.random(count) < _NOT_FOUND, np.inf, found)


MEASURES: dict[str, Draw] = {
    "normal": lambda rng, count: rng.normal(0.5, 0.1, count),
    "zero-inflated": _zero_inflated,
    "lognormal": lambda rng, count: rng.lognormal(3, 1, count),
    "capped": _capped,
}


class Rates(NamedTuple):
    """Shares of the draws: `wrong` verdicts, and intervals that leave out the true difference (0) or the true mean."""

    wrong: float
    difference_left_out: float
    mean_left_out: float


def equal_duel(measure: str, rng: np.random.Generator, seeds: int) -> Duel:
    """Compare two candidates whose values are drawn alike, as a ranking does: what is capped by its ranks."""
    drawn = {name: MEASURES[measure](rng, seeds) for name in "ab"}
    ranks = mean_ranks([[[one] for one in of] for of in drawn.values()])
    counted = {name: np.minimum(of, CAP).tolist() for name, of in drawn.items()}
    tested = dict(zip(drawn, ranks, strict=True)) if measure == "capped" else None
    (duel,) = duels_between(counted, level=0.95, more_is_better=True, tested=tested)
    return duel


def simulated(measure: str, seeds: int, draws: int) -> Rates:
    """Return how often verdicts and intervals at 95 % are wrong, with so many seeds."""
    rng = np.random.default_rng([seeds, draws])
    true = float(np.minimum(MEASURES[measure](rng, _LARGE), CAP).mean())
    wrong = difference = mean = 0
    for _ in range(draws):
        duel = equal_duel(measure, rng, seeds)
        wrong += duel.verdict != "tie"
        difference += not duel.interval[0] <= 0 <= duel.interval[1]
        values = np.minimum(MEASURES[measure](rng, seeds), CAP)
        low, high = bootstrap_interval([[one] for one in values])
        mean += not low <= true <= high
    return Rates(wrong / draws, difference / draws, mean / draws)


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--draws", type=int, default=2000)
    parser.add_argument("--seeds", type=int, nargs="+", default=[20, 30, 50, 100])
    chosen = parser.parse_args()
    table = Table(
        "values", "seeds", "wrong verdicts", "interval of the difference", "interval of the mean"
    )
    too_many = False
    for measure in MEASURES:
        for seeds in chosen.seeds:
            rates = simulated(measure, seeds, chosen.draws)
            too_many |= seeds >= FEWEST_SEEDS and rates.wrong > MOST_WRONG
            covered = (f"covers {1 - one:.1%}" for one in rates[1:])
            table.add_row(measure, str(seeds), f"{rates.wrong:.1%}", *covered)
    Console(width=110).print(table)
    return int(too_many)


if __name__ == "__main__":
    sys.exit(main())

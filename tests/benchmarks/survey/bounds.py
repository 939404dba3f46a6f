"""How often the bounds of a rate hold where inputs made from one seed are alike.

Prints, for rates and numbers of seeds and of inputs from each, the share of simulated surveys whose
interval has the true rate, and the interval's mean width beside that of Clopper and Pearson, which
takes all inputs as independent. The probability of a deviation differs from seed to seed by a beta
distribution with the correlation stated.

    python tests/benchmarks/survey/bounds.py
"""

from functools import cache
from itertools import product

import numpy as np

from edgeflare.statistics import clustered_interval

RATES = (0.001, 0.01, 0.1)
SURVEYS = ((50, 2), (100, 3), (100, 6), (300, 4))
CORRELATION = 0.3
REPEATS = 4_000


@cache
def interval(counts: tuple[int, ...], inputs: int) -> tuple[float, float]:
    """Return the interval for these deviations, sorted, of as many inputs from each seed."""
    return clustered_interval(counts, [inputs] * len(counts))


@cache
def independent(found: int, trials: int) -> tuple[float, float]:
    """Return the interval of Clopper and Pearson."""
    return clustered_interval([int(place < found) for place in range(trials)], [1] * trials)


def main() -> None:
    """Print the table."""
    rng = np.random.default_rng(0)
    print("| rate | seeds x inputs | holds | width | independent: holds | width |")
    print("|---|---|---|---|---|---|")
    for rate, (seeds, inputs) in product(RATES, SURVEYS):
        spread = 1 / CORRELATION - 1
        chances = rng.beta(rate * spread, (1 - rate) * spread, (REPEATS, seeds))
        counts = np.sort(rng.binomial(inputs, chances), axis=1)
        cells = []
        for ends in (
            [interval(tuple(row), inputs) for row in counts.tolist()],
            [independent(sum(row), seeds * inputs) for row in counts.tolist()],
        ):
            held = np.mean([low <= rate <= high for low, high in ends])
            width = np.mean([high - low for low, high in ends])
            cells.append(f"{held:.1%} | {width:.4f}")
        print(f"| {rate:g} | {seeds} x {inputs} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()

"""How often a comparison of equals gives a verdict, and how often an interval of a mean leaves the true one out.

python tests/benchmarks/verdicts.py [--draws 2000] [--seeds 20 30 50 100]

Two candidates' values on so many seeds are drawn from one distribution: normal; 80 % zeros; lognormal; queries of which
2.5 % of the searches find nothing and count as the cap in a mean. Nominal are 5 %. Exits with 1 where more than 7 %
of the verdicts are wrong with 20 seeds or more.
"""

import argparse
import sys
from pathlib import Path

from rich.console import Console
from rich.table import Table

sys.path.insert(0, str(Path(__file__).parents[1] / "helpers"))

from campaign_stores import MEASURES, simulated

MOST_WRONG = 0.07
FEWEST_SEEDS = 20


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

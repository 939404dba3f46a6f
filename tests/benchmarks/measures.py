"""What candidates can be ranked by: five prunings of the packaged LeNet-5, told apart by each measure.

python tests/benchmarks/measures.py [--seeds 100] [--damage 20 40 60 70 80]

Each candidate has that share (in percent) of its smallest weights set to 0, so their order of damage is known.
The table has what `edgeflare compare --measure` says of them: the value of each, how many of the ten pairs it tells apart at
95 % for all of them together, whether the order is that of the damage, and what a candidate cost. The search's own
settings are fixed, so that the figures don't depend on how fast this machine is.
"""

import argparse
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import get_args

from rich.console import Console
from rich.table import Table

from edgeflare import Ranking, config_from, rank_campaigns, run_candidates, summarize
from edgeflare.campaign.comparison import Measure

sys.path.insert(0, str(Path(__file__).parents[1] / "helpers"))

from command import DEMO
from small_models import prune

ORIGINAL = DEMO.parents[2] / "edgeflare_bench" / "assets" / "mnist" / "lenet5.onnx"
FIXED = {"crossing": "least-l2", "effort": 64, "tied_classes": 2, "candidates": 1}


def compared(measure: Measure, models: list[Path], seeds: int, out: Path) -> tuple[Ranking, float]:
    """Return the ranking by a measure, and the device queries for each seed, confirmations and all."""
    search = {"timeout_s": 0} if measure == "queries" else {"timeout_s": 0, "options": FIXED}
    given = {"scale": "1/255"}
    config = config_from(
        {
            "original": {"path": ORIGINAL, "input": given},
            "deployed": {"path": models[0], "input": given},
            "seeds": {"path": DEMO / "seeds.npz", "limit": seeds},
            "search": search,
        },
        "measures",
    )
    runs = run_candidates(config, models, measure=measure, out=out / measure).runs
    asked = [summarize(run.folder).total_queries for run in runs]
    on_device = sum(sum(one.values()) - one["host_only"] for one in asked)
    ranking = rank_campaigns([run.folder for run in runs], measure=measure)
    return ranking, on_device / (len(models) * seeds)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=100)
    parser.add_argument("--damage", type=int, nargs="+", default=[20, 40, 60, 70, 80])
    chosen = parser.parse_args()
    damage = sorted(chosen.damage)
    table = Table(
        "measure", *(f"{one} %" for one in damage), "told apart", "order", "device queries a seed"
    )
    with TemporaryDirectory() as folder:
        models = [prune(ORIGINAL, Path(folder) / f"pruned{one}.onnx", one / 100) for one in damage]
        for measure in get_args(Measure):
            ranking, cost = compared(measure, models, chosen.seeds, Path(folder))
            values = {one.name: one.value.value for one in ranking.candidates}
            apart = sum(duel.verdict != "tie" for duel in ranking.duels)
            right = [one.name for one in ranking.candidates] == [model.stem for model in models]
            table.add_row(
                measure,
                *(f"{values[model.stem]:.3g}" for model in models),
                f"{apart} of {len(ranking.duels)}",
                "right" if right else "wrong",
                f"{cost:.1f}",
            )
    Console(width=130).print(table)


if __name__ == "__main__":
    main()

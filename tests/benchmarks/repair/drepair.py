"""DRepair and abstention on real pairs: tables 7 and 8 of DFLARE, and what an abstention catches.

python tests/benchmarks/repair/drepair.py --data FOLDER [--pairs LeNet-1 "lenet4, pruned" ...]
    [--strategy dflare] [--seeds 500] [--what repair abstain] [--variants paper bound standardised]
    [--no-search] [--total-queries N] [--keep FOLDER2]

A campaign without a survey for each pair. "repair": of each variant the mean over five folds of seed
inputs, five times, with random seeds 0 to 4, in per cent: triggering inputs repaired, others induced,
deviations less; then the same search on the repaired model, with its success and how many times the
queries it takes. "abstain": the threshold that catches 95 % on half of the seed inputs; caught of the
other half's deviations and of fresh searches' by dflare and boundary, and inputs deferred. FOLDER2
keeps the campaigns. --no-search leaves new searches out. Else each gives the device as many inputs as `edgeflare repair` does, or N.
"""

import argparse
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "helpers"))

from command import DEMO
from shared_models import PAIRS

from edgeflare import resume_campaign, search
from edgeflare.errors import EdgeFlareError
from edgeflare.repair import RepairedCampaign, abstain_campaign, train_campaign
from edgeflare.repair.campaigns import FRESH
from edgeflare.store.location import DATABASE_NAME

_MNIST = DEMO.parents[2] / "edgeflare_bench" / "assets" / "mnist"
_OWN = {
    f"{name}, {what}": (_MNIST / f"{name}.onnx", _MNIST / f"{name}_{what}.onnx")
    for name in ("lenet4", "lenet5", "cnn")
    for what in ("pruned", "quantized", "distilled")
}
_SHARED = ("LeNet-1", "LeNet-5", "ResNet-20", "ResNet-8")
_DIGITS = "images/mnist_test_0_499.npz"
_VARIANTS: dict[str, tuple[Any, float | None]] = {
    "paper": ("paper", None),
    "bound": ("paper", 0.01),
    "standardised": ("standardised", None),
}
_REPAIR = (
    "repaired", "induced", "improvement", "accuracy before, after", "success", "queries, times",
)  # fmt: skip
_ABSTAIN = ("threshold", "caught", "by dflare", "by boundary", "deferred", "queries, times")


def campaign(name: str, data: Path, folder: Path, strategy: str, seeds: int) -> Path:
    """Run the campaign of a pair, or go on with it."""
    if (folder / DATABASE_NAME).is_file():
        return resume_campaign(folder)
    if name in _OWN:
        (original, deployed), images, entry = _OWN[name], data / _DIGITS, {"scale": "1/255"}
    else:
        pair = PAIRS[name]
        original, deployed = data / pair.original, data / pair.deployed
        images, entry = data / pair.images, pair.entry
    search(
        {"path": original, "input": entry}, {"path": deployed, "input": entry},
        {"path": images, "limit": seeds}, folder=folder, strategy=strategy, allow_disagreement=True,
    )  # fmt: skip
    return folder


def percent(value: float | None) -> str:
    """Return a share in per cent."""
    return "" if value is None else f"{100 * value:.1f}"


def times(found: RepairedCampaign) -> str:
    """Return how many times the queries a new search takes; nothing without one."""
    more = found.search and found.search.more_queries
    return "" if more is None else f"{more:.2f}"


def repairs(folder: Path, arguments: argparse.Namespace) -> Iterator[tuple[str, ...]]:
    """Yield the row of each variant."""
    for variant, bound in (_VARIANTS[name] for name in arguments.variants):
        found = train_campaign(
            folder,
            variant=variant,
            max_inducing=bound,
            search=arguments.search,
            total_queries=arguments.total_queries,
        )
        assert found.trained is not None
        accuracy = found.trained.accuracy
        yield (
            variant if bound is None else f"{variant}, at most {percent(bound)}",
            percent(found.trained.mean("repair_ratio")),
            f"{100 * found.trained.mean('inducing_ratio'):.2f}",
            percent(found.trained.mean("improvement_ratio")),
            "" if accuracy is None else ", ".join(map(percent, accuracy)),
            percent(found.search and found.search.after.success),
            times(found),
        )


def abstentions(folder: Path, arguments: argparse.Namespace) -> Iterator[tuple[str, ...]]:
    """Yield the row of a threshold."""
    found = abstain_campaign(folder, search=arguments.search, total_queries=arguments.total_queries)
    assert found.abstention is not None
    told = found.abstention
    yield (
        "",
        f"{told.threshold:.4g}",
        *(percent(one.share) for one in told.caught),
        *([""] * (1 + len(FRESH) - len(told.caught))),
        f"{percent(told.deferred_share)} (at most {percent(told.deferred_bound)})",
        times(found),
    )


def main() -> None:
    """Print the tables."""
    names = [*_SHARED, *_OWN]
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--pairs", nargs="+", choices=names, default=names)
    parser.add_argument("--strategy", default="dflare")
    parser.add_argument("--seeds", type=int, default=500)
    parser.add_argument(
        "--what", nargs="+", choices=("repair", "abstain"), default=["repair", "abstain"]
    )
    parser.add_argument("--variants", nargs="+", choices=_VARIANTS, default=list(_VARIANTS))
    parser.add_argument("--no-search", dest="search", action="store_false")
    parser.add_argument("--total-queries", type=int)
    parser.add_argument("--keep", type=Path)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        place = (arguments.keep or Path(temporary)).absolute()
        for what, columns, rows in (
            ("repair", _REPAIR, repairs),
            ("abstain", _ABSTAIN, abstentions),
        ):
            if what not in arguments.what:
                continue
            print(f"| pair | variant | {' | '.join(columns)} |")
            print("|" + "---|" * (len(columns) + 2))
            for name in arguments.pairs:
                try:
                    folder = place / f"{name.replace(', ', '-')}-{arguments.strategy}"
                    ran = campaign(
                        name, arguments.data, folder, arguments.strategy, arguments.seeds
                    )
                    for row in rows(ran, arguments):
                        print(f"| {name} | {' | '.join(row)} |", flush=True)
                except EdgeFlareError as error:
                    print(f"| {name} | failed: {error} |", flush=True)


if __name__ == "__main__":
    main()

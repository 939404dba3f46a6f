"""Recipes for the deployed models of real pairs: disagreement by a new search, against size.

python tests/benchmarks/repair/recipes.py --data FOLDER [--pairs ResNet-8 LeNet-5 ...] [--device NAME]
    [--seeds 50] [--keep-float 2] [--quantizer-python PATH] [--keep FOLDER2]

A campaign of each pair (`boundary`, no survey) on a device of the inventory, by default this machine,
its explanation, and `edgeflare repair recipes`. FOLDER2 keeps the campaigns: what is there goes on,
finished ones are read. The seeds' labels are used where the data has some.
"""

import argparse
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "explanation"))

from campaigns import NAMES, SPEECH, Device, row, run

from edgeflare import replay_base, replay_config
from edgeflare._internal.text import p_value_text
from edgeflare.analysis import rank_campaigns
from edgeflare.document import Text
from edgeflare.errors import EdgeFlareError
from edgeflare.explanation import explain_campaign
from edgeflare.repair import RecipesFound, recipes_campaign
from edgeflare.reports import recipes_document, write_front

_COLUMNS = (
    *("pair", "recipe", "bytes", "disagreement", "share of the present", "p", "ms", "accuracy"),
    *("natural", "front"),
)


def rows(pair: str, found: RecipesFound) -> Iterator[str]:
    """Yield a row for each candidate, least disagreement first; p against the present model."""
    searches = {one.name: Path(one.file) for one in found.candidates}
    present = found.present
    for one in found.candidates:
        known = one.disagreement
        yield row(
            (
                pair,
                f"**{one.name}**" if one.name == found.winner else one.name,
                f"{one.size:,}",
                f"{known.value:.3f} [{known.low:.3f}, {known.high:.3f}]",
                f"{known.value / present.disagreement.value:.2f}"
                if present.disagreement.value
                else "",
                "" if one is present else p_against_present(found, searches[one.name]),
                "" if one.latency_s is None else f"{1000 * one.latency_s:.3g}",
                "" if one.accuracy is None else f"{one.accuracy.rate:.3f}",
                one.natural,
                "*" if one.is_front else "",
            )
        )


def p_against_present(found: RecipesFound, file: Path) -> str:
    """Return p of the paired permutation test of a candidate and the present model, not adjusted."""
    searches = Path(found.folder) / "searches"
    names = [Path(found.present.file).stem, file.stem]
    (duel,) = rank_campaigns([searches / one for one in names], names=names).duels
    return p_value_text(duel.p)


def measured(name: str, arguments: argparse.Namespace, folder: Path) -> RecipesFound:
    """Run a pair's campaign, explain it, and try the recipes; write the chart beside them."""
    campaign = run(
        name, arguments.data, folder, Device(arguments.device), seeds=arguments.seeds,
        strategy="boundary", survey=False,
    ).folder  # fmt: skip
    if arguments.keep_float:
        explain_campaign(campaign, replay_config(replay_base(campaign)))
    found = recipes_campaign(
        campaign, keep_float=arguments.keep_float, quantizer_python=arguments.quantizer_python
    )
    write_front(found, Path(found.folder) / "pareto.svg")
    return found


def main() -> None:
    """Print the table, and of each pair the verdict."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True)
    pairs = [name for name in NAMES if name != SPEECH]
    parser.add_argument("--pairs", nargs="+", choices=pairs, default=pairs)
    parser.add_argument("--device", default="local")
    parser.add_argument("--seeds", type=int, default=50)
    parser.add_argument("--keep-float", type=int, default=2)
    parser.add_argument("--quantizer-python", type=Path)
    parser.add_argument("--keep", type=Path)
    arguments = parser.parse_args()
    print(row(_COLUMNS), row(["---"] * len(_COLUMNS)), sep="\n", flush=True)
    told: list[str] = []
    with tempfile.TemporaryDirectory() as folder:
        for name in arguments.pairs:
            place = (arguments.keep or Path(folder)).absolute() / name.replace(" ", "-")
            try:
                found = measured(name, arguments, place)
            except EdgeFlareError as error:
                told.append(f"{name}: failed: {error}")
                continue
            print(*rows(name, found), sep="\n", flush=True)
            words = [one.text for one in recipes_document(found) if isinstance(one, Text)]
            told.append(f"{name}: {' '.join(words)}")
            told += [
                f"{name}: {one.name} has in float {'; '.join(one.in_float)}"
                for one in found.candidates
                if one.in_float
            ]
            told += [f"{name}: {one} is left out: {why}" for one, why in found.failed.items()]
            told += [f"{name}: {one}" for one in found.notices]
    print(*(f"- {one}" for one in told), sep="\n")


if __name__ == "__main__":
    main()

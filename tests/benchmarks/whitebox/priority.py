"""How early each order of the seeds brings a campaign's findings, on real pairs, beside random order.

python tests/benchmarks/whitebox/priority.py --data FOLDER [--pairs LeNet-5 ResNet-20 ResNet-8] [--seeds 200]
    [--strategy dflare] [--device NAME] [--shuffles 200] [--keep FOLDER2] [--faults]

A campaign of each pair with its survey on a device of the inventory, by default this machine, with the seeds in
random order; then the figures of `prioritise_campaign`, a row for each kind of finding and each order. FOLDER2
keeps the campaigns: what is there goes on, finished ones are read. With --faults it is a survey of each kind of the fault
suite (medium strength, planted in LeNet-5, without a search) in place of the pairs: means over the faults that have findings.
"""

import argparse
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import onnx

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "explanation"))

from campaigns import NAMES, SPEECH, Device, row, run
from shared_models import PAIRS, images_of

from edgeflare import config_from, run_campaign
from edgeflare._internal.text import number_text, p_value_text, percent_text
from edgeflare_bench.faults import Inapplicable, draws, faulty_model, open_original
from edgeflare_whitebox import PriorityComparison, prioritise_campaign

_DEFAULT = ("LeNet-5", "ResNet-20", "ResNet-8")
_COLUMNS = ("pair", "finding", "found", "budget", "order", "APFD", "p", "10 %", "25 %", "50 %")


def rows(pair: str, found: PriorityComparison) -> Iterator[str]:
    """Yield a row for each kind of finding and each order, random order last."""
    for kind in found.findings:
        for one in kind.orders:
            yield row(
                (
                    pair,
                    kind.kind,
                    f"{kind.found:,} of {kind.seeds:,}",
                    f"{kind.budget:,} {kind.unit}",
                    one.measure,
                    number_text(one.apfd, 3),
                    "" if one.p is None else p_value_text(one.p),
                    *(percent_text(share, 0) for share in one.within.values()),
                )
            )


def fault_rows(data: Path, folder: Path, seeds: int, shuffles: int) -> Iterator[str]:
    """Yield a row for each kind of finding and each order: means over the fault suite's kinds."""
    pair = PAIRS["LeNet-5"]
    original = open_original("mnist", data)
    images = images_of(data, pair)
    chosen = np.random.default_rng(0).permutation(len(images))[:seeds]
    archive = folder / "seeds.npz"
    np.savez(archive, images=images[chosen])
    figures: dict[tuple[str, str], list[tuple[float, ...]]] = {}
    for draw in draws():
        if draw.size != "medium" or draw.index:
            continue
        deployed = folder / f"{draw.kind}.onnx"
        try:
            onnx.save_model(faulty_model(original, draw.kind, draw.parameters[0]), str(deployed))
        except Inapplicable:
            continue
        values = {
            "original": {"path": data / pair.original, "input": pair.entry},
            "deployed": {"path": deployed, "input": pair.entry},
            "seeds": {"path": archive},
            "search": {"strategy": "none"},
            "survey": {"pursuit": 0},
            "allow_disagreement": True,
            "devices": ["local"],
            "out": folder / draw.kind,
        }
        run_campaign(config_from(values, "the benchmark"))
        for kind in prioritise_campaign(folder / draw.kind, shuffles=shuffles).findings:
            if kind.found < kind.seeds:
                for one in kind.orders:
                    measured = (one.apfd, *one.within.values())
                    figures.setdefault((kind.kind, one.measure), []).append(measured)
    for (kind, measure), several in figures.items():
        first, *within = np.mean(several, axis=0)
        better = sum(one[0] > 0.5 for one in several)
        yield row(
            (
                "faults",
                kind,
                f"{len(several)} faults",
                "seeds",
                measure,
                number_text(first, 3),
                f"{better} above .5",
                *(percent_text(share, 0) for share in within),
            )
        )


def main() -> None:
    """Print the table, and which orders could not be computed."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True)
    pairs = [name for name in NAMES if name != SPEECH]
    parser.add_argument("--pairs", nargs="+", choices=pairs, default=_DEFAULT)
    parser.add_argument("--seeds", type=int, default=200)
    parser.add_argument("--strategy", default="dflare")
    parser.add_argument("--device", default="local")
    parser.add_argument("--shuffles", type=int, default=200)
    parser.add_argument("--keep", type=Path)
    parser.add_argument("--faults", action="store_true")
    arguments = parser.parse_args()
    print(row(_COLUMNS), row(["---"] * len(_COLUMNS)), sep="\n", flush=True)
    told: list[str] = []
    with tempfile.TemporaryDirectory() as folder:
        if arguments.faults:
            made = fault_rows(arguments.data, Path(folder), arguments.seeds, arguments.shuffles)
            print(*made, sep="\n")
        for name in () if arguments.faults else arguments.pairs:
            campaign = run(
                name,
                arguments.data,
                (arguments.keep or Path(folder)).absolute() / name.replace(" ", "-"),
                Device(arguments.device),
                seeds=arguments.seeds,
                strategy=arguments.strategy,
            ).folder
            found = prioritise_campaign(campaign, shuffles=arguments.shuffles)
            print(*rows(name, found), sep="\n", flush=True)
            told += [f"{name}: {one} is left out: {why}" for one, why in found.left_out.items()]
    print(*(f"- {one}" for one in told), sep="\n")


if __name__ == "__main__":
    main()

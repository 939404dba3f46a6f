"""How early each order of the seeds brings a campaign's findings, on real pairs, beside random order.

python tests/benchmarks/inspection/priority.py --data FOLDER [--pairs LeNet-5 ResNet-20 ResNet-8] [--seeds 200]
    [--strategy dflare] [--device NAME] [--shuffles 200] [--keep FOLDER2]

A campaign of each pair with its survey on a device of the inventory, by default this machine, with the seeds in
random order; then the figures of `prioritise_campaign`, a row for each kind of finding and each order. FOLDER2
keeps the campaigns: what is there goes on, finished ones are read.
"""

import argparse
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "explanation"))

from campaigns import NAMES, SPEECH, Device, row, run

from edgeflare._internal.text import number_text, p_value_text, percent_text
from edgeflare.inspection import PriorityComparison, prioritise_campaign

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
    arguments = parser.parse_args()
    print(row(_COLUMNS), row(["---"] * len(_COLUMNS)), sep="\n", flush=True)
    told: list[str] = []
    with tempfile.TemporaryDirectory() as folder:
        for name in arguments.pairs:
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

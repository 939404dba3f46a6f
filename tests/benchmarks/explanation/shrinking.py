"""How near to their seeds the triggering inputs of campaigns on real pairs come by shrinking.

python tests/benchmarks/explanation/shrinking.py --data FOLDER [--pairs LeNet-1 KWS ...]
    [--strategy dflare boundary] [--device local] [--seeds 60] [--device-budget 20] [--keep FOLDER2]

A campaign without a survey and its shrinking for each pair and strategy. FOLDER2 keeps the campaigns: those that are there go on,
finished ones are read. Distances to the seed in medians, before and after; "share" is that of L2
after in L2 before; "deviate" the results that, asked once more, deviate with both margins above the
campaign's floor. SSIM needs scikit-image; images of a side below 7 and audio have none.
"""

import argparse
import tempfile
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from statistics import median

from campaigns import LOOPBACK, NAMES, SPEECH, Device, device_named, row, run

from edgeflare import replay_base, replay_config
from edgeflare.answers.oracles import margins
from edgeflare.campaign.replay.inputs import replay_source
from edgeflare.campaign.replay.reproduce import replay_answers
from edgeflare.campaign.replay.run import run_replay
from edgeflare.errors import EdgeFlareError
from edgeflare.explanation import ShrunkFinding, shrink_campaign
from edgeflare.store import Store
from edgeflare.store.location import DATABASE_NAME
from edgeflare.types import TRIGGERS

_COLUMNS = (
    "pair", "strategy", "triggers", "moved", "L2", "Linf", "SSIM", "share",
    "device queries, median", "most", "deviate",
)  # fmt: skip


def change(findings: Sequence[ShrunkFinding], name: str, digits: int) -> str:
    """Return the medians of a distance before and after."""
    pairs = [(getattr(one.before, name), getattr(one.after, name)) for one in findings]
    known = [pair for pair in pairs if None not in pair]
    if not known:
        return ""
    return " -> ".join(f"{median(column):.{digits}f}" for column in zip(*known, strict=True))


def deviating(folder: Path, replay: Path) -> int:
    """Return how many triggers of the campaign in `folder` deviate above its floor, asked anew."""
    with replay_source(folder) as source:
        ids = [one.id for one in source.inputs() if one.kind == "trigger"]
    if not ids:
        return 0
    if not (replay / DATABASE_NAME).is_file():
        config = replay_config(replay_base(folder))
        run_replay(folder, config.model_copy(update={"out": replay}), ids=ids)
    with Store.open(folder) as store:
        floor = float(store.setting("search", "margin_floor"))
    with Store.open(replay) as store:
        return sum(
            one.status in TRIGGERS and (margins(one.original, one.deployed).smaller or 0.0) >= floor
            for answers in replay_answers(store, set(ids)).values()
            for one in answers.values()
            if one.original is not None and one.deployed is not None
        )


def rows(arguments: argparse.Namespace, folder: Path, device: Device) -> Iterator[tuple[str, ...]]:
    """Yield the row of each pair and strategy."""
    names = arguments.pairs or [name for name in NAMES if name != SPEECH]
    for name in names:
        for strategy in arguments.strategy:
            place = folder / f"{name.replace(' ', '-')}-{strategy}"
            searched = partial(run, name, arguments.data, place, device, survey=False)
            campaign = searched(seeds=arguments.seeds, strategy=strategy)
            config = replay_config(replay_base(campaign.folder))
            found = shrink_campaign(campaign.folder, config, device_budget=arguments.device_budget)
            queries = [one.device_queries for one in found.findings]
            left = deviating(Path(found.folder), place / "again")
            yield (
                name, strategy, str(len(found.findings)), str(len(found.shrunk)),
                change(found.findings, "l2", 2), change(found.findings, "linf", 0),
                change(found.findings, "ssim", 3), f"{found.l2_share or 0:.2f}",
                f"{median(queries):.0f}", str(max(queries)), f"{left} of {len(found.findings)}",
            )  # fmt: skip


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--pairs", nargs="+", choices=[name for name in NAMES if name != SPEECH])
    parser.add_argument(
        "--strategy", nargs="+", choices=("dflare", "boundary"), default=["dflare", "boundary"]
    )
    parser.add_argument("--device", default="local", help=f"a device's name, or {LOOPBACK}")
    parser.add_argument("--seeds", type=int, default=60)
    parser.add_argument("--device-budget", type=int, default=20)
    parser.add_argument("--keep", type=Path)
    arguments = parser.parse_args()
    print(row(_COLUMNS), row(["---"] * len(_COLUMNS)), sep="\n", flush=True)
    with tempfile.TemporaryDirectory() as folder, device_named(arguments.device) as device:
        place = (arguments.keep or Path(folder)).absolute()
        try:
            for one in rows(arguments, place, device):
                print(row(one), flush=True)
        except EdgeFlareError as error:
            raise SystemExit(f"failed: {error}") from error


if __name__ == "__main__":
    main()

"""How near a real campaign comes to its limit, and what several devices on this machine add.

python tests/benchmarks/campaign.py --data FOLDER [--repeats 3] [--only LeNet-1 ...] [--links local ...] [--fleet 1 2 4]

A dflare search asks both models about every input, so it can't be faster than the slower of the two:
its limit is min(rate of the device, rate of the original), the second on the cores that a device on
this machine leaves (one, at least). Both rates are those of bare loops, measured in the same run, each
alone. That is the device's rate times min(1, rate of the original / rate of the device). Beside both models
the search also mutates, scores, records and talks to the device on the same cores. The second table has several
local agents in one campaign: what they find must be what one finds, and cores are what limits them.
"""

import argparse
import os
import statistics
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np
from bare import bare_rates
from links import devices, write_inventory
from machine import busy_core_seconds, own_home
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table
from shared_models import PAIRS, Pair, images_of, input_of, runtime_of
from streams import recorded_stream

from edgeflare import Event, config_from, run_campaign
from edgeflare.campaign import FleetStatus, Stage, Step
from edgeflare.store import Store

LINKS = ("local", "SSH loopback")


class Case(NamedTuple):
    """A pair, its seeds, search queries for each at most (chains of like lengths, so that the search ends
    at once), and the options of the deployed model's runtime."""

    pair: Pair
    seeds: int
    queries: int
    options: dict[str, Any]


CASES = {
    "LeNet-1": Case(PAIRS["LeNet-1"], 500, 60, {}),
    "ResNet-8": Case(PAIRS["ResNet-8"], 500, 40, {}),
    "EfficientNet-Lite0": Case(PAIRS["EfficientNet-Lite0"], 120, 20, {}),
    "ResNet-8, slow kernels": Case(
        PAIRS["ResNet-8"], 200, 20, {"kernels": "reference", "delegate": False}
    ),
}
"""The last: devices slower than all else, as boards are."""


class Limit(NamedTuple):
    """Queries per second of bare loops."""

    device: float
    original: float

    @property
    def both(self) -> float:
        """What no search on both models exceeds."""
        return min(self.device, self.original)


class Search(NamedTuple):
    """The search stage of one campaign: queries of searches and confirmations, every (seed, status, trigger)."""

    queries_per_s: float
    busy: float | None
    cores: float | None
    found: frozenset[tuple[str, str, str | None]]


class Watch:
    """Takes the time of the search stage, and what the devices say meanwhile."""

    def __init__(self) -> None:
        self.began = self.ended = 0.0
        self.cores: list[float | None] = [None, None]
        self.busy: list[float] = []

    def __call__(self, event: Event) -> None:
        if isinstance(event, Stage) and event.name == "search":
            self.began = time.perf_counter()
            self.cores[0] = busy_core_seconds()
        elif isinstance(event, Step) and self.began:
            self.ended = time.perf_counter()
            self.cores[1] = busy_core_seconds()
        elif isinstance(event, FleetStatus) and self.began:
            self.busy += [one.busy for one in event.devices if one.busy is not None]

    @property
    def seconds(self) -> float:
        """Of the search stage."""
        return self.ended - self.began


def limit_of(data: Path, name: str, seconds: float) -> Limit:
    """Measure both models alone."""
    pair, options = CASES[name].pair, CASES[name].options
    samples = recorded_stream(images_of(data, pair), 40)
    left = max(1, (os.cpu_count() or 2) - 1)
    rates = []
    for path, stated, processes in ((pair.deployed, options, 1), (pair.original, {}, left)):
        model = data / path
        spec = input_of(model, pair.entry)
        runs = bare_rates(
            model, runtime_of(model), spec, samples, seconds, options=stated, processes=processes
        )
        rates.append(sum(run.queries_per_s for run in runs))
    return Limit(*rates)


def search(
    data: Path, name: str, device: Sequence[str], inventory: Path | None, seeds: Path
) -> Search:
    """Run one campaign."""
    pair, count, queries, options = CASES[name]
    watch = Watch()
    with TemporaryDirectory() as folder:
        values: dict[str, Any] = {
            "original": {"path": data / pair.original, "input": pair.entry},
            "deployed": {"path": data / pair.deployed, "input": pair.entry, "options": options},
            "seeds": {"path": seeds, "limit": count},
            "search": {
                "strategy": "dflare",
                "max_queries": queries,
                "timeout_s": 0,
                "options": {"variant": "text"},
            },
            "devices": list(device),
            "inventory": inventory,
            "out": Path(folder) / "campaign",
        }
        campaign = run_campaign(config_from(values, "benchmark"), progress=watch)
        with Store.open(campaign) as store:
            outcomes = list(store.outcomes())
    found = frozenset((one.seed_id, one.status.value, one.trigger) for one in outcomes)
    asked = sum(one.search_queries + one.confirmation_queries for one in outcomes)
    cores = [one for one in watch.cores if one is not None]
    return Search(
        asked / watch.seconds,
        statistics.fmean(watch.busy) if watch.busy else None,
        (cores[1] - cores[0]) / watch.seconds if len(cores) == 2 else None,
        found,
    )


@contextmanager
def seeds_of(data: Path, name: str) -> Iterator[Path]:
    """Give a seed archive with as many images as the case wants; mirrored and moved ones where few are shared."""
    pair, count = CASES[name].pair, CASES[name].seeds
    images = images_of(data, pair)
    if len(images) >= count:
        yield data / pair.images
        return
    with TemporaryDirectory() as folder:
        path = Path(folder) / "seeds.npz"
        np.savez(path, images=np.stack([_variant(images, index) for index in range(count)]))
        yield path


def _variant(images: NDArray[np.uint8], index: int) -> NDArray[np.uint8]:
    turn, which = divmod(index, len(images))
    image = images[which][:, ::-1] if turn % 2 else images[which]
    return np.roll(image, 8 * turn, axis=1)


def campaigns_table(
    data: Path, models: Sequence[str], links: tuple[str, ...], repeats: int, seconds: float
) -> Table:
    """Return how near single devices' campaigns come to their limits."""
    limits: dict[str, list[Limit]] = defaultdict(list)
    runs: dict[tuple[str, str], list[Search]] = defaultdict(list)
    with TemporaryDirectory() as folder, devices(links) as ways:
        inventory = Path(folder) / "devices.toml"
        names = write_inventory(inventory, ways)
        for _ in range(repeats):
            for model in models:
                limits[model].append(limit_of(data, model, seconds))
                with seeds_of(data, model) as seeds:
                    for link, device in names.items():
                        one = search(data, model, [device], inventory, seeds)
                        runs[model, link].append(one)
    table = Table(
        *("pair", "device", "queries/s", "limit", "of the limit"),
        *("device alone /s", "original alone /s", "device busy", "cores"),
    )
    for (model, link), several in runs.items():
        rate = statistics.median(one.queries_per_s for one in several)
        limit = statistics.median(one.both for one in limits[model])
        table.add_row(
            model,
            link,
            f"{rate:.1f}",
            f"{limit:.1f}",
            f"{rate / limit:.2f}",
            f"{statistics.median(one.device for one in limits[model]):.1f}",
            f"{statistics.median(one.original for one in limits[model]):.1f}",
            _shown([one.busy for one in several]),
            _shown([one.cores for one in several]),
        )
    return table


def fleets_table(data: Path, models: Sequence[str], counts: Sequence[int], repeats: int) -> Table:
    """Return what several local agents reach in one campaign. Ends the program where findings differ."""
    table = Table(
        "pair", "local agents", "queries/s", "of one agent", "same findings", "busy each", "cores"
    )
    for model in models:
        runs: dict[int, list[Search]] = defaultdict(list)
        with seeds_of(data, model) as seeds:
            for _ in range(repeats):
                for count in counts:
                    runs[count].append(search(data, model, ["local"] * count, None, seeds))
        first = runs[counts[0]]
        for count, several in runs.items():
            if any(one.found != first[0].found for one in several):
                raise SystemExit(f"{model}: {count} agents find other things than {counts[0]}")
            rate = statistics.median(one.queries_per_s for one in several)
            base = statistics.median(one.queries_per_s for one in first)
            table.add_row(
                model,
                str(count),
                f"{rate:.1f}",
                f"{rate / base:.2f}",
                f"{len(several[0].found)} of {len(first[0].found)}",
                _shown([one.busy for one in several]),
                _shown([one.cores for one in several]),
            )
    return table


def _shown(values: Sequence[float | None]) -> str:
    known = [value for value in values if value is not None]
    return f"{statistics.median(known):.2f}" if known else ""


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=3.0, help="of each bare loop")
    parser.add_argument("--only", nargs="+", choices=list(CASES), default=list(CASES))
    parser.add_argument("--links", nargs="*", choices=LINKS, default=LINKS)
    parser.add_argument("--fleet", nargs="*", type=int, default=[1, 2, 4])
    arguments = parser.parse_args()
    console = Console(width=150)
    with own_home():
        if arguments.links:
            links = tuple(arguments.links)
            console.print(
                campaigns_table(
                    arguments.data, arguments.only, links, arguments.repeats, arguments.seconds
                )
            )
        if arguments.fleet:
            console.print(
                fleets_table(arguments.data, arguments.only, arguments.fleet, arguments.repeats)
            )


if __name__ == "__main__":
    main()

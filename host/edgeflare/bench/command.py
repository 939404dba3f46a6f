"""The command that repeats a bench."""

import shlex
from collections.abc import Iterator, Sequence
from itertools import combinations
from pathlib import Path
from typing import Any

from edgeflare.bench.suite import Suite, load_suite, suite_about, suite_names
from edgeflare.errors import UsageError

_DATA = Path(__file__).parent  # stands in for the folder of --data: any that exists
_NUMBERS = ("seeds", "repeats", "max_queries")


def command(suite: Suite, devices: Sequence[str]) -> str | None:
    """Return the command that runs this suite on these devices; None where it is not a packaged one.

    It makes the same cells of the same files: paths may differ in the folders that --data named, and in
    where EdgeFlare is installed.
    """
    if suite.name not in suite_names():
        return None
    try:
        packaged = load_suite(suite.name, data=_DATA)
        flags = _flags(suite, packaged)
    except UsageError:
        return None
    if flags is None:
        return None
    asked = [
        part for device in devices if list(devices) != ["local"] for part in ("--device", device)
    ]
    return shlex.join(["edgeflare", "bench", "run", suite.name, *flags, *asked])


def _flags(suite: Suite, packaged: Suite) -> list[str] | None:
    """Return the folders of the packaged suite's files and the fewest flags that narrow it to this one.

    None where none do.
    """
    pairs = [pair.name for pair in suite.pairs]
    strategies = [strategy.name for strategy in suite.strategies]
    if len(pairs) == len(packaged.pairs):
        pairs = []
    if len(strategies) == len(packaged.strategies):
        strategies = []
    wanted = _compared(suite)
    choices = (some for count in range(len(_NUMBERS) + 1) for some in combinations(_NUMBERS, count))
    for chosen in choices:
        numbers = {key: getattr(suite, key) for key in chosen}
        narrowed = packaged.narrowed(pairs=pairs, strategies=strategies, **numbers)
        folders = _data_folders(suite, narrowed)
        if _compared(narrowed) == wanted and folders is not None:
            return [
                *(["--data", "FOLDER"] * max(folders, suite_about(suite.name).needs_data)),
                *(part for name in pairs for part in ("--pair", name)),
                *(part for name in strategies for part in ("--strategy", name)),
                *(
                    part
                    for key, value in numbers.items()
                    for part in (f"--{key.replace('_', '-')}", str(value))
                ),
            ]
    return None


def _compared(suite: Suite) -> dict[str, Any]:
    """Return a suite's values but for its paths."""
    values = suite.model_dump(mode="json")
    for pair in values["pairs"]:
        for key in ("original", "deployed", "seeds"):
            if pair[key]:
                pair[key].pop("path")
        pair["seeds"].pop("labels")
    return values


def _data_folders(suite: Suite, packaged: Suite) -> int | None:
    """Return in how many folders of --data a suite has the files of the packaged one; None: in none."""
    folders = set()
    for own, its in zip(_paths(suite), _paths(packaged), strict=True):
        if own is None or its is None:
            if own is not its:
                return None
        elif its.is_relative_to(_DATA):
            rest = its.relative_to(_DATA).parts
            if own.parts[-len(rest) :] != rest:
                return None
            folders.add(own.parts[: -len(rest)])
        elif own.parts[-2:] != its.parts[-2:]:
            return None
    return len(folders)


def _paths(suite: Suite) -> Iterator[Path | None]:
    for pair in suite.pairs:
        yield pair.original.path
        yield None if pair.deployed is None else pair.deployed.path
        yield pair.seeds.path
        yield pair.seeds.labels

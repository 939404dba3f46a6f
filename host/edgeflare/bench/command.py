"""The command that makes a bench like one that is there."""

import shlex
from collections.abc import Sequence
from itertools import combinations
from pathlib import Path
from typing import Any

from edgeflare.bench.suite import Suite, load_suite, suite_about, suite_names
from edgeflare.errors import UsageError

_NUMBERS = ("seeds", "repeats", "max_queries")


def command(suite: Suite, devices: Sequence[str]) -> str | None:
    """Return the command that runs this suite on these devices; None where it is not a packaged one.

    Packaged suites are compared in all but their paths, so that the command makes the same cells.
    """
    if suite.name not in suite_names():
        return None
    try:
        packaged = load_suite(suite.name, data=Path(__file__).parent)  # its paths are not looked at
        flags = _flags(suite, packaged)
    except UsageError:
        return None
    if flags is None:
        return None
    data = ["--data", "FOLDER"] if suite_about(suite.name).needs_data else []
    asked = [
        part for device in devices if list(devices) != ["local"] for part in ("--device", device)
    ]
    return shlex.join(["edgeflare", "bench", "run", suite.name, *data, *flags, *asked])


def _flags(suite: Suite, packaged: Suite) -> list[str] | None:
    """Return the fewest flags that narrow the packaged suite to this one; None where none do."""
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
        if _compared(narrowed) == wanted:
            return [
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

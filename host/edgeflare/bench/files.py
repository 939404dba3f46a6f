"""Check of the files that a suite names, before a bench begins."""

import importlib.util
from collections.abc import Iterator
from pathlib import Path

from edgeflare.bench.suite import Suite
from edgeflare.errors import UsageError


def check_files(suite: Suite) -> None:
    """Raise UsageError where a model or seeds are not there, or models can't be made for want of onnx."""
    missing = list(dict.fromkeys(path for path in _paths(suite) if not path.exists()))
    if missing:
        more = f" (and {len(missing) - 1} more)" if len(missing) > 1 else ""
        raise UsageError(
            f"the suite {suite.name} names files that are not there: {_looked_for(missing[0], suite)}"
            f"{more}; correct its paths or `--data`, or choose other pairs with `--pair`"
        )
    made = [pair.name for pair in suite.pairs if pair.perturb is not None]
    if made and importlib.util.find_spec("onnx") is None:
        raise UsageError(
            f"changing a model's weights, as for {made[0]!r}, needs onnx; install it with "
            "`pip install 'edgeflare[bench]'`"
        )


def _looked_for(path: Path, suite: Suite) -> str:
    """Return a file that is missing; below ``{data}`` with all folders that this stood for."""
    if len(suite.data) < 2 or not path.is_relative_to(suite.data[0]):
        return str(path)
    folders = ", ".join(map(str, suite.data))
    return f"{path.relative_to(suite.data[0])} in none of {folders}"


def _paths(suite: Suite) -> Iterator[Path]:
    for pair in suite.pairs:
        yield pair.original.path
        if pair.deployed is not None:
            yield pair.deployed.path
        yield pair.seeds.path

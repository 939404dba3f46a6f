"""What a command costs before it does anything: each against importing numpy, ONNX Runtime and LiteRT alone.

python tests/benchmarks/fixed_cost.py [--repeats 5] [--baseline CHECKOUT]

Each run is a process of its own, as a shell starts it, and the runs take turns; the figures are medians. One run of each
comes first and isn't counted, so that all find their compiled modules. `show` and `status` read the campaign of a demo.
CPU is that of the process and its children, the agent among them. `--baseline`: another checkout, too, in the same run.
"""

import argparse
import os
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from machine import own_home
from rich.console import Console
from rich.table import Table

REPOSITORY = Path(__file__).parents[2]
BARE = "import numpy, onnxruntime, ai_edge_litert.interpreter"
COMMAND = "import sys; from edgeflare.cli import main; sys.exit(main())"
GOALS = {"--help": 0.7, "demo": 5.0}
"""Times the bare import, at most."""


class Cost(NamedTuple):
    """What one process took."""

    wall_s: float
    cpu_s: float


class Commands:
    """The measured commands of one checkout; what they write lies in `folder`."""

    def __init__(self, checkout: Path, folder: Path) -> None:
        """Make the campaign that `show` and `status` read."""
        folder.mkdir()
        self._folder = folder
        self._numbers = count()
        self.environment = _environment(checkout)
        _run([*_edgeflare("demo", "--out", str(folder / "shown"))], self.environment)

    def lines(self) -> Iterator[tuple[str, list[str]]]:
        """Yield each command's name and its command line; a demo's folder is a new one each time."""
        yield "--help", _edgeflare("--help")
        yield "--version", _edgeflare("--version")
        yield "status", _edgeflare("status", str(self._folder / "shown"))
        yield "show", _edgeflare("show", str(self._folder / "shown"))
        yield "demo", _edgeflare("demo", "--out", str(self._folder / str(next(self._numbers))))


def _edgeflare(*arguments: str) -> list[str]:
    return [sys.executable, "-c", COMMAND, *arguments]


def _environment(checkout: Path) -> dict[str, str]:
    """Return this process's, with the checkout's packages, and with modules compiled once and for all."""
    packages = [str(checkout / name) for name in ("host", "agent", "mutators")]
    kept = {name: text for name, text in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return {**kept, "PYTHONPATH": os.pathsep.join(packages)}


def _run(command: list[str], environment: Mapping[str, str]) -> Cost:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    began = time.perf_counter()
    done = subprocess.run(
        command, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True
    )
    wall = time.perf_counter() - began
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode:
        raise SystemExit(f"{' '.join(command)} ended with {done.returncode}: {done.stderr}")
    return Cost(wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)


def measured(
    checkouts: Mapping[str, Path], repeats: int, folder: Path
) -> dict[tuple[str, str], Cost]:
    """Return the median costs, for each checkout and command; the bare import is `("", "import")`."""
    taken: dict[tuple[str, str], list[Cost]] = {}
    all_commands = {
        name: Commands(checkout.resolve(), folder / name) for name, checkout in checkouts.items()
    }
    plain = _environment(REPOSITORY)
    for _ in range(repeats + 1):
        taken.setdefault(("", "import"), []).append(_run([sys.executable, "-c", BARE], plain))
        for name, commands in all_commands.items():
            for what, line in commands.lines():
                taken.setdefault((name, what), []).append(_run(line, commands.environment))
    return {
        key: Cost(*(statistics.median(values) for values in zip(*costs[1:], strict=True)))
        for key, costs in taken.items()
    }


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--baseline", type=Path, help="another checkout")
    given = parser.parse_args()
    checkouts = {"this": REPOSITORY}
    if given.baseline:
        checkouts["baseline"] = given.baseline
    with own_home(), TemporaryDirectory() as folder:
        costs = measured(checkouts, given.repeats, Path(folder))
    bare = costs["", "import"]
    table = Table("code", "command", "wall s", "CPU s", "wall / import", "CPU / import", "goal")
    for (code, command), cost in costs.items():
        goal = GOALS.get(command)
        table.add_row(
            code, command, f"{cost.wall_s:.2f}", f"{cost.cpu_s:.2f}",
            f"{cost.wall_s / bare.wall_s:.2f}", f"{cost.cpu_s / bare.cpu_s:.2f}",
            f"{goal:.1f}" if goal else "",
        )  # fmt: skip
    Console(width=100).print(table)


if __name__ == "__main__":
    main()

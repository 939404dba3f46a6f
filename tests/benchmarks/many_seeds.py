"""Commands on campaigns of many seeds, against reading the rows of their database once.

python tests/benchmarks/many_seeds.py [--seeds 1000 10000 100000] [--repeats 5] [--pythonpath CHECKOUT]

A finished campaign of the demo's models on 100 seeds, with a survey of three inputs a seed, is searched once; its rows
are repeated under other names, up to the number of seeds. Each command runs in a process of its own, and so does the
reading of the rows, with the standard library's sqlite3. Wall-clock seconds, those of the start of Python and its
imports (the same command on 1 seed) in a row of their own, and without them as a ratio to reading the rows; medians.
The most memory is that of the process (resident). --pythonpath measures the commands of another checkout.
"""

import argparse
import os
import shutil
import sqlite3
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from rich.console import Console
from rich.table import Table

ROOT = Path(__file__).parents[2]
DEMO = ROOT / "host" / "edgeflare" / "assets" / "demo"
READ_ROWS = """
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1])
for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall():
    for row in connection.execute(f"SELECT * FROM {name}"):
        pass
"""
MODULE = (sys.executable, "-m", "edgeflare.cli")
COMMANDS = {
    "status": ("status",),
    "show": ("show",),
    "report, JSON": ("report", "--format", "json"),
    "report, CSV": ("report", "--format", "csv"),
    "report, JUnit": ("report", "--format", "junit"),
    "report, Markdown": ("report", "--format", "markdown"),
}
BASE = 100
"""Seeds of the campaign that is searched."""
BY_SEED = ("seed_answers", "outcomes", "surveyed_seeds", "survey_answers")


class Cost(NamedTuple):
    """What a process cost: wall-clock seconds and its most memory."""

    seconds: float
    megabytes: float


def searched(folder: Path) -> Path:
    """Search the campaign whose rows are repeated; return its folder."""
    models = ("--original", DEMO / "original.onnx", "--deployed", DEMO / "deployed.tflite")
    seeds = ("--seeds", DEMO / "seeds.npz", "--limit", BASE, "--timeout", 0)
    off = ("--pursuit-queries", 0)
    cost([*MODULE, "run", *map(str, (*models, *seeds, *off, "--out", folder))], ROOT)
    return folder


def repeated(source: Path, folder: Path, seeds: int) -> Path:
    """Return a copy of the campaign with its rows repeated for so many seeds."""
    shutil.copytree(source, folder)
    with closing(sqlite3.connect(folder / "campaign.sqlite")) as connection:
        known = connection.execute("SELECT count(*) FROM seeds").fetchone()[0]
        connection.execute("CREATE TEMP TABLE copies (first INTEGER)")
        starts = range(known, seeds, known)
        connection.executemany("INSERT INTO copies VALUES (?)", [(one,) for one in starts])
        _copy(connection, "seeds", {"position": "position + first", "id": "id || '-' || first"})
        for name in BY_SEED:
            change = {"seed": "seed + first"}
            if name == "survey_answers":  # an input that is equal to one before isn't counted
                made = "substr('0000000' || first, -8) || substr(sample_digest, 9)"
                change["sample_digest"] = (
                    f"CASE confident_deviation WHEN 1 THEN sample_digest ELSE {made} END"
                )
            _copy(connection, name, change)
        for name in (*BY_SEED[::-1], "seeds"):
            where = "position" if name == "seeds" else "seed"
            connection.execute(f"DELETE FROM {name} WHERE {where} >= ?", (seeds,))
        connection.commit()
        connection.execute("VACUUM")
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return folder


def _copy(connection: sqlite3.Connection, table: str, change: dict[str, str]) -> None:
    names = [row[1] for row in connection.execute(f"PRAGMA table_info({table})")]
    names = [one for one in names if one != "position" or one in change]
    values = (change.get(one, one) for one in names)
    order = "first, position"
    connection.execute(
        f"INSERT INTO {table} ({', '.join(names)}) SELECT {', '.join(values)} "
        f"FROM {table}, copies ORDER BY {order}"
    )


def cost(command: Sequence[str], checkout: Path) -> Cost:
    """Run a command and return what it cost."""
    paths = [str(checkout / name) for name in ("host", "agent", "mutators")]
    dropped = ("PYTHONDONTWRITEBYTECODE",)  # each start would compile all again
    environment = {key: value for key, value in os.environ.items() if key not in dropped}
    environment["PYTHONPATH"] = os.pathsep.join(paths)
    began = time.monotonic()
    running = subprocess.Popen(
        command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    )
    _, code, used = os.wait4(running.pid, 0)
    seconds = time.monotonic() - began
    if code:
        raise SystemExit(f"{' '.join(command)}: {(running.stderr or sys.stdin).read().decode()}")
    running.returncode = 0
    return Cost(seconds, used.ru_maxrss / 1024)


def median_cost(command: Sequence[str], checkout: Path, repeats: int) -> Cost:
    """Run a command as often as that, once more at first, and return the medians."""
    cost(command, checkout)
    costs = [cost(command, checkout) for _ in range(repeats)]
    return Cost(*(statistics.median(values) for values in zip(*costs, strict=True)))


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seeds", type=int, nargs="+", default=[1_000, 10_000, 100_000])
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--pythonpath", type=Path, default=ROOT)
    chosen = parser.parse_args()
    table = Table("seeds", "database", "", "seconds", "less the start", "ratio to rows", "memory")
    with TemporaryDirectory() as home:
        source = searched(Path(home) / "source")
        start: dict[str, Cost] = {}
        for seeds in (1, *chosen.seeds):
            folder = repeated(source, Path(home) / str(seeds), seeds)
            database = folder / "campaign.sqlite"
            reading = {"reading the rows": (sys.executable, "-c", READ_ROWS, str(database))}
            commands = {
                name: (*MODULE, words[0], str(folder), *words[1:])
                for name, words in COMMANDS.items()
            }
            for name, words in commands.items():
                if words[3] == "report":
                    commands[name] = (*words, "--out", str(Path(home) / f"report-{seeds}"))
            costs = {
                name: median_cost(command, chosen.pythonpath, chosen.repeats)
                for name, command in {**reading, **commands}.items()
            }
            start = start or costs
            rows = costs["reading the rows"].seconds - start["reading the rows"].seconds
            for name, one in costs.items():
                own = one.seconds - start[name].seconds
                table.add_row(
                    f"{seeds:,}",
                    f"{database.stat().st_size / seeds:,.0f} B a seed",
                    name,
                    f"{one.seconds:.2f}",
                    f"{own:.2f}",
                    f"{own / rows:.1f}" if rows > 0 else "",
                    f"{one.megabytes:.0f} MB",
                )
            table.add_section()
            shutil.rmtree(folder)
    Console(width=110).print(table)


if __name__ == "__main__":
    main()

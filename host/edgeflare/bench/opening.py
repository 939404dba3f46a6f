"""A bench's folder: what its ``bench.json`` says, and how far its cells are."""

import sqlite3
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, TypeAlias

from edgeflare.bench.cells import Cell, cells
from edgeflare.bench.suite import Suite, suite_from
from edgeflare.campaign.batch import description, write_description
from edgeflare.errors import UsageError
from edgeflare.store import Store

BENCH_NAME = "bench.json"
_DATABASE = "campaign.sqlite"

State: TypeAlias = Literal["finished", "unfinished", "missing"]


@dataclass(frozen=True)
class Bench:
    """A bench as its folder says: the suite, the devices it runs on, and the cells that can't be run.

    `failed` maps a cell's name to the sentence why. `inventory` and `python` are as in a campaign.
    """

    folder: Path
    suite: Suite
    devices: tuple[str, ...]
    failed: Mapping[str, str] = field(default_factory=dict)
    inventory: Path | None = None
    python: str | None = None

    @property
    def cells(self) -> tuple[Cell, ...]:
        """All its cells, in the order in which they are run."""
        return cells(self.suite)

    def campaign(self, cell: Cell) -> Path:
        """Return the folder of a cell's campaign, whether it is there or not."""
        return self.folder / "cells" / cell.name

    def state(self, cell: Cell) -> State:
        """Return how far a cell is; "missing" also where nothing but a torn beginning is there.

        Raises StoreError for a campaign that can't be read.
        """
        folder = self.campaign(cell)
        if not _holds_campaign(folder):
            return "missing"
        with Store.open(folder) as store:
            return "finished" if store.fact("finished") else "unfinished"


def open_bench(folder: Path) -> Bench:
    """Read a bench's folder. Raises UsageError where it is none, StoreError where it can't be read."""
    folder = Path(folder).absolute()
    path = folder / BENCH_NAME
    if not folder.is_dir():
        raise UsageError(f"there is no bench folder {folder}; check the path")
    if not path.is_file():
        raise UsageError(
            f"{folder} is not a bench's folder: it has no {BENCH_NAME}; check the path"
        )
    with description(path, "restore it from a copy, or run the bench anew") as said:
        return Bench(
            folder,
            suite_from(said["suite"], f"{path}: suite"),
            tuple(map(str, said["devices"])),
            {str(name): str(why) for name, why in said["failed"].items()},
            Path(said["inventory"]) if said.get("inventory") else None,
            said.get("python"),
        )


def write_bench(bench: Bench) -> None:
    """Put what `open_bench` reads on disk, atomically. Raises StoreError."""
    said = {
        "suite": bench.suite.model_dump(mode="json"),
        "devices": list(bench.devices),
        "inventory": bench.inventory and str(bench.inventory),
        "python": bench.python,
        "failed": dict(bench.failed),
    }
    write_description(bench.folder / BENCH_NAME, said)


def _holds_campaign(folder: Path) -> bool:
    """Whether the folder has a campaign's database that is more than an empty file.

    The tables are made in one transaction, so that there are all of them or none. One that can't be
    read is left for `Store.open` to explain.
    """
    database = folder / _DATABASE
    if not database.is_file():
        return False
    try:
        with closing(sqlite3.connect(f"{database.as_uri()}?mode=ro", uri=True)) as connection:
            return connection.execute("SELECT 1 FROM sqlite_master").fetchone() is not None
    except sqlite3.Error:
        return True

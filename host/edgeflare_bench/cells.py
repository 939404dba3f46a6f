"""The cells of a suite: one pair, one strategy, one repeat; each is a campaign."""

import sqlite3
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, TypeAlias

from pydantic import Field

from edgeflare._internal.records import as_json, of_json
from edgeflare.campaign.batch import description, write_description
from edgeflare.campaign.provenance import changed_fields, check_forced, check_unchanged
from edgeflare.campaign.settings.config import CampaignConfig, config_from
from edgeflare.campaign.settings.survey import SurveyConfig
from edgeflare.errors import UsageError
from edgeflare.store import Store
from edgeflare.store.database import check_database_files, translate_errors
from edgeflare.store.location import DATABASE_NAME
from edgeflare_bench.suite import PairConfig, Suite, plain


class Cell(NamedTuple):
    """A strategy on a pair; `repeat` counts from 0."""

    pair: str
    strategy: str
    repeat: int

    @property
    def name(self) -> str:
        """The cell's folder below ``cells/``, such as "LeNet-1/dflare/0"."""
        return f"{plain(self.pair)}/{self.strategy}/{self.repeat}"

    @property
    def words(self) -> str:
        """The cell's name in messages."""
        return f"{self.pair}, {self.strategy}, repeat {self.repeat}"


def cells(suite: Suite) -> tuple[Cell, ...]:
    """Return all cells by pair, repeat, strategy: an unfinished bench compares strategies, too."""
    found = []
    for pair in suite.pairs:
        running = suite.strategies_of(pair.name)
        for repeat in range(max((one.repeats or 0 for one in running), default=0)):
            found += [
                Cell(pair.name, one.name, repeat) for one in running if repeat < (one.repeats or 0)
            ]
    return tuple(found)


def made_model(folder: Path, pair: PairConfig) -> Path:
    """Return the path, in a bench's folder, of a deployed model that is made from the original."""
    return folder / "models" / f"{plain(pair.name)}.onnx"


BENCH_NAME = "bench.json"

CellState: TypeAlias = Literal["finished", "unfinished", "missing"]


@dataclass(frozen=True)
class Bench:
    """A bench's folder: the suite, the devices it runs on, and the cells that can't be run.

    `failed` maps a cell's name to the sentence why. `inventory` and `python` are as in a campaign.
    """

    folder: Annotated[Path, Field(exclude=True)]
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

    def config(self, cell: Cell) -> CampaignConfig:
        """Return the settings of a cell's campaign."""
        pair, strategy = self.suite.pair(cell.pair), self.suite.strategy(cell.strategy)
        limits = [limit for limit in (strategy.seeds, pair.seeds.limit) if limit is not None]
        made = pair.original.model_copy(update={"path": made_model(self.folder, pair)})
        return CampaignConfig(
            original=pair.original,
            deployed=pair.deployed or made,
            seeds=pair.seeds.model_copy(update={"limit": min(limits)}),
            devices=self.devices,
            python=self.python,
            inventory=self.inventory,
            out=self.campaign(cell),
            survey=SurveyConfig(enabled=False),  # all strategies have one budget
            search=self.suite.search(cell.strategy, cell.repeat),
            allow_disagreement=pair.allow_disagreement,
        )

    def state(self, cell: Cell) -> CellState:
        """Return how far a cell is; "missing" also where nothing but a torn beginning is there.

        Raises StoreError for a campaign that can't be read.
        """
        folder = self.campaign(cell)
        if not _holds_campaign(folder):
            return "missing"
        with Store.open(folder) as store:
            return "finished" if store.state.finished else "unfinished"


def open_bench(folder: Path) -> Bench:
    """Read a bench's folder. Raises UsageError where it is none, else StoreError."""
    folder = Path(folder).absolute()
    path = folder / BENCH_NAME
    if not folder.is_dir():
        raise UsageError(f"there is no bench folder {folder}; check the path")
    if not path.is_file():
        raise UsageError(
            f"{folder} is not a bench's folder: it has no {BENCH_NAME}; check the path"
        )
    with description(path, "restore it from a copy, or run the bench anew") as values:
        return of_json(Bench, {**values, "folder": folder})


def write_bench(bench: Bench) -> None:
    """Write what `open_bench` reads, atomically. Raises StoreError."""
    write_description(bench.folder / BENCH_NAME, as_json(bench))


def _holds_campaign(folder: Path) -> bool:
    """Whether the folder has a campaign's database that is more than an empty file.

    The tables are made in one transaction, so that there are all of them or none. One that can't be
    read is left for `Store.open` to explain.
    """
    database = folder / DATABASE_NAME
    if not database.is_file():
        return False
    with translate_errors(folder):
        check_database_files(folder, DATABASE_NAME)
    try:
        with closing(sqlite3.connect(f"{database.as_uri()}?mode=ro", uri=True)) as connection:
            return connection.execute("SELECT 1 FROM sqlite_master").fetchone() is not None
    except sqlite3.Error:
        return True


def check_same_files(bench: Bench, states: Mapping[Cell, CellState], *, force: bool) -> str | None:
    """Compare models, seeds and libraries with those of the cells that were run, pair by pair.

    Only pairs with something left to run are checked. Returns a notice where `force` lets changes
    pass, else raises UsageError naming them.
    """
    found: dict[str, None] = {}
    for pair in bench.suite.pairs:
        own = {cell: state for cell, state in states.items() if cell.pair == pair.name}
        if set(own.values()) == {"finished"}:
            continue
        for cell in (cell for cell, state in own.items() if state != "missing"):
            folder = bench.campaign(cell)
            with Store.open(folder) as store:
                config = config_from(store.campaign, str(folder))
                found |= dict.fromkeys(check_unchanged(config, store))
            break
    return check_forced(list(found), force=force)


def check_same_devices(bench: Bench, cell: Cell, *, force: bool) -> str | None:
    """Compare the devices that a cell has started with to those of its pair's other cells.

    A device must be what it was in any of them; one that none of them had, like any device of
    theirs. Returns a notice where `force` lets changes pass, and stores it in the cell's campaign;
    else raises UsageError naming them.
    """
    before: dict[str, list[dict[str, Any]]] = {}
    for other in bench.cells:
        if other.pair == cell.pair and other != cell and bench.state(other) != "missing":
            for name, described in devices_of(bench, other).items():
                if described not in before.setdefault(name, []):
                    before[name].append(described)
    everyone = [described for of_one in before.values() for described in of_one]
    found = []
    for name, described in devices_of(bench, cell).items():
        candidates = before.get(name, everyone)
        if not candidates or described in candidates:
            continue
        changes = changed_fields(candidates[-1], described)
        whose = "it was" if name in before else f"{next(iter(before))} was"
        found.append(f"{name} is not what {whose} in other cells of {cell.pair}: {changes}")
    notice = check_forced(found, force=force)
    if notice is not None:
        with Store.open(bench.campaign(cell)) as store:
            store.add_notice(notice)
    return notice


def devices_of(bench: Bench, cell: Cell) -> dict[str, dict[str, Any]]:
    """Return the fingerprint of each device of a cell's campaign, by name."""
    with Store.open(bench.campaign(cell)) as store:
        return store.fingerprints()

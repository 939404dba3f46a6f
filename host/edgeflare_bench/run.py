"""Runs and resumes a bench, cell by cell."""

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from edgeflare.campaign.batch import (
    CampaignRunner,
    Report,
    begin_campaign,
    check_free,
    opened_folder,
)
from edgeflare.campaign.context import RunContext
from edgeflare.campaign.events import BatchWatch, Event, Notice, Progress, Stage, silent
from edgeflare.campaign.fleet import fleet_devices
from edgeflare.devices import ConnectOptions
from edgeflare.devices.inventory import find_inventory
from edgeflare.errors import InventoryError, PreflightError, StrategyError, UsageError
from edgeflare.store import CampaignLock, Store
from edgeflare.store.database import disk_full_advice, translate_errors
from edgeflare_bench.cells import (
    BENCH_NAME,
    Bench,
    Cell,
    check_same_devices,
    check_same_files,
    devices_of,
    open_bench,
    write_bench,
)
from edgeflare_bench.made_models import make_again, make_model
from edgeflare_bench.suite import Suite, check_files
from edgeflare_bench.words.report import resume_command

if TYPE_CHECKING:
    from typing_extensions import Unpack


def run_bench(
    suite: Suite,
    folder: Path,
    *,
    devices: Sequence[str] = ("local",),
    inventory: Path | None = None,
    python: str | None = None,
    progress: BatchWatch = silent,
    **reach: "Unpack[ConnectOptions]",
) -> Path:
    """Run every cell of a suite, one after the other, and return the bench's folder.

    `devices`, `inventory`, `python` and `reach` are as in a campaign; `ask` is called once for each
    question. A cell that can't be run for a reason of its own (its models, seeds or
    strategy) is recorded in the bench's `failed`, reported as a notice, and the others are run.
    What concerns all cells ends the bench: raises UsageError where a file of the suite is missing,
    before anything is made, where the folder is taken, a device is unknown, or one is not what it
    was in another cell of the pair; StoreError or DeviceError; `resume_bench` goes on from there.
    """
    folder = Path(folder).absolute()
    _check_new(folder)
    check_free(folder, BENCH_NAME, "a bench")
    if not devices:
        raise UsageError("a bench needs a device: name one, such as local")
    inventory = find_inventory(inventory)
    check_files(suite)
    bench = Bench(folder, suite, tuple(devices), {}, inventory, python)
    fleet_devices(bench.config(bench.cells[0]))
    with opened_folder(folder, BENCH_NAME, "a bench"):
        _check_new(folder)
        with translate_errors(folder, resumable=False):
            write_bench(bench)
        with _disk_full_advice(folder):
            _BenchRun(bench, CampaignRunner(RunContext(**reach))).run(progress)
    return folder


def resume_bench(
    folder: Path,
    *,
    force: bool = False,
    devices: Sequence[str] = (),
    inventory: Path | None = None,
    progress: BatchWatch = silent,
    **reach: "Unpack[ConnectOptions]",
) -> Path:
    """Run the cells that are left, or do nothing where there are none; return the bench's folder.

    Finished cells stay as they are, an interrupted one goes on as `resume_campaign` does, failed
    ones are tried again. `devices` and `inventory` stand in for those the bench had, from now on.
    Raises UsageError, naming it, where a model, a seed file, a library or a device has changed,
    unless `force`; StoreError where another process runs the bench; else as `run_bench`.
    """
    folder = open_bench(folder).folder
    with _disk_full_advice(folder), CampaignLock(folder):
        bench = open_bench(folder)
        if devices or inventory:
            bench = replace(
                bench,
                devices=tuple(devices) or bench.devices,
                inventory=find_inventory(inventory) if inventory else bench.inventory,
            )
            fleet_devices(bench.config(bench.cells[0]))
            write_bench(bench)
        campaigns = CampaignRunner(RunContext(**reach))
        _BenchRun(bench, campaigns, force, bool(devices or inventory)).run(progress)
    return folder


@dataclass
class _BenchRun:
    """A bench whose lock this process holds; `changed` is the error that ends all of it."""

    bench: Bench
    campaigns: CampaignRunner
    force: bool = False
    new_devices: bool = False
    changed: UsageError | None = None

    def run(self, progress: BatchWatch) -> None:
        """Run all cells that aren't finished."""
        bench = self.bench
        states = {cell: bench.state(cell) for cell in bench.cells}
        if set(states.values()) == {"finished"}:
            return
        make_again(bench, states)
        notice = check_same_files(bench, states, force=self.force)
        for number, (cell, state) in enumerate(states.items(), 1):
            if state == "finished":
                continue
            folder = bench.campaign(cell)
            report = begin_campaign(progress, cell.words, folder, number, len(states))
            if notice is not None:
                report(Notice(notice))
                notice = None
            failed = self._try(cell, state == "unfinished", self._watch(cell, report))
            self._note(cell, failed)
            if failed is not None:
                report(Notice(f"{cell.name} can't be run, the other cells go on: {failed}"))
            report(ended="finished" if failed is None else "failed")

    def _try(self, cell: Cell, resumed: bool, watch: Progress) -> str | None:
        """Run a cell; return why it can't be run where that concerns this cell alone."""
        if resumed and not devices_of(self.bench, cell):  # it stored nothing useful: start it anew
            resumed = CampaignLock.is_held(self.bench.campaign(cell))
        try:
            if resumed:
                self._resume(cell, watch)
            else:
                self._start(cell, watch)
        except InventoryError:
            raise
        except (UsageError, StrategyError, PreflightError) as error:
            refused = resumed and cell.name not in self.bench.failed and not self.force
            if error is self.changed or (refused and isinstance(error, UsageError)):
                raise  # something has changed since the cell was interrupted, perhaps for all
            return str(error)
        return None

    def _start(self, cell: Cell, watch: Progress) -> None:
        make_model(self.bench.folder, self.bench.suite.pair(cell.pair))
        config = self.bench.config(cell)
        self.campaigns.run(config, self.bench.campaign(cell), name=cell.name, progress=watch)

    def _resume(self, cell: Cell, watch: Progress) -> None:
        folder = self.bench.campaign(cell)
        with Store.open(folder) as store:
            others = store.setting("devices") != list(self.bench.devices)
        changes: dict[str, Any] = {}
        if others or self.new_devices:
            changes["devices"] = self.bench.devices
            if self.bench.inventory is not None:
                changes["inventory"] = self.bench.inventory
        self.campaigns.resume(
            folder, force=self.force, changes=changes, name=cell.name, progress=watch
        )

    def _note(self, cell: Cell, why: str | None) -> None:
        """Store why a cell can't be run, or that it can."""
        failed = {name: text for name, text in self.bench.failed.items() if name != cell.name}
        if why is not None:
            failed[cell.name] = why
        if failed != self.bench.failed:
            self.bench = replace(self.bench, failed=failed)
            write_bench(self.bench)

    def _watch(self, cell: Cell, report: Report) -> Progress:
        """Return a cell's progress function, which compares its devices with other cells'."""
        compared = False

        def watch(event: Event) -> None:
            nonlocal compared
            if not compared and isinstance(event, Stage) and event.name == "seed queries":
                compared = True
                try:
                    notice = check_same_devices(self.bench, cell, force=self.force)
                except UsageError as error:
                    self.changed = error
                    raise
                if notice is not None:
                    report(Notice(notice))
            report(event)

        return watch


def _check_new(folder: Path) -> None:
    if (folder / BENCH_NAME).exists():
        raise UsageError(
            f"there is a bench in {folder} already; {_advice(folder)}, or choose another folder"
        )


def _disk_full_advice(folder: Path) -> AbstractContextManager[None]:
    return disk_full_advice(f"free some space, then {_advice(folder)}")


def _advice(folder: Path) -> str:
    return f"go on with `{resume_command(folder)}`"

"""A bench from its suite to its folder, cell by cell, and on from where it was interrupted."""

import shlex
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from edgeflare._internal.files import is_unused, remove_torn
from edgeflare.bench.cells import Cell, cell_config
from edgeflare.bench.changes import check_same_devices, check_same_files, devices_of
from edgeflare.bench.files import check_files
from edgeflare.bench.made_models import make_again, make_model
from edgeflare.bench.opening import BENCH_NAME, Bench, open_bench, write_bench
from edgeflare.bench.resolution import as_resolved
from edgeflare.bench.suite import Suite
from edgeflare.campaign.config import CampaignConfig, config_from
from edgeflare.campaign.fleet import Asked, Connect, Prompt, fleet_devices
from edgeflare.campaign.progress import Event, Notice, Stage
from edgeflare.campaign.reporter import resume_advice
from edgeflare.campaign.run import resume_campaign, run_campaign
from edgeflare.devices import connect
from edgeflare.devices.inventory import find_inventory
from edgeflare.errors import (
    DiskFullError,
    InventoryError,
    PreflightError,
    StrategyError,
    UsageError,
)
from edgeflare.store import CampaignLock, Store
from edgeflare.store.failures import no_space_to_begin, told_of
from edgeflare.store.lock import LOCK_NAMES

__all__ = ["Bench", "BenchProgress", "open_bench", "resume_bench", "run_bench"]


class BenchProgress(NamedTuple):
    """What happens in a cell, the `number`-th (from 1) of `total`; without an event it begins."""

    cell: Cell
    number: int
    total: int
    event: Event | None


Watch: TypeAlias = Callable[[BenchProgress], None]


def silent(progress: BenchProgress) -> None:
    """Tell nobody."""
    del progress


def run_bench(
    suite: Suite,
    folder: Path,
    *,
    devices: Sequence[str] = ("local",),
    inventory: Path | None = None,
    python: str | None = None,
    ask: Prompt | None = None,
    progress: Watch = silent,
    connect: Connect = connect,
) -> Path:
    """Run every cell of a suite, one after the other, and return the bench's folder.

    `devices`, `inventory`, `python`, `ask` and `connect` are as in a campaign; the user is asked each
    question once. A cell that can't be run for a reason of its own (its models, seeds or strategy) is
    noted in the bench's `failed`, told as a notice, and the others go on. What concerns all cells ends
    the bench: raises UsageError where a file of the suite is missing, before anything is made, where the
    folder is taken, a device is unknown, or one is not what it
    was in another cell of the pair; StoreError or DeviceError; `resume_bench` goes on from there.
    """
    folder = Path(folder).absolute()
    _check_free(folder)
    if not devices:
        raise UsageError("a bench needs a device: name one, such as local")
    inventory = find_inventory(inventory)
    check_files(suite)
    bench = Bench(folder, suite, tuple(devices), {}, inventory, python)
    fleet_devices(_config(bench, bench.cells[0]))
    with _full_disk_told(folder):
        with told_of(folder):
            folder.mkdir(parents=True, exist_ok=True)
        with CampaignLock(folder):
            _check_free(folder)
            with told_of(folder):
                remove_torn(folder)
            write_bench(bench)
            _Run(bench, False, False, ask, progress, connect).go()
    return folder


def resume_bench(
    folder: Path,
    *,
    force: bool = False,
    devices: Sequence[str] = (),
    inventory: Path | None = None,
    ask: Prompt | None = None,
    progress: Watch = silent,
    connect: Connect = connect,
) -> Path:
    """Run the cells that are left, or do nothing where there are none; return the bench's folder.

    Finished cells stay as they are, an interrupted one goes on as `resume_campaign` does, failed ones
    are tried again. `devices` and `inventory` stand in for those the bench had, from now on. Raises
    UsageError, naming it, where a model, a seed file, a library or a device has changed, unless
    `force`; StoreError where another process runs the bench; else as `run_bench`.
    """
    folder = open_bench(folder).folder
    with _full_disk_told(folder), CampaignLock(folder):
        bench = open_bench(folder)
        if devices or inventory:
            bench = replace(
                bench,
                devices=tuple(devices) or bench.devices,
                inventory=find_inventory(inventory) if inventory else bench.inventory,
            )
            fleet_devices(_config(bench, bench.cells[0]))
            write_bench(bench)
        _Run(bench, force, bool(devices or inventory), ask, progress, connect).go()
    return folder


class _Run:
    """A process's turn at a bench, whose lock it holds."""

    def __init__(
        self,
        bench: Bench,
        force: bool,
        new_devices: bool,
        ask: Prompt | None,
        progress: Watch,
        connect: Connect,
    ) -> None:
        self._bench = bench
        self._force = force
        self._new_devices = new_devices
        self._ask = Asked(ask) if ask is not None else None
        self._progress = progress
        self._connect = connect
        self._cells = bench.cells
        self._changed: UsageError | None = None  # why the bench can't go on, whichever the cell

    def go(self) -> None:
        """Run all cells that aren't finished."""
        states = {cell: self._bench.state(cell) for cell in self._cells}
        left = [cell for cell, state in states.items() if state != "finished"]
        if not left:
            return
        make_again(self._bench, states)
        notice = check_same_files(self._bench, states, force=self._force)
        for number, cell in enumerate(self._cells, 1):
            if cell not in left:
                continue
            watch = self._watch(cell, number)
            watch(None)
            if notice is not None:
                watch(Notice(notice))
                notice = None
            self._try(cell, states[cell] == "unfinished", watch)

    def _try(self, cell: Cell, begun: bool, watch: Callable[[Event | None], None]) -> None:
        """Run a cell; note why it can't be run where that is its own affair."""
        if begun and not devices_of(self._bench, cell):  # nothing that isn't as well begun again
            begun = CampaignLock.is_held(self._bench.campaign(cell))
        try:
            if begun:
                self._resume(cell, watch)
            else:
                self._begin(cell, watch)
        except InventoryError:
            raise
        except (UsageError, StrategyError, PreflightError) as error:
            refused = begun and cell.name not in self._bench.failed and not self._force
            if error is self._changed or (refused and isinstance(error, UsageError)):
                raise  # something has changed since the cell was interrupted, perhaps for all
            self._note(cell, str(error))
            watch(Notice(f"{cell.name} can't be run, the other cells go on: {error}"))
        else:
            self._note(cell, None)

    def _begin(self, cell: Cell, watch: Callable[[Event | None], None]) -> None:
        torn = self._bench.campaign(cell)
        with told_of(self._bench.folder):
            if torn.exists():
                shutil.rmtree(torn)
        make_model(self._bench.folder, self._bench.suite.pair(cell.pair))
        run_campaign(
            as_resolved(self._bench, cell, _config(self._bench, cell)),
            name=cell.name,
            ask=self._ask,
            progress=watch,
            connect=self._connect,
        )

    def _resume(self, cell: Cell, watch: Callable[[Event | None], None]) -> None:
        folder = self._bench.campaign(cell)
        with Store.open(folder) as store, CampaignLock(folder):
            others = store.setting("devices") != list(self._bench.devices)
            config = config_from(store.campaign, str(folder))
            shared = as_resolved(self._bench, cell, config)
            if shared != config:
                store.set_campaign(shared.model_dump(mode="json"))
        changes: dict[str, Any] = {}
        if others or self._new_devices:
            changes["devices"] = self._bench.devices
            if self._bench.inventory is not None:
                changes["inventory"] = self._bench.inventory
        resume_campaign(
            folder,
            force=self._force,
            changes=changes,
            name=cell.name,
            ask=self._ask,
            progress=watch,
            connect=self._connect,
        )

    def _note(self, cell: Cell, why: str | None) -> None:
        """Put on disk why a cell can't be run, or that it can."""
        failed = {name: text for name, text in self._bench.failed.items() if name != cell.name}
        if why is not None:
            failed[cell.name] = why
        if failed != self._bench.failed:
            self._bench = replace(self._bench, failed=failed)
            write_bench(self._bench)

    def _watch(self, cell: Cell, number: int) -> Callable[[Event | None], None]:
        """Return what tells a cell's events; advice to resume its campaign becomes the bench's.

        As soon as the campaign knows its devices they are compared with those of other cells.
        """
        own = resume_advice(self._bench.campaign(cell))
        compared = False

        def watch(event: Event | None) -> None:
            nonlocal compared
            if not compared and isinstance(event, Stage) and event.name == "seed queries":
                compared = True
                self._compare(cell, watch)
            if isinstance(event, Notice) and own in event.text:
                event = Notice(event.text.replace(own, _advice(self._bench.folder)))
            self._progress(BenchProgress(cell, number, len(self._cells), event))

        return watch

    def _compare(self, cell: Cell, watch: Callable[[Event | None], None]) -> None:
        try:
            notice = check_same_devices(self._bench, cell, force=self._force)
        except UsageError as error:
            self._changed = error
            raise
        if notice is not None:
            watch(Notice(notice))


def _config(bench: Bench, cell: Cell) -> CampaignConfig:
    return cell_config(
        bench.suite,
        cell,
        bench.folder,
        devices=bench.devices,
        inventory=bench.inventory,
        python=bench.python,
    )


def _check_free(folder: Path) -> None:
    if (folder / BENCH_NAME).exists():
        raise UsageError(
            f"there is a bench in {folder} already; {_advice(folder)}, or choose another folder"
        )
    with told_of(folder):
        if not is_unused(folder, LOCK_NAMES):
            raise UsageError(
                f"{folder} exists and is not an empty folder; choose another for the bench"
            )


def _advice(folder: Path) -> str:
    return f"go on with `{shlex.join(['edgeflare', 'bench', 'resume', str(folder)])}`"


@contextmanager
def _full_disk_told(folder: Path) -> Iterator[None]:
    """Advise what fits a bench where no space is left: going on, or running it anew."""
    try:
        yield
    except DiskFullError as error:
        if not (folder / BENCH_NAME).is_file():
            raise no_space_to_begin(folder) from error
        raise DiskFullError(
            f"No space is left on the disk of {folder}; what was found so far is kept there. "
            f"Free some space, then {_advice(folder)}."
        ) from error

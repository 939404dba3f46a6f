"""Virtual boards: up, down, status, and what these report."""

import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from edgeflare.devices import Device, connect, inventory
from edgeflare.errors import DeviceError
from edgeflare_lab.virtual.board_files import (
    BoardState,
    board_device,
    board_folder,
    board_keys,
    builds_in_use,
    claim_build,
    make_private,
    read_state,
    ssh_command,
    write_entry,
    write_state,
)
from edgeflare_lab.virtual.build import (
    Build,
    OnStep,
    build_key,
    ensure_build,
    read_build,
    remove_builds,
)
from edgeflare_lab.virtual.initrd import board_archive
from edgeflare_lab.virtual.machine import (
    BoardSettings,
    Machine,
    check_name,
    free_port,
    is_free,
    speaks_ssh,
)
from edgeflare_lab.virtual.rootfs import host_versions
from edgeflare_lab.virtual.tools import check_qemu


def _fields(record: object, *names: str) -> dict[str, Any]:
    return {name: record and getattr(record, name) for name in names}


@dataclass(frozen=True)
class BoardStatus:
    """How a board is; with `state` None it was never made."""

    name: str
    state: BoardState | None = None
    pid: int | None = None
    """Its qemu process; None where it does not run."""
    memory_used_mb: int | None = None
    """What it takes of this machine's memory now."""
    build: Build | None = None
    """None where the build is no longer in the cache; `up` makes it again."""
    device: Device | None = None
    folder: Path | None = None

    @property
    def running(self) -> bool:
        """Whether the machine runs."""
        return self.pid is not None

    @property
    def ssh(self) -> str:
        """The command line that opens a shell on it."""
        return "" if self.device is None else ssh_command(self.device)

    def to_json(self) -> dict[str, Any]:
        """Return it as plain values."""
        state, build = self.state, self.build
        return {
            "name": self.name,
            "made": state is not None,
            "running": self.running,
            "pid": self.pid,
            "since": None if state is None or not self.running else _iso_time(state.started),
            **_fields(state, "boot_s", "port", "cores", "memory_mb"),
            "memory_used_mb": self.memory_used_mb,
            **_fields(state, "cpu", "python"),
            **_fields(build, "debian", "kernel", "libraries", "image_mb", "built_s", "mirror"),
            "cache": build and str(build.folder),
            "folder": self.folder and str(self.folder),
            "ssh": self.ssh or None,
        }


@dataclass(frozen=True)
class UpReport:
    """What `board_up` did."""

    status: BoardStatus
    was_up: bool
    built_s: float | None
    """Seconds that the build took, None where a build was there."""
    notes: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class StopReport:
    """What `board_down` did."""

    name: str
    made: bool
    """Whether there was such a board."""
    ran: bool
    deleted: bool


def _iso_time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, tz=timezone.utc).isoformat(timespec="seconds")


def _ignore_step(what: str, seconds: float | None) -> None:
    """Do nothing."""


def board_up(settings: BoardSettings, on_step: OnStep = _ignore_step) -> UpReport:
    """Build a board where no build fits, boot it, and wait until it runs a program through SSH.

    Its entry is in the inventory then. A board that is up already stays as it is, unless `rebuild`
    is set. `on_step` is called for each step. Raises DeviceError and its kinds, DiskFullError,
    UsageError.
    """
    check_qemu()
    with _only_one(settings.name, on_step):
        folder = board_folder(settings.name)
        is_new = not folder.exists()
        machine = Machine(make_private(folder))
        try:
            return _up(settings, machine, folder, on_step)
        except BaseException:
            if is_new and not machine.console.exists():  # it never ran: nothing in there says why
                shutil.rmtree(folder, ignore_errors=True)
            raise


def _up(settings: BoardSettings, machine: Machine, folder: Path, on_step: OnStep) -> UpReport:
    state = read_state(folder)
    if state is not None and not settings.rebuild and _is_up(machine, state):
        return UpReport(board_status(settings.name), True, None, notes(settings, state))
    claim_build(folder, build_key(host_versions()))
    build, made = ensure_build(settings, on_step)
    machine.stop()
    state = _boot(settings, machine, folder, build, state, on_step)
    write_state(folder, state)
    if made:
        remove_builds(builds_in_use)
    return UpReport(board_status(settings.name), False, build.built_s if made else None, [])


def board_down(
    name: str = "virtual", delete: bool = False, on_step: OnStep = _ignore_step
) -> StopReport:
    """Stop a board; with `delete` remove its keys, its state and the builds that no board uses.

    Another command on the board is waited for, which is passed to `on_step`. Raises
    DeviceError, UsageError.
    """
    folder = board_folder(check_name(name))
    made = ran = False
    if folder.is_dir():
        with _only_one(name, on_step):
            made = folder.is_dir()
            machine = Machine(folder)
            ran = machine.pid() is not None
            machine.stop()
            if delete and made:
                shutil.rmtree(folder)
    if delete:
        remove_builds(builds_in_use)
    return StopReport(name, made=made, ran=ran, deleted=delete)


board_stopped = inventory.board_stopped


def board_status(name: str = "virtual") -> BoardStatus:
    """Return how a board is, without connecting to it. Raises UsageError."""
    folder = board_folder(check_name(name))
    state, machine = read_state(folder), Machine(folder)
    pid = machine.pid()
    if state is None:
        return BoardStatus(name, pid=pid)
    build = read_build(state.build)
    return BoardStatus(
        name,
        state=state,
        pid=pid,
        memory_used_mb=None if pid is None else machine.memory_mb(),
        build=build,
        device=board_device(folder, name, state.port),
        folder=folder,
    )


def notes(settings: BoardSettings, state: BoardState) -> list[str]:
    """Return how a running board differs from the settings and this machine's libraries."""
    unlike = [
        f"{what} {now} (asked: {asked})"
        for what, now, asked in (
            ("port", state.port, settings.port or state.port),
            ("cores", state.cores, settings.cores),
            ("memory", state.memory_mb, settings.memory_mb),
            ("cpu", state.cpu, settings.cpu),
        )
        if now != asked
    ]
    found = [f"it runs with {', '.join(unlike)}; take it down and up again to change that"]
    found = found if unlike else []
    if state.build != build_key(host_versions()):
        found.append(
            "this machine's libraries or EdgeFlare's recipe have changed since it was built; "
            "down and up again builds it anew"
        )
    return found


def _boot(
    settings: BoardSettings,
    machine: Machine,
    folder: Path,
    build: Build,
    last: BoardState | None,
    on_step: OnStep,
) -> BoardState:
    keys = board_keys(folder)
    own_files = board_archive(settings.name, keys.authorized, keys.host_key)
    port = _port(settings, last)
    device = board_device(folder, settings.name, port)
    began, started = time.monotonic(), time.time()
    on_step("booting", None)
    try:
        machine.start(build.folder, own_files, settings, port)
        machine.wait_for_ssh(port)
        write_entry(folder, device, keys.host_public)
        python = _python_of(device)
    except BaseException:
        machine.stop()
        raise
    boot_s = time.monotonic() - began
    on_step("booting", boot_s)
    return BoardState(
        build=build.folder.name,
        port=port,
        cores=settings.cores,
        memory_mb=settings.memory_mb,
        cpu=settings.cpu,
        started=started,
        boot_s=round(boot_s, 1),
        python=python,
    )


def _is_up(machine: Machine, state: BoardState) -> bool:
    return machine.pid() is not None and speaks_ssh(state.port)


def _port(settings: BoardSettings, last: BoardState | None) -> int:
    if settings.port is not None:
        if not is_free(settings.port):
            raise DeviceError(
                f"port {settings.port} of this machine is taken, or not this user's to take; give "
                "another with --port, or none"
            )
        return settings.port
    return last.port if last is not None and is_free(last.port) else free_port()


def _python_of(device: Device) -> str:
    transport = connect(device)
    try:
        code = "import platform; print(platform.python_version())"
        done = transport.run(["-c", code], timeout=device.timeout_s)
    finally:
        transport.close()
    if done.status != 0:
        raise DeviceError(
            f"the board's Python does not run: {done.stderr.strip() or 'it printed nothing'}"
        )
    return done.stdout.decode().strip()


@contextmanager
def _only_one(name: str, on_step: OnStep = _ignore_step) -> Iterator[None]:
    """Hold the board's lock, a file next to its folder, which may be deleted."""
    lock = FileLock(make_private(inventory.state_root()) / f".{name}.lock")
    try:
        lock.acquire(timeout=0.2)
    except Timeout:
        began, waiting = time.monotonic(), "waiting for another command on this board"
        on_step(waiting, None)
        lock.acquire()
        on_step(waiting, time.monotonic() - began)
    try:
        yield
    finally:
        lock.release()

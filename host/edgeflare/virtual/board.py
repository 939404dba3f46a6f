"""Virtual boards: up, down and status."""

import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from edgeflare.devices import Device, connect
from edgeflare.devices.managed import is_managed, state_root
from edgeflare.errors import DeviceError
from edgeflare.virtual.build import Build, Tell, build_key, ensure_build, read_build, remove_builds
from edgeflare.virtual.entry import board_device, write_entry
from edgeflare.virtual.initrd import board_archive
from edgeflare.virtual.keys import board_keys
from edgeflare.virtual.machine import Machine, free_port, is_free, speaks_ssh
from edgeflare.virtual.needs import look_for_qemu
from edgeflare.virtual.places import board_folder, make_private
from edgeflare.virtual.report import BoardStatus, StopReport, UpReport
from edgeflare.virtual.settings import BoardSettings, check_name
from edgeflare.virtual.state import State, builds_in_use, claim_build, read_state, write_state
from edgeflare.virtual.wheels import host_versions


def _unheard(what: str, seconds: float | None) -> None:
    """Hear of a step and say nothing."""


def board_up(settings: BoardSettings, tell: Tell = _unheard) -> UpReport:
    """Build a board where no build fits, boot it, and wait until it runs a program through SSH.

    Its entry is in the inventory then. A board that is up already is left as it is, unless it shall be
    rebuilt. `tell` hears of each step. Raises DeviceError and its kinds, DiskFullError, UsageError.
    """
    look_for_qemu()
    with _only_one(settings.name, tell):
        folder = board_folder(settings.name)
        is_new = not folder.exists()
        machine = Machine(make_private(folder))
        try:
            return _up(settings, machine, folder, tell)
        except BaseException:
            if is_new and not machine.console.exists():  # it never ran: nothing in there tells why
                shutil.rmtree(folder, ignore_errors=True)
            raise


def _up(settings: BoardSettings, machine: Machine, folder: Path, tell: Tell) -> UpReport:
    state = read_state(folder)
    if state is not None and not settings.rebuild and _is_up(machine, state):
        return UpReport(board_status(settings.name), True, None, notes(settings, state))
    claim_build(folder, build_key(host_versions()))
    build, made = ensure_build(settings, tell)
    machine.stop()
    state = _boot(settings, machine, folder, build, state, tell)
    write_state(folder, state)
    if made:
        remove_builds(builds_in_use)
    return UpReport(board_status(settings.name), False, build.built_s if made else None, [])


def board_down(name: str = "virtual", delete: bool = False, tell: Tell = _unheard) -> StopReport:
    """Stop a board; with `delete` remove its keys, its state and the builds that no board uses.

    Another command on the board is waited for, which `tell` hears of. Raises DeviceError, UsageError.
    """
    folder = board_folder(check_name(name))
    made = ran = False
    if folder.is_dir():
        with _only_one(name, tell):
            made = folder.is_dir()
            machine = Machine(folder)
            ran = machine.pid() is not None
            machine.stop()
            if delete and made:
                shutil.rmtree(folder)
    if delete:
        remove_builds(builds_in_use)
    return StopReport(name, made=made, ran=ran, deleted=delete)


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


def board_stopped(device: Device) -> bool:
    """Return whether a device is a virtual board of this user that does not run."""
    return is_managed(device) and Machine(board_folder(device.name)).pid() is None


def notes(settings: BoardSettings, state: State) -> list[str]:
    """Return what a running board is otherwise than the settings and this machine's libraries say."""
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
    last: State | None,
    tell: Tell,
) -> State:
    keys = board_keys(folder)
    own_files = board_archive(settings.name, keys.authorized, keys.host_key)
    port = _port(settings, last)
    device = board_device(folder, settings.name, port)
    began, started = time.monotonic(), time.time()
    tell("booting", None)
    try:
        machine.start(build.folder, own_files, settings, port)
        machine.wait_for_ssh(port)
        write_entry(folder, device, keys.host_public)
        python = _python_of(device)
    except BaseException:
        machine.stop()
        raise
    boot_s = time.monotonic() - began
    tell("booting", boot_s)
    return State(
        build=build.folder.name,
        port=port,
        cores=settings.cores,
        memory_mb=settings.memory_mb,
        cpu=settings.cpu,
        started=started,
        boot_s=round(boot_s, 1),
        python=python,
    )


def _is_up(machine: Machine, state: State) -> bool:
    return machine.pid() is not None and speaks_ssh(state.port)


def _port(settings: BoardSettings, last: State | None) -> int:
    if settings.port is not None:
        if not is_free(settings.port):
            raise DeviceError(
                f"port {settings.port} of this machine is taken, or not this user's to take; give another with "
                "--port, or none"
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
def _only_one(name: str, tell: Tell = _unheard) -> Iterator[None]:
    """Hold the board's lock, which lies beside its folder, for that may be deleted."""
    lock = FileLock(make_private(state_root()) / f".{name}.lock")
    try:
        lock.acquire(timeout=0.2)
    except Timeout:
        began, waiting = time.monotonic(), "waiting for another command on this board"
        tell(waiting, None)
        lock.acquire()
        tell(waiting, time.monotonic() - began)
    try:
        yield
    finally:
        lock.release()

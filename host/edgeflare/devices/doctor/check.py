"""Checks a device step by step, from the connection to one inference."""

from collections.abc import Callable, Iterator
from pathlib import Path

from edgeflare.devices.doctor import hardware, software
from edgeflare.devices.doctor.facts import read_system
from edgeflare.devices.doctor.result import CheckLine, bad, failed, good, line_of, note
from edgeflare.devices.doctor.software import agent
from edgeflare.devices.inventory import Device
from edgeflare.devices.provisioning.probe import (
    Probe,
    check_cache,
    check_numpy,
    check_python,
    check_runtime,
    probe,
)
from edgeflare.devices.runtimes import RuntimeName, runtime_for
from edgeflare.devices.transports.adb.phones import PhoneLockedError
from edgeflare.devices.transports.base import Login, Transport
from edgeflare.errors import (
    AuthenticationError,
    DeviceDiskFullError,
    DeviceProtocolError,
    DeviceTimeoutError,
    EdgeFlareError,
    HostKeyError,
    ModelError,
    UnreachableError,
)

__all__ = ["CheckLine", "check"]

_SHOWN = 3
_LONGEST = 60


def check(
    device: Device,
    transport_factory: Callable[[], Transport],
    *,
    model: Path | None = None,
    on_line: Callable[[CheckLine], None] | None = None,
) -> list[CheckLine]:
    """Check all that a run needs, from the connection to one inference; return a line for each.

    The inference uses `model`, or else EdgeFlare's own small models on each installed runtime.
    Faults of the device don't raise: the failed line says what is wrong and what to do, a last line
    what was skipped. `on_line` is called with each line at once. Raises UsageError and
    ModelError for the path `model` alone.
    """
    runtime = None if model is None else device.runtime or runtime_for(model)
    if model is not None and not model.is_file():
        raise ModelError(f"there is no model file {model}")
    lines = []
    for line in _lines(device, transport_factory, model, runtime):
        lines.append(line)
        if on_line is not None:
            on_line(line)
    return lines


def _lines(
    device: Device,
    transport_factory: Callable[[], Transport],
    model: Path | None,
    runtime: RuntimeName | None,
) -> Iterator[CheckLine]:
    try:
        transport = transport_factory()
    except EdgeFlareError as error:
        yield from _not_connected(error, device)
        return
    try:
        yield from _device_lines(transport, device, model, runtime)
    finally:
        transport.close()


def _device_lines(
    transport: Transport, device: Device, model: Path | None, runtime: RuntimeName | None
) -> Iterator[CheckLine]:
    yield from _connected(transport, device)
    try:
        system = read_system(transport, device)
        probed = probe(transport, device)
    except UnreachableError as error:
        yield failed("connection", error)
        return
    except DeviceTimeoutError as error:
        advice = f"log in there and see how long `{device.python} -c 'import numpy'` takes"
        yield bad("python", str(error), advice)
        return
    except EdgeFlareError as error:
        yield failed("python", error, advice_is_last=isinstance(error, DeviceProtocolError))
        return
    named = runtime or device.runtime
    wanted: tuple[RuntimeName, ...] = (named,) if named else ("tflite", "onnx")
    yield from _shell(system.printed, device)
    yield software.python(probed, system.facts)
    if check_python(probed) is None:
        yield software.numpy(probed, wanted)
        yield software.runtimes(probed, wanted)
    yield from software.calibration(wanted, device)
    yield line_of("cache folder", check_cache(probed), probed.root)
    disk = hardware.disk(probed, system.facts, model.stat().st_size if model else 0)
    yield disk
    yield from hardware.machine(system)
    first = _blocking_problem(probed)
    if first is not None:
        yield _not_tried(first)
        return
    tried = tuple(name for name in wanted if check_runtime(probed, name) is None)
    try:
        yield from agent(transport, probed, device, tried, model, one_is_enough=len(wanted) > 1)
    except DeviceDiskFullError as error:
        if disk.ok:  # a quota, or another user's file since then
            yield failed("disk", error)
        yield _not_tried("disk")


def _blocking_problem(probed: Probe) -> str | None:
    """Return the name of the first line that must be fixed before an agent can start."""
    problems = (check_python(probed), check_numpy(probed), check_cache(probed))
    names = ("python", "numpy", "cache folder")
    return next(
        (name for name, problem in zip(names, problems, strict=True) if problem is not None), None
    )


def _connected(transport: Transport, device: Device) -> Iterator[CheckLine]:
    """Yield the lines of an open connection."""
    login = getattr(transport, "login", None)
    if not isinstance(login, Login):
        yield good("connection", _place(device))
        return
    place = "" if device.labgrid is None else f"labgrid place {device.labgrid.place}, "
    to = f"{place}{device.transport} to {login.user}@{login.address}"
    yield good("connection", f"{to}, where {login.server} answers")
    detail = f"{login.by}; host key {login.host_key} is trusted"
    advice = f"set a key up with: {login.key_command}"
    if login.by == "password":
        yield note("key", f"logged in with a {detail}", advice)
    elif login.by == "nothing":
        yield note("key", f"the server asks for neither key nor password: {detail}", None)
    else:
        yield good("key", f"logged in with {detail}" if login.by else detail)


def _not_connected(error: EdgeFlareError, device: Device) -> Iterator[CheckLine]:
    """Yield the lines of a failed connection; it is fine where only the login failed."""
    if isinstance(error, PhoneLockedError) or not isinstance(
        error, AuthenticationError | HostKeyError
    ):
        yield failed("connection", error)
        return
    yield good("connection", f"{_place(device)}: an SSH server answers")
    line = failed("key", error)
    if isinstance(error, AuthenticationError) and device.key is not None:
        other = "name the right one as `key` in the device's inventory entry"
        line = line._replace(fix=f"{line.fix}, or {other}" if line.fix else other)
    yield line


def _shell(printed: str, device: Device) -> Iterator[CheckLine]:
    """Yield the line on what the login shell prints around a command's output."""
    lines = [line.strip() for line in printed.splitlines() if line.strip()]
    if not lines:
        if device.transport != "local":
            yield good("shell", "prints nothing of its own")
        return
    shown = " | ".join(line[:_LONGEST] for line in lines[:_SHOWN])
    more = f" and {len(lines) - _SHOWN} more lines" if len(lines) > _SHOWN else ""
    if device.transport == "local":
        yield note("shell", f"the Python command prints beside its answer: {shown}{more}")
        return
    yield note(
        "shell",
        f"a login prints: {shown}{more}; EdgeFlare reads past it, sftp and scp do not",
        "let only people see it: put what prints below this line in ~/.bashrc there: "
        "case $- in *i*) ;; *) return;; esac",
    )


def _not_tried(first: str) -> CheckLine:
    """Return the line on the skipped checks, for which `first` must be fixed."""
    packages = "numpy, runtimes, " if first == "python" else ""
    rest = "delegate, round trip, bandwidth, smoke inference, lease"
    return note("not tried", f"{packages}{rest}: mend {first} first")


def _place(device: Device) -> str:
    if device.transport == "local":
        return "a process on this machine"
    if device.labgrid is not None:
        return device.address
    return f"{device.transport} to {device.host or device.serial or device.name}"

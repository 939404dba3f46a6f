"""A device tried step by step, for people."""

from collections.abc import Callable, Iterator
from pathlib import Path

from edgeflare.devices.doctor import connection, hardware, software
from edgeflare.devices.doctor.facts import read_system
from edgeflare.devices.doctor.result import CheckLine, bad, failed
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
from edgeflare.devices.transports.base import Transport
from edgeflare.errors import (
    DeviceDiskFullError,
    DeviceProtocolError,
    DeviceTimeoutError,
    EdgeFlareError,
    ModelError,
    UnreachableError,
)

__all__ = ["CheckLine", "check"]


def check(
    device: Device,
    transport_factory: Callable[[], Transport],
    *,
    model: Path | None = None,
    tell: Callable[[CheckLine], None] | None = None,
) -> list[CheckLine]:
    """Try all that a run needs, from the connection to one inference, a line each.

    The inference is one of `model`, or of small models that come with EdgeFlare on each runtime that is
    installed. Never raises for the device's faults: the line that failed says what and what to do; what
    could not be tried after it is left out, and a line says so. `tell` is given each line at once.
    Raises UsageError and ModelError for the path `model` alone.
    """
    runtime = None if model is None else device.runtime or runtime_for(model)
    if model is not None and not model.is_file():
        raise ModelError(f"there is no model file {model}")
    lines = []
    for line in _lines(device, transport_factory, model, runtime):
        lines.append(line)
        if tell is not None:
            tell(line)
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
        yield from connection.not_connected(error, device)
        return
    try:
        yield from _device_lines(transport, device, model, runtime)
    finally:
        transport.close()


def _device_lines(
    transport: Transport, device: Device, model: Path | None, runtime: RuntimeName | None
) -> Iterator[CheckLine]:
    yield from connection.connected(transport, device)
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
    yield from connection.shell(system.printed, device)
    yield software.python(probed, system.facts)
    if check_python(probed) is None:
        yield from software.packages(probed, wanted)
    yield from software.calibration(wanted, device)
    yield software.cache_folder(probed)
    disk = hardware.disk(probed, system.facts, model.stat().st_size if model else 0)
    yield disk
    yield from hardware.machine(system)
    first = _blocking_problem(probed)
    if first is not None:
        yield connection.not_tried(first)
        return
    tried = tuple(name for name in wanted if check_runtime(probed, name) is None)
    try:
        yield from agent(transport, probed, device, tried, model, one_is_enough=len(wanted) > 1)
    except DeviceDiskFullError as error:
        if disk.ok:  # a quota, or somebody else's file meanwhile
            yield failed("disk", error)
        yield connection.not_tried("disk")


def _blocking_problem(probed: Probe) -> str | None:
    """Return the line without whose mending no agent can be tried."""
    problems = (check_python(probed), check_numpy(probed), check_cache(probed))
    names = ("python", "numpy", "cache folder")
    return next(
        (name for name, problem in zip(names, problems, strict=True) if problem is not None), None
    )

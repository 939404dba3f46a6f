"""A device tried step by step, for people."""

import statistics
from collections.abc import Callable, Iterator
from typing import NamedTuple

from edgeflare.devices.agent_link import AgentLink
from edgeflare.devices.device import Device
from edgeflare.devices.limits import Limits
from edgeflare.devices.probe import (
    Lack,
    Probe,
    cache_lack,
    how_to_install,
    numpy_lack,
    probe,
    python_lack,
    runtime_lack,
)
from edgeflare.devices.provision import make_space, provision_agent
from edgeflare.devices.report import DeviceReport, ask_report
from edgeflare.devices.transport import Transport
from edgeflare.errors import EdgeFlareError

_PINGS = 20
_LITTLE_SPACE = 64_000_000


class CheckLine(NamedTuple):
    """One thing that was looked at: what was seen and, where that is amiss, what to do."""

    name: str
    ok: bool
    detail: str
    fix: str | None


def check(device: Device, transport_factory: Callable[[], Transport]) -> list[CheckLine]:
    """Try connection, Python, numpy, runtimes, cache folder, disk, the agent and its round trip.

    Never raises for the device's faults: the line that failed says what and what to do; what could
    not be tried after it is left out.
    """
    try:
        transport = transport_factory()
    except EdgeFlareError as error:
        return [CheckLine("connection", False, str(error), None)]
    lines = [CheckLine("connection", True, _reached(device), None)]
    try:
        lines += _try_device(transport, device)
    finally:
        transport.close()
    return lines


def _try_device(transport: Transport, device: Device) -> Iterator[CheckLine]:
    try:
        seen = probe(transport, device)
    except EdgeFlareError as error:
        yield CheckLine("python", False, str(error), None)
        return
    yield _line("python", python_lack(seen), f"{seen.python}, {seen.executable}, {seen.arch}")
    if python_lack(seen):
        return
    yield _line("numpy", numpy_lack(seen), seen.numpy or "")
    yield _runtimes(seen, device)
    yield _line("cache folder", cache_lack(seen), seen.root)
    yield _disk(seen)
    if numpy_lack(seen) is None and cache_lack(seen) is None:
        yield from _try_agent(transport, seen, device)


def _runtimes(seen: Probe, device: Device) -> CheckLine:
    """Judge the runtime that the device is meant to have, or else whether there is any."""
    wanted = (device.runtime,) if device.runtime else ("tflite", "onnx")
    lacks = [runtime_lack(seen, runtime) for runtime in wanted]
    detail = ", ".join(f"{package} {version}" for package, version in seen.runtimes.items())
    if None in lacks:
        return CheckLine("runtimes", True, detail, None)
    if device.runtime or seen.runtimes:
        return _line("runtimes", lacks[0], detail)
    advice = f"for ONNX models: {how_to_install(seen, 'onnxruntime')}"
    first = lacks[0].fix if lacks[0] else ""
    return CheckLine("runtimes", False, "none installed", f"for TFLite models: {first}; {advice}")


def _disk(seen: Probe) -> CheckLine:
    if seen.free_bytes is None:
        return CheckLine("disk", True, "the system doesn't tell how much is free", None)
    enough = seen.free_bytes >= _LITTLE_SPACE
    detail = f"{seen.free_bytes / 1e6:.0f} MB free at {seen.root}"
    return CheckLine("disk", enough, detail, None if enough else make_space(seen))


def _try_agent(transport: Transport, seen: Probe, device: Device) -> Iterator[CheckLine]:
    try:
        path = provision_agent(transport, seen, device)
        link = AgentLink.open(transport, path, seen.root, Limits())
    except EdgeFlareError as error:
        yield CheckLine("agent", False, str(error), None)
        return
    try:
        about = link.hello["device"]
        yield CheckLine(
            "agent", True, f"answers, on {about.get('board') or about.get('cpu')}", None
        )
        report = ask_report(link)
        yield CheckLine("lease", True, _holders(report), None)
        if report.temperature_c is not None:
            slowed = ", slowed down by heat or weak power" if report.throttled else ""
            yield CheckLine("temperature", True, f"{report.temperature_c:.1f} C{slowed}", None)
        middle = statistics.median(link.round_trip() for _ in range(_PINGS))
        yield CheckLine("round trip", True, f"{1000 * middle:.2f} ms", None)
    except EdgeFlareError as error:
        yield CheckLine("round trip", False, str(error), None)
    finally:
        link.close()


def _holders(report: DeviceReport) -> str:
    held = [f"{lease.about}, for {lease.since_s / 60:.0f} minutes" for lease in report.leases]
    return f"in use by {'; '.join(held)}" if held else "free"


def _line(name: str, lack: Lack | None, detail: str) -> CheckLine:
    if lack is None:
        return CheckLine(name, True, detail, None)
    return CheckLine(name, False, lack.what, lack.fix)


def _reached(device: Device) -> str:
    return "a process on this machine" if device.transport == "local" else f"ssh to {device.host}"

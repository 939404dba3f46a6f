"""Checks of Python, numpy, runtimes, and of a running agent."""

import shlex
import statistics
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from edgeflare.devices.doctor.facts import Facts
from edgeflare.devices.doctor.inference import (
    InferenceResult,
    Trial,
    answers_equal,
    difference,
    open_link,
    products_saturate,
    try_model,
)
from edgeflare.devices.doctor.result import CheckLine, bad, failed, good, line_of, note
from edgeflare.devices.inventory import Device
from edgeflare.devices.provisioning.probe import (
    OLDEST_PYTHON,
    Probe,
    check_numpy,
    check_python,
    check_runtime,
    how_to_install,
    with_interpreter,
)
from edgeflare.devices.provisioning.scripts import run_script
from edgeflare.devices.provisioning.upload import provision_agent
from edgeflare.devices.reported import texts
from edgeflare.devices.runtimes import RuntimeName, calibration_file
from edgeflare.devices.session.agent_link import AgentLink
from edgeflare.devices.session.device_report import DeviceReport, request_report
from edgeflare.devices.session.flow_control import measure_bandwidth
from edgeflare.devices.transports.base import Transport
from edgeflare.errors import DeviceDiskFullError, EdgeFlareError, UsageError

_OLD_TFLITE = "tflite-runtime"


def python(probed: Probe, facts: Facts) -> CheckLine:
    """Check the Python; where it is too old, name a newer one on the device."""
    problem = check_python(probed)
    if problem is None:
        return good("python", f"{probed.python}, {probed.executable}, {probed.arch}")
    newer = next((path for path in facts.pythons if _is_newer(path)), None)
    if newer is None:
        return bad("python", problem.what, problem.fix)
    command = with_interpreter(probed.command, newer)
    return bad(
        "python",
        problem.what,
        f"{newer} is there: try it with `edgeflare devices check {shlex.quote(probed.name)} "
        "--python "
        f'{shlex.quote(command)}`, then give python = "{command}" in the device\'s inventory entry',
    )


def calibration(wanted: tuple[RuntimeName, ...], device: Device) -> Iterator[CheckLine]:
    """Yield the line of a calibration file that is named and is not on this machine."""
    try:
        for runtime in wanted:
            calibration_file(runtime, device.options)
    except UsageError as error:
        yield bad("calibration", str(error), None)


def numpy(probed: Probe, wanted: tuple[RuntimeName, ...]) -> CheckLine:
    """Check numpy, and whether the TFLite runtime was built for its version."""
    problem = check_numpy(probed)
    if problem is not None:
        return bad("numpy", problem.what, problem.fix)
    if not _clashes(probed):
        return good("numpy", probed.numpy or "")
    clash = check_runtime(probed, "tflite")
    assert clash is not None  # noqa: S101 - that is what a clash is
    if any(check_runtime(probed, name) is None for name in wanted) or "tflite" not in wanted:
        return note("numpy", f"{clash.what}: TFLite models can't run", clash.fix)
    return bad("numpy", clash.what, clash.fix)


def _clashes(probed: Probe) -> bool:
    """Whether a TFLite runtime is there and numpy is too new for it."""
    return (
        probed.numpy is not None
        and _OLD_TFLITE in probed.runtimes
        and check_runtime(probed, "tflite") is not None
    )


def runtimes(probed: Probe, wanted: tuple[RuntimeName, ...]) -> CheckLine:
    """Check what is installed; a clash with numpy is in the line of numpy."""
    problems = [
        None if name == "tflite" and _clashes(probed) else check_runtime(probed, name)
        for name in wanted
    ]
    detail = ", ".join(f"{package} {version}" for package, version in probed.runtimes.items())
    if None in problems:
        return good("runtimes", detail)
    first = problems[0]
    if len(wanted) == 1 or probed.runtimes:
        return line_of("runtimes", first, detail)
    return bad(
        "runtimes",
        f"none is installed for {probed.executable} on {probed.name}",
        f"for TFLite models: {first.fix if first else ''}; "
        f"for ONNX models: {how_to_install(probed, 'onnxruntime')}",
    )


def _is_newer(path: str) -> bool:
    """Whether a path such as ``/usr/bin/python3.11`` names a Python that serves."""
    _, _, minor = path.rpartition("python3.")
    return minor.isdigit() and (3, int(minor)) >= OLDEST_PYTHON


_SMOKE = "smoke inference"
_PINGS = 20
_SLOW_BYTES_A_SECOND = 500_000
_SAMPLE_BYTES = 224 * 224 * 3
_PROVIDERS_S = 60.0
_PROVIDERS = """
def main():
    import onnxruntime
    return {"providers": onnxruntime.get_available_providers()}
"""


def agent(
    transport: Transport,
    probed: Probe,
    device: Device,
    runtimes: Sequence[RuntimeName],
    model: Path | None,
    *,
    one_is_enough: bool,
) -> Iterator[CheckLine]:
    """Yield the lines that need an agent; the last of them says who uses the device.

    `runtimes` are those that can be tried, with `model` or else a small one of EdgeFlare's own;
    `one_is_enough`: where one of them works, another that fails is only noted. Where others hold
    the device, no model is loaded. Raises DeviceDiskFullError before the first line.
    """
    agents = _AgentRestarter(transport, probed, device, runtimes)
    try:
        agents.upload()
        link = agents.link()
        report = request_report(link)
        round_trips = [link.round_trip() for _ in range(_PINGS)]
        bandwidth = measure_bandwidth(link.round_trip, min(round_trips))
        lease = _lease(report)
        names = () if lease.noted else runtimes
        trials = [try_model(agents.link, transport, probed, device, name, model) for name in names]
        products = None
        if "onnx" in names:
            with suppress(EdgeFlareError):  # the trial above tells what is wrong
                products = products_saturate(agents.link(), transport, probed, device)
    except DeviceDiskFullError:
        raise
    except EdgeFlareError as error:
        yield failed("agent", error)
        return
    finally:
        agents.close()
    if trials:
        yield _delegate(transport, probed, trials)
    yield _round_trip(round_trips)
    yield _bandwidth(bandwidth)
    optional = one_is_enough and any(
        isinstance(trial.on_device, InferenceResult) for trial in trials
    )
    for trial in trials:
        yield _smoke(trial, optional=optional)
    if products is not None:
        yield _int8_products(saturate=products)
    if runtimes and not trials:
        yield note(_SMOKE, "not tried: others use the device")
    yield lease


class _AgentRestarter:
    """Shares one agent among the checks, and starts a new one where a model has crashed it."""

    def __init__(
        self, transport: Transport, probed: Probe, device: Device, runtimes: Sequence[RuntimeName]
    ) -> None:
        self._transport = transport
        self._seen = probed
        self._device = device
        self._runtimes = runtimes
        self._path = ""
        self._link: AgentLink | None = None

    def upload(self) -> None:
        """Upload the agent. Raises DeviceDiskFullError, DeviceError."""
        self._path = provision_agent(self._transport, self._seen, self._device, self._runtimes)

    def link(self) -> AgentLink:
        """Return the link to a running agent. Raises what `AgentLink.open` raises."""
        if self._link is not None and self._link.failure is not None:
            self.close()
        if self._link is None:
            self._link = open_link(self._transport, self._path, self._seen, self._device)
        return self._link

    def close(self) -> None:
        """End the agent."""
        if self._link is not None:
            self._link.close()
            self._link = None


def _lease(report: DeviceReport) -> CheckLine:
    held = [f"{lease.about}, for {lease.since_s / 60:.0f} minutes" for lease in report.leases]
    return note("lease", f"in use by {'; '.join(held)}") if held else good("lease", "free")


def _round_trip(seconds: Sequence[float]) -> CheckLine:
    times = [1000 * one for one in seconds]
    middle = statistics.median(times)
    return good("round trip", f"{middle:.2f} ms ({min(times):.2f} to {max(times):.2f} ms)")


def _bandwidth(speed: float | None) -> CheckLine:
    """Return how many bytes per second go to the device; None: too many to be measured."""
    if speed is None:
        return good("bandwidth", "more than can be measured with 1 MB")
    detail = f"{speed / 1e6:.3g} MB/s towards the device"
    if speed >= _SLOW_BYTES_A_SECOND:
        return good("bandwidth", detail)
    return note(
        "bandwidth",
        f"{detail}: a 224 x 224 colour image takes {_SAMPLE_BYTES / speed:.1f} s",
        "use a cable, or a Wi-Fi network nearer by",
    )


def _delegate(transport: Transport, probed: Probe, trials: Sequence[Trial]) -> CheckLine:
    """Return the line on what is in effect; ok if nothing ran, which another line explains."""
    words = [
        f"{trial.runtime}: {trial.on_device.accelerated_by}"
        for trial in trials
        if isinstance(trial.on_device, InferenceResult)
    ]
    used = {
        provider
        for trial in trials
        if isinstance(trial.on_device, InferenceResult)
        for provider in trial.on_device.effect.get("providers") or ()
    }
    if not used:
        return good("delegate", "; ".join(words) or "nothing is in effect")
    try:
        answer = run_script(transport, probed.command, _PROVIDERS, {}, _PROVIDERS_S)
        others = [one for one in texts(answer, "providers") if one not in used]
    except (EdgeFlareError, ValueError):
        others = []
    more = f" (also there: {', '.join(others)})" if others else " (no other provider is there)"
    return good("delegate", "; ".join(words) + more)


def _int8_products(*, saturate: bool) -> CheckLine:
    """Return the line on the sums of products of unsigned and signed bytes."""
    if not saturate:
        return good("int8 products", "exact by onnxruntime")
    return note(
        "int8 products",
        "onnxruntime saturates sums of products of unsigned and signed bytes on this processor "
        "(x86-64 without VNNI): int8 models with unsigned activations and signed weights answer "
        "otherwise than on processors with VNNI and on arm64",
        "for the same answers everywhere quantise with reduce_range=True (7-bit weights), or with "
        "unsigned weights; for those of the others here, state the runtime option exact_int8 = true",
    )


def _smoke(trial: Trial, *, optional: bool) -> CheckLine:
    on_device, on_host = trial.on_device, trial.on_host
    if isinstance(on_device, EdgeFlareError):
        line = failed(_SMOKE, on_device)
        detail = line.detail
        if trial.model.name not in detail:
            detail = f"{trial.model.name} by {trial.runtime}: {detail}"
        fix = line.fix or "try another model, with --model"
        return note(_SMOKE, detail, fix) if optional else bad(_SMOKE, detail, fix)
    detail = f"{trial.model.name}: {on_device.median_ms:.2f} ms by {on_device.runtime}"
    if on_device.changed:
        return note(
            _SMOKE,
            f"{detail}; {on_device.changed} gives another answer to the same input than the first "
            "inference: triggers found there may not be found again",
            "look for an accelerator or driver that doesn't repeat itself: try the CPU alone",
        )
    count = len(on_device.seconds)
    detail += f", the same answer {count} times"
    if on_host is None:
        return good(_SMOKE, detail)
    if isinstance(on_host, EdgeFlareError):
        why = failed(_SMOKE, on_host).detail
        return good(_SMOKE, f"{detail}; not compared with this machine's answer: {why}")
    apart = difference(on_device, on_host)
    if answers_equal(on_device, on_host):
        rounding = f", up to rounding ({apart:.1g})" if apart else ""
        return good(_SMOKE, f"{detail}; the answer equals this machine's{rounding}")
    steps = " steps of its quantisation" if on_device.output.quantization else ""
    return note(
        _SMOKE,
        f"{detail}; the answer differs from this machine's ({on_host.runtime}) by up to "
        f"{apart:.3g}{steps}: triggers found on one may not hold on the other",
    )

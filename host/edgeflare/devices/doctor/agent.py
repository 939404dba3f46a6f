"""The agent at work: delegate, round trip, bandwidth, a smoke inference, and who uses the device."""

import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from edgeflare.devices.agent_link import AgentLink
from edgeflare.devices.bandwidth import measure_bandwidth
from edgeflare.devices.device import Device
from edgeflare.devices.device_scripts import run_script
from edgeflare.devices.doctor.line import CheckLine, bad, failed, good, note
from edgeflare.devices.doctor.smoke import (
    Answer,
    Trial,
    difference,
    is_alike,
    open_link,
    try_model,
)
from edgeflare.devices.probe import Probe
from edgeflare.devices.provision import provision_agent
from edgeflare.devices.report import DeviceReport, ask_report
from edgeflare.devices.reported import texts
from edgeflare.devices.runtimes import RuntimeName
from edgeflare.devices.transport import Transport
from edgeflare.errors import DeviceDiskFullError, EdgeFlareError

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


@dataclass(frozen=True)
class _Told:
    """Measurements of one agent: round trips in seconds, bytes per second (None: too fast to measure)."""

    report: DeviceReport
    round_trips: Sequence[float]
    bandwidth: float | None


def agent(
    transport: Transport,
    seen: Probe,
    device: Device,
    runtimes: Sequence[RuntimeName],
    model: Path | None,
    *,
    one_will_do: bool,
) -> Iterator[CheckLine]:
    """Yield the lines that need an agent; the last of them says who uses the device.

    `runtimes` are those that can be tried, with `model` or else a small one of EdgeFlare's own;
    `one_will_do`: where one of them works, another that fails is only noted. Where others hold the
    device, no model is loaded. Raises DeviceDiskFullError before the first line.
    """
    agents = _Agents(transport, seen, device, runtimes)
    try:
        agents.bring()
        told = _asked(agents.link())
        lease = _lease(told.report)
        names = () if lease.noted else runtimes
        trials = [try_model(agents.link, transport, seen, device, name, model) for name in names]
    except DeviceDiskFullError:
        raise
    except EdgeFlareError as error:
        yield failed("agent", error)
        return
    finally:
        agents.close()
    if trials:
        yield _delegate(transport, seen, trials)
    yield _round_trip(told)
    yield _bandwidth(told)
    spare = one_will_do and any(isinstance(trial.there, Answer) for trial in trials)
    for trial in trials:
        yield _smoke(trial, spare=spare)
    if runtimes and not trials:
        yield note(_SMOKE, "not tried: others use the device")
    yield lease


class _Agents:
    """One agent for all, and a new one where a model has brought it down."""

    def __init__(
        self, transport: Transport, seen: Probe, device: Device, runtimes: Sequence[RuntimeName]
    ) -> None:
        self._transport = transport
        self._seen = seen
        self._device = device
        self._runtimes = runtimes
        self._path = ""
        self._link: AgentLink | None = None

    def bring(self) -> None:
        """Bring the agent there. Raises DeviceDiskFullError, DeviceError."""
        self._path = provision_agent(self._transport, self._seen, self._device, self._runtimes)

    def link(self) -> AgentLink:
        """Return the link to an agent that lives. Raises what `AgentLink.open` raises."""
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


def _asked(link: AgentLink) -> _Told:
    report = ask_report(link)
    round_trips = [link.round_trip() for _ in range(_PINGS)]
    return _Told(report, round_trips, measure_bandwidth(link.round_trip, min(round_trips)))


def _lease(report: DeviceReport) -> CheckLine:
    held = [f"{lease.about}, for {lease.since_s / 60:.0f} minutes" for lease in report.leases]
    return note("lease", f"in use by {'; '.join(held)}") if held else good("lease", "free")


def _round_trip(told: _Told) -> CheckLine:
    times = [1000 * one for one in told.round_trips]
    middle = statistics.median(times)
    return good("round trip", f"{middle:.2f} ms ({min(times):.2f} to {max(times):.2f} ms)")


def _bandwidth(told: _Told) -> CheckLine:
    speed = told.bandwidth
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


def _delegate(transport: Transport, seen: Probe, trials: Sequence[Trial]) -> CheckLine:
    """Tell what is in effect; `ok` even where nothing ran: the smoke inference's line says why."""
    words = [
        f"{trial.runtime}: {trial.there.accelerated_by}"
        for trial in trials
        if isinstance(trial.there, Answer)
    ]
    used = {
        provider
        for trial in trials
        if isinstance(trial.there, Answer)
        for provider in trial.there.effect.get("providers") or ()
    }
    if not used:
        return good("delegate", "; ".join(words) or "nothing is in effect")
    try:
        answer = run_script(transport, seen.command, _PROVIDERS, {}, _PROVIDERS_S)
        others = [one for one in texts(answer, "providers") if one not in used]
    except (EdgeFlareError, ValueError):
        others = []
    more = f" (also there: {', '.join(others)})" if others else " (no other provider is there)"
    return good("delegate", "; ".join(words) + more)


def _smoke(trial: Trial, *, spare: bool) -> CheckLine:
    there, here = trial.there, trial.here
    if isinstance(there, EdgeFlareError):
        line = failed(_SMOKE, there)
        detail = line.detail
        if trial.model.name not in detail:
            detail = f"{trial.model.name} by {trial.runtime}: {detail}"
        fix = line.fix or "try another model, with --model"
        return note(_SMOKE, detail, fix) if spare else bad(_SMOKE, detail, fix)
    detail = f"{trial.model.name}: {there.median_ms:.2f} ms by {there.runtime}"
    if here is None:
        return good(_SMOKE, detail)
    if isinstance(here, EdgeFlareError):
        why = failed(_SMOKE, here).detail
        return good(_SMOKE, f"{detail}; not compared with this machine's answer: {why}")
    apart = difference(there, here)
    if is_alike(there, here):
        rounding = f", up to rounding ({apart:.1g})" if apart else ""
        return good(_SMOKE, f"{detail}; the answer equals this machine's{rounding}")
    steps = " steps of its quantisation" if there.output.quantization else ""
    return note(
        _SMOKE,
        f"{detail}; the answer differs from this machine's ({here.runtime}) by up to "
        f"{apart:.3g}{steps}: triggers found on one may not hold on the other",
    )

"""The agent's report on its device: health and leases."""

from dataclasses import dataclass
from typing import Any

from edgeflare._internal.records import JsonRecord
from edgeflare._version import __version__
from edgeflare.devices.cpu_names import shown_name
from edgeflare.devices.reported import count, number, seconds, sensors, tables, text, truth, words
from edgeflare.devices.session.agent_link import AgentLink
from edgeflare_agent.wire import VERSION, Frame, Kind

_PINGS = 5
_MOST_LEASES = 100


@dataclass(frozen=True)
class LeaseHeld:
    """A lease on a device: its holder (`about` for people), and its age in seconds."""

    about: str
    holder: str
    since_s: float
    share: bool


@dataclass(frozen=True)
class DeviceReport(JsonRecord):
    """The current state of a device. None: not reported.

    `agent` is the agent's version, which is this host's, and its protocol; `runtimes` is {package:
    version}; `board` is the board's name, else the CPU's; `load` the system's load average over the
    last minute; `round_trip_s` the least of several. `throttle_reasons` are what slows the device
    down now, in words, `throttled_since_boot` what has since it was booted; `battery_percent` is 0
    to 100, `gpu_load` 0 to 1.
    """

    name: str
    agent: str
    python: str
    numpy: str
    runtimes: dict[str, str]
    board: str | None
    leases: tuple[LeaseHeld, ...]
    temperature_c: float | None
    frequency_mhz: float | None
    throttled: bool | None
    memory_available_bytes: int | None
    disk_free_bytes: int | None
    load: float | None
    round_trip_s: float
    throttle_reasons: tuple[str, ...] = ()
    throttled_since_boot: tuple[str, ...] = ()
    battery_percent: float | None = None
    battery_charging: bool | None = None
    gpu_load: float | None = None
    gpu_mhz: float | None = None


def request_report(link: AgentLink) -> DeviceReport:
    """Return an agent's report. Raises DeviceError and its kinds."""
    hello, about = link.hello, link.hello["device"]
    round_trip = min(link.round_trip() for _ in range(_PINGS))

    def read(frame: Frame) -> DeviceReport:
        state = frame.header
        return DeviceReport(
            name=link.name,
            agent=f"{__version__}, protocol {VERSION}",
            python=str(hello.get("python")),
            numpy=str(hello.get("numpy")),
            runtimes=hello.get("runtimes") or {},
            board=about.get("board") or shown_name(about.get("cpu") or "") or None,
            leases=tuple(map(_lease, tables(state, "leases")[:_MOST_LEASES])),
            **sensors(state),
            memory_available_bytes=count(state, "memory_available_bytes"),
            disk_free_bytes=count(state, "disk_free_bytes"),
            load=_load(state),
            round_trip_s=round_trip,
            throttled_since_boot=words(state, "throttled_since_boot"),
        )

    answer: DeviceReport = link.request(Kind.STATUS, {}, read=read).result()
    return answer


def _lease(entry: dict[str, Any]) -> LeaseHeld:
    return LeaseHeld(
        text(entry, "about") or "",
        text(entry, "holder") or "",
        seconds(entry, "since_s") or 0.0,
        truth(entry, "share") or False,
    )


def _load(state: dict[str, Any]) -> float | None:
    """Return the load average over a minute, which some agents give with those over more."""
    load = state.get("load")
    return number({"load": load[0] if isinstance(load, list) and load else load}, "load", 0, 1e6)

"""The current status of a device of a running campaign."""

from dataclasses import asdict, dataclass
from enum import Enum
from typing import Any


class State(str, Enum):
    """Whether a device answers."""

    UP = "up"
    AWAY = "away"  # not reached at the moment; tried again and again
    RETIRED = "retired"  # takes no more part; `detail` says why


@dataclass(frozen=True)
class DeviceStatus:
    """One device of a running campaign.

    `queries` were answered since the campaign's process began, `queries_per_s` over the last seconds;
    `requests` brought them, one or several each.
    `in_flight` requests are on the wire or at the agent, `depth` is how many of them keep the device
    busy. `busy` is the fraction of time that the agent worked, 0 to 1. Latencies are seconds from
    sending a request to its reply, queueing at the device included. `throttle_reasons` are what slows
    the device down now, in words. None: not known, or the device doesn't tell.
    """

    name: str
    state: State
    detail: str = ""
    queries: int = 0
    queries_per_s: float = 0.0
    in_flight: int = 0
    depth: int = 0
    busy: float | None = None
    latency_median_s: float | None = None
    latency_p99_s: float | None = None
    temperature_c: float | None = None
    throttled: bool | None = None
    reconnects: int = 0
    requests: int = 0
    throttle_reasons: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Return a JSON object with the same names."""
        return asdict(self) | {"state": self.state.value}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> "DeviceStatus":
        """Return what `to_json` described. Raises TypeError or ValueError for anything else."""
        reasons = tuple(data.get("throttle_reasons", ()))
        return cls(**{**data, "state": State(data["state"]), "throttle_reasons": reasons})

"""Budgets of a search, a device and a campaign, and the counters of a search."""

from dataclasses import dataclass
from typing import NamedTuple


class Budget(NamedTuple):
    """Limits of the search from one seed.

    `queries`: search queries; `host_queries`: inputs given to the original alone (those of one
    request that the oracle's floor keeps from the device may go past it); results within these two don't
    depend on speed. `seconds`: time spent on this chain alone: its own steps, as processor time; the original, as
    processor time where it has one thread on the CPU, else as wall time; the deployed model, as wall time on the
    device. Neither the link nor waiting in a queue counts. None: no limit.

    Differences: DFLARE's 180 seconds are wall time, of a search that has the machine to itself.
    """

    queries: int | None = 2000
    seconds: float | None = 180.0
    host_queries: int | None = 1_000_000


class FleetLimits(NamedTuple):
    """Query limits of the devices, and how long the scheduler waits for a device that is away.

    Once one device was asked `device_queries` inputs, or all together `total_queries`, with those about seeds and
    those that only measure, no new job
    begins there; jobs under way end. A device away for `handover_s` gives its jobs back to a feed that it
    shares; with no device left for `patience_s` the run ends.
    """

    device_queries: int | None = None
    total_queries: int | None = None
    handover_s: float = 30.0
    patience_s: float = 600.0


@dataclass
class Counters:
    """Four of the five kinds of query (what measures devices belongs to no search), and the seconds as `Budget` counts them.

    A query is one input given to both models (or to the device alone). `host_only` counts inputs
    given to the original alone. `round_trips` counts the search's requests to the device, each of one
    or more inputs. `device_seconds` is the devices' own part of all time.
    """

    seed: int = 0
    search: int = 0
    confirmation: int = 0
    host_only: int = 0
    round_trips: int = 0
    seconds: float = 0.0
    device_seconds: float = 0.0

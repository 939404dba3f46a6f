"""What a chain may spend and what it has spent."""

from dataclasses import dataclass
from typing import NamedTuple


class Budget(NamedTuple):
    """Limits of the search from one seed.

    `queries`: search queries; results within it don't depend on speed. `seconds`: time spent on this
    chain alone (its own steps and the original model: processor time on the host; the deployed
    model: time on the device); waiting in a queue doesn't count. None: no limit.
    """

    queries: int | None = 2000
    seconds: float | None = 180.0


@dataclass
class Counters:
    """The four kinds of query, and the seconds as `Budget` counts them.

    A query is one input given to both models (or to the device alone). `host_only` counts inputs
    given to the original alone.
    """

    seed: int = 0
    search: int = 0
    confirmation: int = 0
    host_only: int = 0
    seconds: float = 0.0

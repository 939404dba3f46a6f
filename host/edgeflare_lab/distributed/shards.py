"""The seeds of one part of a campaign, given out in shards that become smaller towards the end."""

import math
from collections import deque
from collections.abc import Sequence
from typing import Any, TypeAlias

_SHARES = 4
"""A shard has this part of what is left to its worker."""
_FIRST_SEEDS = 4
"""Least seeds of a shard, for each device, before one has ended."""
_MOST_SEEDS = 1024
_LEAST_S = 0.5
"""Seconds that a shard takes at least: its begin and its end cost some milliseconds."""


Sent: TypeAlias = tuple[Any, Sequence[str] | None, frozenset[str]]
"""A shard that Dask knows: its future, its seeds' ids, and the addresses of the workers that may do it."""


class Shards:
    """The shards of one part, for these seeds; None: of one shard for all."""

    def __init__(self, seed_ids: Sequence[str] | None) -> None:
        self._left = deque(seed_ids or ())
        self._whole = seed_ids is None
        self._seed_s: float | None = None
        self.finished = 0
        """Seeds of the shards that have ended."""
        self.values: list[Any] = []
        """What the shards returned."""

    @property
    def are_left(self) -> bool:
        """Whether there is a shard to give out."""
        return self._whole or bool(self._left)

    def take(self, workers: int, devices: int) -> Sequence[str] | None:
        """Return the next shard, where so many workers have so many devices."""
        if self._whole:
            self._whole = False
            return None
        if self._seed_s is None:
            least = _FIRST_SEEDS * devices / workers
        else:
            least = _LEAST_S / max(self._seed_s, _LEAST_S / _MOST_SEEDS)
        share = len(self._left) / (_SHARES * workers)
        size = min(math.ceil(max(share, least)), _MOST_SEEDS, len(self._left))
        return [self._left.popleft() for _ in range(size)]

    def give_back(self, seed_ids: Sequence[str] | None) -> None:
        """Take a shard back that was not finished; it is given out again."""
        if seed_ids is None:
            self._whole = True
        else:
            self._left.extendleft(reversed(seed_ids))

    def end(self, seed_ids: Sequence[str] | None, value: Any, seconds: float) -> None:
        """Note that a shard has ended, after so many seconds of a worker."""
        self.values.append(value)
        if seed_ids:
            self.finished += len(seed_ids)
            self._seed_s = seconds / len(seed_ids)

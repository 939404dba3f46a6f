"""How long to wait before another try: exponential backoff with full jitter."""

import random
from dataclasses import dataclass


@dataclass(frozen=True)
class Backoff:
    """Delays that are drawn from 0 to a limit, which doubles from `first_s` to `most_s` seconds.

    Full jitter: many hosts that lost one device, or one host that lost many, don't come back in step.
    (M. Brooker, "Exponential Backoff And Jitter", AWS Architecture Blog, 2015.)
    """

    first_s: float = 1.0
    most_s: float = 60.0

    def __post_init__(self) -> None:
        if not 0 < self.first_s <= self.most_s:
            raise ValueError(f"0 < first_s <= most_s is needed, got {self.first_s}, {self.most_s}")

    def limit_s(self, tries: int) -> float:
        """Return the longest delay after this many tries that failed, 0 for the first."""
        doublings = min(tries, 64)
        return min(self.most_s, self.first_s * 2.0**doublings)

    def delay_s(self, tries: int, rng: random.Random) -> float:
        """Return the seconds to wait after this many tries that failed, drawn from `rng`."""
        return rng.uniform(0.0, self.limit_s(tries))

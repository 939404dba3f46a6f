"""The state of a device that is away: since when, why, when to try again, and messages."""

import random
from collections.abc import Callable
from dataclasses import dataclass

from edgeflare._internal.text import duration
from edgeflare.errors import DeviceError, EdgeFlareError, InferenceTimeoutError


@dataclass(frozen=True)
class Backoff:
    """Delays that are drawn from 0 to a limit, which doubles from `first_s` to `most_s` seconds.

    Full jitter: many hosts that lost one device, or one host that lost many, don't come back in
    step. (M. Brooker, "Exponential Backoff And Jitter", AWS Architecture Blog, 2015.)
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


_QUIET_S = 60.0


class ReconnectState:
    """Counts the attempts to reopen a device and reports them; no locks, no threads.

    A loss is reported at once, then at most once a minute until `begin` is called with `new_loss`;
    the return is reported only after a reported loss.
    """

    def __init__(
        self,
        name: str,
        backoff: Backoff,
        rng: random.Random,
        on_notice: Callable[[str], None],
        clock: Callable[[], float],
    ) -> None:
        self.cause: EdgeFlareError | None = None
        self._name = name
        self._backoff = backoff
        self._rng = rng
        self._on_notice = on_notice
        self._clock = clock
        self._since = 0.0
        self._tries = 0
        self._immediately = False
        self._next_try_at = 0.0
        self._reported_at: float | None = None
        self._reported_lost = False

    @property
    def seconds(self) -> float:
        """Seconds since the loss; repeated losses count from the first one."""
        return self._clock() - self._since

    @property
    def description(self) -> str:
        """The cause, and when the next attempt is made."""
        wait = self._next_try_at - self._clock()
        then = f"next try in {duration(wait)}" if wait > 0 else "trying now"
        return f"{one_line(self.cause) if self.cause else 'not reached'}; {then}"

    def begin(self, cause: EdgeFlareError | None, *, new_loss: bool) -> None:
        """Record that the device is lost; `new_loss`: it worked before, so this is a new loss."""
        self.cause = cause
        self._immediately = isinstance(cause, InferenceTimeoutError)
        self._next_try_at = now = self._clock()
        if new_loss:
            self._since = now
            self._tries = 0
            self._reported_at = None

    def next_delay_s(self) -> float:
        """Return the seconds to wait before the next attempt, and count it.

        The first are 0 where an inference was late: such a device is alive and reachable, and a
        pause does not help. They are no fewer than the cause asks for.
        """
        if self._immediately:
            self._immediately = False
            self._next_try_at = self._clock()
            return 0.0
        least = self.cause.retry_after_s if isinstance(self.cause, DeviceError) else 0.0
        delay = max(least, self._backoff.delay_s(self._tries, self._rng))
        self._tries += 1
        self._next_try_at = self._clock() + delay
        return delay

    def report_lost(self) -> None:
        """Report the loss, if the last report is a minute old."""
        now = self._clock()
        if self._reported_at is None or now - self._reported_at >= _QUIET_S:
            self._reported_at = now
            self._reported_lost = True
            self._on_notice(f"{self._name} is lost: {self.description}")

    def report_back(self, away_s: float, again: int) -> None:
        """Report that the device is back, and how many requests are sent again."""
        if self._reported_lost:
            self._reported_lost = False
            text = f"{self._name} is back after {duration(away_s)}"
            if again:
                text += f", {again} request{'s' if again > 1 else ''} sent again"
            self._on_notice(text)


def one_line(error: BaseException) -> str:
    """Return the error's text in one line."""
    lines = [line.strip() for line in str(error).splitlines()]
    return " | ".join(filter(None, lines)).replace(": | ", ": ")


def silent(_: str) -> None:
    """Ignore a message."""

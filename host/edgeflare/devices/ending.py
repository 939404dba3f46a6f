"""Why a link ended, and the callbacks for it."""

from collections.abc import Callable

from edgeflare.errors import EdgeFlareError

Told = Callable[[EdgeFlareError], None]


class Ending:
    """Holds the first error of a link and the callbacks for a link that fails by itself; no locks."""

    def __init__(self) -> None:
        self.failure: EdgeFlareError | None = None
        self.by_itself = False
        self._waiting: list[Told] = []

    def end(self, error: EdgeFlareError, by_itself: bool) -> list[Told]:
        """Record why the link ended; return the callbacks to call. Only the first call counts."""
        if self.failure is not None:
            return []
        self.failure, self.by_itself = error, by_itself
        waiting, self._waiting = self._waiting, []
        return waiting if by_itself else []

    def await_end(self, callback: Told) -> bool:
        """Register a callback; False where the link has ended, so that the caller must call it."""
        if self.failure is None:
            self._waiting.append(callback)
        return self.failure is None


def copy(error: EdgeFlareError) -> EdgeFlareError:
    """Return an error of the same class and text; one that many raise would gather their tracebacks."""
    return type(error)(str(error))

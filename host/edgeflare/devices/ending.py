"""How a link ended, and who wants to know."""

from collections.abc import Callable

from edgeflare.errors import EdgeFlareError

Told = Callable[[EdgeFlareError], None]


class Ending:
    """The first error ends a link; those that wait are told if it ended by itself; no locks."""

    def __init__(self) -> None:
        self.failure: EdgeFlareError | None = None
        self.by_itself = False
        self._waiting: list[Told] = []

    def end(self, error: EdgeFlareError, by_itself: bool) -> list[Told]:
        """Note why and how the link ended; return who is to be told. Only the first call counts."""
        if self.failure is not None:
            return []
        self.failure, self.by_itself = error, by_itself
        waiting, self._waiting = self._waiting, []
        return waiting if by_itself else []

    def await_end(self, callback: Told) -> bool:
        """Have this called at the end; False where that is past, so that the caller must do it."""
        if self.failure is None:
            self._waiting.append(callback)
        return self.failure is None


def copy(error: EdgeFlareError) -> EdgeFlareError:
    """Return an error of the same class and text; one that many raise would gather their tracebacks."""
    return type(error)(str(error))

"""What TensorRT says: it reports errors to a logger and returns nothing."""

from functools import lru_cache
from typing import Any, List

_KEPT = 50


class TensorRTError(Exception):
    """TensorRT did not do what it was asked; the text is its own where it said any."""


@lru_cache(maxsize=None)
def log_of(library: Any) -> Any:
    """Return the one logger for a TensorRT library; TensorRT keeps the first that it is given for ever.

    `clear` forgets, and `reason(otherwise)` returns, the first error since then.
    """

    class Log(library.ILogger):  # type: ignore[misc]
        def __init__(self) -> None:
            library.ILogger.__init__(self)  # TensorRT crashes without it
            self._errors: List[str] = []

        def log(self, severity: Any, text: str) -> None:
            if severity.name in ("ERROR", "INTERNAL_ERROR") and len(self._errors) < _KEPT:
                self._errors.append(" ".join(str(text).split()))

        def clear(self) -> None:
            self._errors = []

        def reason(self, otherwise: str) -> str:
            return self._errors[0] if self._errors else otherwise

    return Log()

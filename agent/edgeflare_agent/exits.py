"""The agent's exit statuses, and the one way in which it ends once its threads run.

64 and 65 (Python too old, numpy missing) stand in `__main__`, which old interpreters parse.
"""

import os
import sys
import traceback
from types import TracebackType
from typing import Callable, List, Optional, Type

DONE = 0  # told so, or the stream ended
BROKEN_STREAM = 66
LOST_HEARTBEAT = 67
LATE = 68  # an inference took longer than it may
FAULT = 70  # a fault of the agent's own

_last: List[Callable[[], None]] = []


def before_leaving(action: Callable[[], None]) -> None:
    """Have a quick action done when the process ends by `leave`, from whatever thread."""
    _last.append(action)


def leave(status: int, sentence: str = "") -> None:
    """End the process at once, whatever its threads are doing, after a sentence on stderr."""
    try:
        while _last:
            _last.pop()()
        if sentence:
            sys.stderr.write("edgeflare agent: {}\n".format(sentence))
        sys.stderr.flush()
    finally:
        os._exit(status)


def leave_on_fault(
    kind: Type[BaseException], error: Optional[BaseException], trace: Optional[TracebackType]
) -> None:
    """End the process for an exception that nothing caught: no thread dies unseen."""
    traceback.print_exception(kind, error, trace)
    leave(FAULT, "a fault of its own, {}: {}".format(kind.__name__, error))

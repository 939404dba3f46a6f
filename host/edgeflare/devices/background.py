"""Work that is done beside, and waits now and then."""

import threading
from collections.abc import Iterator
from typing import TypeAlias

Task: TypeAlias = Iterator[float]
"""Gives the seconds to wait before it is asked to go on; over when it is exhausted."""


def in_a_thread(task: Task, stop: threading.Event) -> None:
    """Do the task in a thread of its own; `stop` ends it at its next wait, at once."""

    def work() -> None:
        for seconds in task:
            if stop.wait(seconds):
                return

    threading.Thread(target=work, name="edgeflare-background", daemon=True).start()

"""Serves one model to the process that started this one: requests on stdin, replies on stdout.

The requests are those of `server`: LOAD (which names any file of this machine), CONFIGURE and
INFER. There is no handshake, no heartbeat and no queue, and one thread does all, so that a small
model's reply comes at once. The process ends with the one that started it, and when an inference
takes longer than LOAD's `timeout_s` allows.
"""

import json
import select
import threading
import time
from typing import Any, Callable, Tuple

from edgeflare_agent import connection
from edgeflare_agent.__main__ import take_wire
from edgeflare_agent.cache import default_root
from edgeflare_agent.connection import Link
from edgeflare_agent.leases import Leases
from edgeflare_agent.runtimes import RUNTIMES
from edgeflare_agent.telemetry import clock
from edgeflare_agent.wire import DEFAULT_MAX_BODY, EndOfStreamError, Frame, read_frame
from edgeflare_agent.worker import Worker

_POLL_S = 0.5
_CPU = ["CPUExecutionProvider"]


class FileWorker(Worker):
    """Loads any file of this machine.

    It counts processor time where the model runs on the thread that asks alone, else wall time.
    """

    timeout_s = float("inf")

    def __init__(self) -> None:
        root = default_root()
        super().__init__(root, Leases(root), lambda _: {})

    def _load(self, frame: Frame) -> Frame:
        self.timeout_s = float(frame.header["timeout_s"])
        reply = super()._load(frame)
        described = reply.header["runtime"]
        on_this_thread = (
            described["name"] != "tensorrt"
            and described["threads"] == 1
            and described.get("providers", _CPU) == _CPU
        )
        self._timer = time.thread_time if on_this_thread else clock
        return reply

    def end_if_late(self, ended: Callable[[float], Any] = time.sleep) -> None:
        """End the process when an inference takes too long; return once `ended` says so.

        `ended` waits for a number of seconds.
        """
        while not ended(min(_POLL_S, self.timeout_s / 4)):
            if (self.inferring_s or 0.0) > self.timeout_s:
                connection.exit_process(connection.LATE)

    def _model_file(self, frame: Frame) -> Tuple[str, str]:
        path = str(frame.header.get("model"))
        return path, path


def serve(runtimes: str) -> None:
    """Serve until the stream ends; does not return.

    `runtimes`: a JSON object of further runtimes, ``module:class`` by name.
    """
    RUNTIMES.update(json.loads(runtimes))
    wire_in, wire_out = take_wire()
    worker = FileWorker()
    threading.Thread(target=_watch, args=(wire_in, worker), daemon=True).start()
    link = Link(wire_in, wire_out)
    try:
        while True:
            link.write(worker.reply(read_frame(link.read, DEFAULT_MAX_BODY)))
    except (EndOfStreamError, ConnectionResetError):
        connection.exit_process(connection.DONE)


def _watch(wire_in: int, worker: FileWorker) -> None:
    """End the process once its parent has ended, or an inference takes too long."""
    hang_up = select.poll()
    hang_up.register(wire_in, 0)
    worker.end_if_late(lambda wait_s: bool(hang_up.poll(1000 * wait_s)))
    connection.exit_process(connection.DONE)

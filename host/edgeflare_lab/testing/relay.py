"""A TCP relay with configurable delay and rate, whose connections can be silenced or cut."""

import json
import subprocess
import sys
import threading
from pathlib import Path
from types import TracebackType

from typing_extensions import Self

from edgeflare.errors import UsageError

_SCRIPT = Path(__file__).with_name("relay_server.py")
_END_S = 10.0


class Relay:
    """A TCP relay on 127.0.0.1 in front of a server; a context manager.

    Clients connect to `host` and `port` in place of the server's `server_host` and `server_port`.
    Bytes, the end of a direction and resets are forwarded unchanged and in order after
    `to_server_s` or `to_client_s` seconds (about a millisecond more at most on an idle machine).
    New connections are accepted at once. `bytes_per_s` limits each direction of each connection.

    The relay runs in its own process. `cut`, `silence` and `mend` return when they have taken
    effect, and may be called from any thread. Raises UsageError for a negative delay, or a rate
    that isn't positive::

        with Relay("127.0.0.1", 22, to_server_s=0.01, to_client_s=0.01) as relay:
            device = Device(name="far away", host=relay.host, port=relay.port)
            ...
            relay.silence()  # the cable is pulled
    """

    host = "127.0.0.1"

    def __init__(
        self,
        server_host: str,
        server_port: int,
        *,
        to_server_s: float = 0.0,
        to_client_s: float = 0.0,
        bytes_per_s: float | None = None,
    ) -> None:
        if not (to_server_s >= 0 and to_client_s >= 0):
            raise UsageError("a relay's delays are 0 s or longer")
        if bytes_per_s is not None and not bytes_per_s > 0:
            raise UsageError("a relay's rate is more than 0 bytes per second")
        self._settings = {
            "server_host": server_host,
            "server_port": server_port,
            "to_server_s": to_server_s,
            "to_client_s": to_client_s,
            "bytes_per_s": bytes_per_s,
        }
        self._lock = threading.Lock()
        self._process: subprocess.Popen[str] | None = None
        self._port = 0

    @property
    def port(self) -> int:
        """The port that clients connect to, constant while the relay runs. Raises UsageError."""
        self._running_process()
        return self._port

    def start(self) -> Self:
        """Start relaying; return the relay. ``with`` does this. Raises UsageError when running."""
        if self._process is not None:
            raise UsageError("the relay runs already")
        self._process = subprocess.Popen(
            [sys.executable, "-I", str(_SCRIPT), json.dumps(self._settings)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        try:
            self._port = int(self._read_answer(self._process))
        except BaseException:
            self.close()
            raise
        return self

    def cut(self) -> None:
        """Reset all connections at both ends; refuse new ones until `mend`."""
        self._command("cut")

    def silence(self) -> None:
        """Drop all bytes, also those under way, until `mend`; connections stay up.

        New connections are accepted and get no answer.
        """
        self._command("silence")

    def mend(self) -> None:
        """Undo `cut` and `silence`.

        Connections that lost bytes, or were opened, during a silence are reset: a TCP
        connection never goes on with a hole in it.
        """
        self._command("mend")

    def close(self) -> None:
        """End the relay and reset its connections. Safe to repeat."""
        process, self._process = self._process, None
        if process is None:
            return
        with process:
            if process.stdin is not None:
                process.stdin.close()
            try:
                process.wait(_END_S)
            except subprocess.TimeoutExpired:
                process.kill()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def _running_process(self) -> "subprocess.Popen[str]":
        if self._process is None:
            raise UsageError("the relay does not run: use it in a `with` statement, or start it")
        return self._process

    def _command(self, command: str) -> None:
        with self._lock:
            process = self._running_process()
            if process.stdin is not None:
                process.stdin.write(f"{command}\n")
                process.stdin.flush()
            self._read_answer(process)

    def _read_answer(self, process: "subprocess.Popen[str]") -> str:
        answer = process.stdout.readline() if process.stdout is not None else ""
        if not answer:
            raise UsageError("the relay's process has ended; what it said is on stderr")
        return answer

"""What the phones of the adb tests offer: TCP ports and a shell, on this machine's own programs."""

import contextlib
import os
import signal
import socket
import struct
import subprocess
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

STDIN, STDOUT, STDERR, EXIT, CLOSE_STDIN = range(5)
_HEADER = struct.Struct("<BI")
_GRACE_S = 0.5


@dataclass
class Phone:
    """A phone that adb sees. `ports` are its listening ports, as the ports of this machine they stand for."""

    serial: str
    model: str = "Pixel_6"
    state: str = "device"
    ports: dict[int, int] = field(default_factory=dict)
    features: str = "shell_v2,cmd,stat_v2"
    home: Path = Path("/")
    comes_back: bool = False
    """From ``offline``, when the server is asked to reconnect."""
    offline_after: int | None = None
    """So many bytes on one link, and it falls offline."""
    opened: list[str] = field(default_factory=list)
    """The services that were asked for, in order."""


def open_service(phone: Phone, service: str) -> socket.socket | None:
    """Return a socket to a service of the phone; None where adbd would close at once."""
    phone.opened.append(service)
    kind, _, rest = service.partition(":")
    if kind == "tcp":
        try:
            return socket.create_connection(("127.0.0.1", phone.ports[int(rest)]), timeout=10)
        except (KeyError, OSError):
            return None
    if kind.split(",")[0] == "shell" and "v2" in kind.split(","):
        ours, theirs = socket.socketpair()
        threading.Thread(target=_run_shell, args=(phone, theirs, rest), daemon=True).start()
        return ours
    return None


def pump(
    one: socket.socket, other: socket.socket, passed: Callable[[int], None] = lambda _: None
) -> None:
    """Copy both ways until both sides have ended; then close both. `passed` is told of bytes on their way.

    What one side sends after the other has ended is taken and dropped, so that its last words arrive:
    a TCP socket that is closed with unread bytes is reset.
    """

    def copy(source: socket.socket, sink: socket.socket) -> None:
        taken = True
        with contextlib.suppress(OSError):
            while data := source.recv(1 << 16):
                passed(len(data))
                try:
                    if taken:
                        sink.sendall(data)
                except OSError:
                    taken = False
        with contextlib.suppress(OSError):
            sink.shutdown(socket.SHUT_WR)

    for end in (one, other):
        end.settimeout(None)
    back = threading.Thread(target=copy, args=(other, one), daemon=True)
    back.start()
    copy(one, other)
    back.join()
    one.close()
    other.close()


def _run_shell(phone: Phone, link: socket.socket, command: str) -> None:
    """Run a command line as adbd does, in packets of the shell protocol; a lost link is a SIGHUP.

    Nothing outlives the link: a program that ignores the signal, as those under nohup do, is killed.
    """
    process = subprocess.Popen(
        ["/bin/sh", "-c", command],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=phone.home,
        bufsize=0,
        start_new_session=True,
    )
    sending = threading.Lock()

    def send(kind: int, data: bytes) -> None:
        with sending:
            link.sendall(_HEADER.pack(kind, len(data)) + data)

    def forward(kind: int, pipe: IO[bytes] | None) -> None:
        assert pipe is not None
        with contextlib.suppress(OSError), pipe:
            while data := os.read(pipe.fileno(), 1 << 15):
                send(kind, data)

    outputs = [
        threading.Thread(target=forward, args=one, daemon=True)
        for one in ((STDOUT, process.stdout), (STDERR, process.stderr))
    ]
    feeding = threading.Thread(target=_feed, args=(process, link), daemon=True)
    for thread in (*outputs, feeding):
        thread.start()
    for thread in outputs:
        thread.join()
    status = process.wait()
    with contextlib.suppress(OSError):
        send(EXIT, bytes([status if status >= 0 else 128 - status]))
    with contextlib.suppress(OSError):
        link.shutdown(socket.SHUT_RDWR)
    feeding.join()
    link.close()


def _feed(process: "subprocess.Popen[bytes]", link: socket.socket) -> None:
    pipe = process.stdin
    assert pipe is not None
    try:
        while True:
            kind, length = _HEADER.unpack(_exactly(link.recv, _HEADER.size))
            data = _exactly(link.recv, length)
            if kind == CLOSE_STDIN:
                pipe.close()
            elif kind == STDIN:
                view = memoryview(data)
                with contextlib.suppress(BrokenPipeError, ValueError):
                    while view:
                        view = view[pipe.write(view) or 0 :]
    except (OSError, EOFError):
        with contextlib.suppress(OSError):
            pipe.close()
        if process.poll() is None:
            for number in (signal.SIGHUP, signal.SIGKILL):
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, number)
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(_GRACE_S)


def _exactly(receive: Callable[[int], bytes], count: int) -> bytes:
    data = b""
    while len(data) < count:
        chunk = receive(count - len(data))
        if not chunk:
            raise EOFError
        data += chunk
    return data

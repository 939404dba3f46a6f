"""An SSH server by asyncssh, in a thread of its own, that really runs commands."""

import asyncio
import contextlib
import os
import signal
import subprocess
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import asyncssh


@dataclass(frozen=True)
class AsyncsshOptions:
    """Peculiarities of a server."""

    password: str | None = None
    """Accepts this password, for every user."""
    interactive: bool = False
    """Asks for the password in a dialogue (keyboard-interactive) instead."""
    keys: bool = True
    """Accepts the key of the fixture."""
    sftp: bool = True
    """Offers SFTP; without it the server is as bare as dropbear."""


class _Login(asyncssh.SSHServer):
    def __init__(self, options: AsyncsshOptions) -> None:
        self._options = options

    def connection_requested(self, *_: Any) -> bool:
        return True

    def password_auth_supported(self) -> bool:
        return self._options.password is not None and not self._options.interactive

    def validate_password(self, username: str, password: str) -> bool:
        return password == self._options.password

    def kbdint_auth_supported(self) -> bool:
        return self._options.password is not None and self._options.interactive

    def get_kbdint_challenge(self, username: str, lang: str, submethods: str) -> Any:
        return "", "", "", [("Password: ", False)]

    def validate_kbdint_response(self, username: str, responses: Sequence[str]) -> bool:
        return list(responses) == [self._options.password]


async def _run_command(process: "asyncssh.SSHServerProcess[bytes]") -> None:
    """Run the client's command with the shell, as sshd does, and end it with the session."""
    child = await asyncio.create_subprocess_exec(
        "/bin/sh",
        "-c",
        process.command or "exit 1",
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
        cwd=Path.home(),
    )
    feed = asyncio.ensure_future(_pump(process.stdin, child.stdin))
    outputs = [_pump(child.stdout, process.stdout), _pump(child.stderr, process.stderr)]
    ended = asyncio.ensure_future(asyncio.gather(*outputs, child.wait()))
    closed = asyncio.ensure_future(process.channel.wait_closed())
    await asyncio.wait({ended, closed}, return_when=asyncio.FIRST_COMPLETED)
    if closed.done():
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)
    await ended
    if child.returncode is not None and child.returncode < 0:
        process.exit_with_signal(signal.Signals(-child.returncode).name.removeprefix("SIG"))
    else:
        process.exit(child.returncode or 0)
    await closed
    await feed
    await process.wait_closed()


async def _pump(source: Any, sink: Any) -> None:
    """Copy until the end; then end the child's stdin. What nobody reads any more is dropped."""
    taken = True
    with contextlib.suppress(ConnectionError, asyncssh.Error):
        while data := await source.read(1 << 16):
            try:
                if taken:
                    sink.write(data)
                    await sink.drain()
            except (ConnectionError, asyncssh.Error):
                taken = False
    if isinstance(sink, asyncio.StreamWriter):
        sink.close()
        with contextlib.suppress(BrokenPipeError, ConnectionError):
            await sink.wait_closed()


@contextlib.contextmanager
def run_asyncssh(
    folder: Path, hosts: Sequence[str], port: int, options: AsyncsshOptions
) -> Iterator[Callable[[], None]]:
    """Serve until the block ends; gives a function that breaks off all connections at once."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, name="asyncssh", daemon=True)
    thread.start()
    connections: list[asyncssh.SSHServerConnection] = []

    class Login(_Login):
        def connection_made(self, conn: asyncssh.SSHServerConnection) -> None:
            connections.append(conn)

    async def listen() -> list[Any]:
        return [
            await asyncssh.listen(
                host,
                port,
                server_factory=lambda: Login(options),
                server_host_keys=[str(folder / "host_key")],
                authorized_client_keys=str(folder / "authorized_keys") if options.keys else None,
                process_factory=_run_command,
                sftp_factory=options.sftp,
                encoding=None,
                line_editor=False,
            )
            for host in hosts
        ]

    async def stop(listeners: list[Any]) -> None:
        for listener in listeners:
            listener.close()
        for connection in connections:
            connection.abort()
        for connection in connections:
            await connection.wait_closed()
        for task in asyncio.all_tasks() - {asyncio.current_task()}:
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.wait_for(task, 5)
        await loop.shutdown_default_executor()

    async def drop() -> None:
        for connection in connections:
            connection.abort()

    listeners = asyncio.run_coroutine_threadsafe(listen(), loop).result(30)
    try:
        yield lambda: asyncio.run_coroutine_threadsafe(drop(), loop).result(30)
    finally:
        asyncio.run_coroutine_threadsafe(stop(listeners), loop).result(30)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(10)
        loop.close()

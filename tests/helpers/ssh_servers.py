"""Two real SSH servers on 127.0.0.1 to test against: OpenSSH's sshd, and asyncssh's in a thread of its own.

The fixture `ssh_server` runs a test against both; `start_sshd` and `start_asyncssh` start one with
other options, for a test of its own. Both run commands as the user who runs the tests.
"""

import asyncio
import contextlib
import os
import pwd
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import asyncssh
import pytest

from edgeflare.devices.inventory import Device


@dataclass(frozen=True)
class AsyncsshOptions:
    """Peculiarities of a server."""

    password: str | None = None
    """Accepts this password, for every user."""
    interactive: bool = False
    """Asks for the password in a dialogue (keyboard-interactive) instead."""
    prompt: str = "Password: "
    """What the dialogue asks."""
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
        return "", "", "", [(self._options.prompt, False)]

    def validate_kbdint_response(self, username: str, responses: Sequence[str]) -> bool:
        return list(responses) == [self._options.password]


async def _run_command(process: "asyncssh.SSHServerProcess[bytes]") -> None:
    """Run the client's command with the shell, as sshd does, and end it with the session."""
    child = await asyncio.create_subprocess_exec(
        "/bin/sh", "-c", process.command or "exit 1", stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, start_new_session=True, cwd=Path.home(),
    )  # fmt: skip
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


SSHD = shutil.which("sshd", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin")
SFTP_SERVERS = (
    "/usr/lib/openssh/sftp-server",
    "/usr/libexec/openssh/sftp-server",
    "/usr/libexec/sftp-server",
    "/usr/lib/ssh/sftp-server",
)


@dataclass
class SshServer:
    """A running server and what a client needs to reach it."""

    folder: Path
    port: int
    implementation: str
    host: str = "127.0.0.1"
    user: str = field(default_factory=lambda: pwd.getpwuid(os.getuid()).pw_name)
    kill: Callable[[], None] = lambda: None
    """Ends the server and all its connections at once."""
    restart: Callable[[], None] = lambda: None
    """Starts a killed OpenSSH server again, as the same one."""

    @property
    def key(self) -> Path:
        """A private key that the server accepts."""
        return self.folder / "user_key"

    @property
    def host_key(self) -> Path:
        """The server's private host key; its public part is beside it, with `.pub`."""
        return self.folder / "host_key"

    @property
    def known_hosts(self) -> Path:
        """A known_hosts file that holds the server's key."""
        return self.folder / "known_hosts"

    @property
    def ssh_config(self) -> Path:
        """A client configuration that says nothing."""
        return self.folder / "ssh_config"

    @property
    def fingerprint(self) -> str:
        """``SHA256:...`` of the host key, as ssh-keygen tells it."""
        return fingerprint_of(self.host_key)

    @property
    def url(self) -> str:
        return f"ssh://{self.user}@{self.host}:{self.port}"

    def device(self, **changes: Any) -> Device:
        """Return the inventory entry of this server, with some fields changed."""
        fields: dict[str, Any] = {
            "name": self.url, "host": self.host, "port": self.port, "user": self.user,
            "key": self.key, "python": sys.executable, "known_hosts": self.known_hosts,
            "ssh_config": self.ssh_config, "connect_timeout_s": 30,
        }  # fmt: skip
        return Device.model_validate(
            {k: v for k, v in {**fields, **changes}.items() if v is not None}
        )


def make_key(path: Path, passphrase: str = "", kind: str = "ed25519") -> Path:
    """Make a key pair at `path` and `path`.pub."""
    run = ["ssh-keygen", "-q", "-t", kind, "-N", passphrase, "-C", path.name, "-f", str(path)]
    subprocess.run(run, check=True, capture_output=True)
    return path


def fingerprint_of(key: Path) -> str:
    """Return ``SHA256:...`` of a key file."""
    run = ["ssh-keygen", "-l", "-f", f"{key}.pub"]
    done = subprocess.run(run, check=True, capture_output=True, text=True)
    return done.stdout.split()[1]


def known_line(host: str, port: int, key: Path) -> str:
    """Return the known_hosts line of a server's key file."""
    kind, blob = Path(f"{key}.pub").read_text().split()[:2]
    return f"[{host}]:{port} {kind} {blob}\n"


def free_port() -> int:
    """Return a port that was free a moment ago."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def has_ipv6() -> bool:
    """True where ::1 can be listened on."""
    try:
        with socket.socket(socket.AF_INET6) as probe:
            probe.bind(("::1", 0))
    except OSError:
        return False
    return True


def sftp_server() -> str:
    """Return the command of OpenSSH's sftp-server; skips where there is none."""
    found = next((path for path in SFTP_SERVERS if Path(path).exists()), None)
    if found is None:
        pytest.skip("OpenSSH's sftp-server is not on this machine")
    return found


@contextlib.contextmanager
def _server(implementation: str) -> Iterator[SshServer]:
    if shutil.which("ssh-keygen") is None:
        pytest.skip("ssh-keygen is not on this machine")
    with tempfile.TemporaryDirectory(prefix="edgeflare-ssh-") as name:
        server = SshServer(Path(name), free_port(), implementation)
        make_key(server.key)
        make_key(server.host_key)
        (server.folder / "authorized_keys").write_text(Path(f"{server.key}.pub").read_text())
        server.ssh_config.write_text("")
        hosts = ("127.0.0.1", "::1", "localhost")
        server.known_hosts.write_text(
            "".join(known_line(host, server.port, server.host_key) for host in hosts)
        )
        yield server


@contextlib.contextmanager
def start_sshd(extra: Sequence[str] = ()) -> Iterator[SshServer]:
    """Start OpenSSH's sshd; `extra` lines of configuration come first, so they win."""
    if SSHD is None:
        pytest.skip("OpenSSH's sshd is not on this machine")
    if os.getuid() == 0:
        Path("/run/sshd").mkdir(mode=0o755, parents=True, exist_ok=True)
    with _server("openssh") as server:
        lines = [
            *extra,
            f"Port {server.port}",
            "ListenAddress 127.0.0.1",
            *(["ListenAddress ::1"] if has_ipv6() else []),
            f"HostKey {server.host_key}",
            f"AuthorizedKeysFile {server.folder}/authorized_keys",
            "PidFile none",
            "UsePAM no",
            "StrictModes no",
            "PermitRootLogin yes",
            "PasswordAuthentication no",
            "KbdInteractiveAuthentication no",
            "MaxSessions 64",
            "MaxStartups 64",
        ]
        if not any(line.startswith("Subsystem") for line in extra):
            lines.append("Subsystem sftp internal-sftp")
        config = server.folder / "sshd_config"
        config.write_text("\n".join(lines) + "\n")
        running: list[subprocess.Popen[bytes]] = []

        def start() -> None:
            with (server.folder / "sshd.log").open("ab") as log:
                command = [SSHD, "-D", "-e", "-f", str(config)]
                running.append(subprocess.Popen(command, stderr=log, start_new_session=True))
            _await_banner(server, lambda: running[-1].poll() is None)

        def kill() -> None:
            process = running[-1]
            for pid in [process.pid, *_children(process.pid)]:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            process.wait()

        server.kill, server.restart = kill, start
        try:
            start()
            yield server
        finally:
            kill()


@contextlib.contextmanager
def start_asyncssh(options: AsyncsshOptions | None = None) -> Iterator[SshServer]:
    """Start an asyncssh server in a thread of this process."""
    with _server("asyncssh") as server:
        hosts = [server.host, "::1"] if has_ipv6() else [server.host]
        with run_asyncssh(server.folder, hosts, server.port, options or AsyncsshOptions()) as kill:
            server.kill = kill
            yield server


def banner_on_login(folder: Path) -> str:
    """Return sshd's line for an account whose login shell greets on stdout, whatever it runs."""
    script = folder / "greet"
    script.write_text('#!/bin/sh\necho Welcome\neval "$SSH_ORIGINAL_COMMAND"\n')
    script.chmod(0o755)
    return f"ForceCommand {script}"


def _children(pid: int) -> list[int]:
    """Return the processes directly below this one: sshd has one for each connection."""
    table = subprocess.run(
        ["ps", "-A", "-o", "pid=,ppid="], check=True, capture_output=True, text=True
    ).stdout
    pairs = [line.split() for line in table.splitlines()]
    return [int(child) for child, parent in pairs if int(parent) == pid]


def _await_banner(server: SshServer, alive: Callable[[], bool]) -> None:
    for _ in range(300):
        with (
            contextlib.suppress(OSError),
            socket.create_connection((server.host, server.port), timeout=5) as probe,
        ):
            if probe.recv(4) == b"SSH-":
                return
        if not alive():
            break
        time.sleep(0.05)
    pytest.fail(f"sshd did not start: {(server.folder / 'sshd.log').read_text()}")


@pytest.fixture(scope="session")
def openssh_server() -> Iterator[SshServer]:
    """OpenSSH's sshd; skips where it is not installed."""
    with start_sshd() as server:
        yield server


@pytest.fixture(scope="session")
def asyncssh_server() -> Iterator[SshServer]:
    """A second, independent implementation; runs everywhere."""
    with start_asyncssh() as server:
        yield server


@pytest.fixture(
    scope="session", params=[pytest.param("openssh", marks=pytest.mark.sshd), "asyncssh"]
)
def ssh_server(request: pytest.FixtureRequest) -> SshServer:
    """Each of both servers in turn."""
    server: SshServer = request.getfixturevalue(f"{request.param}_server")
    return server

"""Two real SSH servers on 127.0.0.1 to test against: OpenSSH's sshd and asyncssh.

The fixture `ssh_server` runs a test against both; `start_sshd` and `start_asyncssh` start one with
peculiarities, for a test of its own. Both run commands as the user who runs the tests.
"""

import contextlib
import os
import pwd
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from asyncssh_server import AsyncsshOptions, run_asyncssh

from edgeflare.devices.inventory import Device

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
            "name": self.url,
            "host": self.host,
            "port": self.port,
            "user": self.user,
            "key": self.key,
            "python": sys.executable,
            "known_hosts": self.known_hosts,
            "ssh_config": self.ssh_config,
            "connect_timeout_s": 30,
        }
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

"""PostgreSQL's server, as Debian packs it, in a temporary folder: one for all processes of a test run."""

import contextlib
import getpass
import json
import os
import pwd
import shutil
import socket
import subprocess
import sys
import tempfile
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from filelock import FileLock

_USER = "postgres"


def programs() -> Path | None:
    """The folder of the newest installed server's programs."""
    found = [*Path("/usr/lib/postgresql").glob("*/bin/initdb")]
    if found:
        return max(found, key=lambda path: int(path.parent.parent.name)).parent
    on_path = shutil.which("initdb")
    return Path(on_path).resolve().parent if on_path else None


def as_server(*command: str | Path) -> list[str]:
    """The command as the user who may run the server: it refuses root."""
    words = [str(word) for word in command]
    return ["runuser", "-u", _USER, "--", *words] if os.geteuid() == 0 else words


@dataclass
class PostgresServer:
    """A server on a loopback port. `folder` has its data, which `user` owns."""

    folder: Path
    port: int
    user: str

    @property
    def url(self) -> str:
        return self.url_of("postgres")

    def url_of(self, database: str, user: str | None = None) -> str:
        return f"postgresql://{user or self.user}@127.0.0.1:{self.port}/{database}"

    def new_database(self) -> str:
        """Make a database and return its URL."""
        name = f"d{uuid.uuid4().hex[:12]}"
        self.psql(f"CREATE DATABASE {name}")
        return self.url_of(name)

    def psql(self, statement: str, database: str = "postgres") -> str:
        done = subprocess.run(
            [
                _programs() / "psql", "-XqtA", "-v", "ON_ERROR_STOP=1", "-c", statement,
                self.url_of(database),
            ],
            check=True,
            capture_output=True,
            text=True,
        )  # fmt: skip
        return done.stdout.strip()

    def start(self, *options: str) -> None:
        more = f"-p {self.port} -k {self.folder} -c listen_addresses=127.0.0.1 {' '.join(options)}"
        self._control("-w", "-l", str(self.folder / "log"), "-o", more, "start")

    def stop(self, mode: str = "fast") -> None:
        self._control("-m", mode, "stop")

    def _control(self, *words: str) -> None:
        command = as_server(_programs() / "pg_ctl", "-D", self.folder / "data", *words)
        subprocess.run(
            command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd="/"
        )


def _programs() -> Path:
    found = programs()
    if found is None:
        pytest.skip("PostgreSQL's server is not installed (Debian's package postgresql)")
    return found


def make_server(folder: Path, **settings: str) -> PostgresServer:
    """Make and start a server in a new folder."""
    user = getpass.getuser() if os.geteuid() else _USER
    if os.geteuid() == 0:
        try:
            entry = pwd.getpwnam(_USER)
        except KeyError:
            pytest.skip(f"PostgreSQL's server refuses root, and there is no user {_USER}")
        os.chown(folder, entry.pw_uid, entry.pw_gid)
    folder.chmod(0o755)
    data = folder / "data"
    command = as_server(
        *(_programs() / "initdb", "-D", data, "-U", user, "-A", "trust", "-E", "UTF8"),
        *("--locale=C.UTF-8", "--no-sync"),
    )
    subprocess.run(command, check=True, capture_output=True, cwd="/")
    stated = {"max_connections": "100", "shared_buffers": "64MB", **settings}
    with (data / "postgresql.conf").open("a") as file:
        file.writelines(f"{name} = '{value}'\n" for name, value in stated.items())
    server = PostgresServer(folder, _free_port(), user)
    server.start()
    return server


def _free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port: int = one.getsockname()[1]
        return port


def start_program(program: str, *words: object) -> "subprocess.Popen[str]":
    """Start a Python program, such as another host's, that imports what this process does."""
    return subprocess.Popen(
        [sys.executable, "-c", program, *map(str, words)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
    )


@contextlib.contextmanager
def own_server(**settings: str) -> Iterator[PostgresServer]:
    """A server of one test's own, which that may stop."""
    _programs()
    folder = Path(tempfile.mkdtemp(prefix="edgeflare-pg-", dir="/tmp"))
    try:
        server = make_server(folder, **settings)
        try:
            yield server
        finally:
            with contextlib.suppress(subprocess.CalledProcessError):
                server.stop("immediate")
    finally:
        shutil.rmtree(folder)


@pytest.fixture(scope="session")
def postgres_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PostgresServer]:
    """A server that all processes of the test run share; the last one to end stops it."""
    _programs()
    root = tmp_path_factory.getbasetemp()
    root = root.parent if "PYTEST_XDIST_WORKER" in os.environ else root
    shared = root / "postgres.json"
    with FileLock(root / "postgres.lock"):
        if shared.exists():
            about = json.loads(shared.read_text())
        else:
            made = make_server(Path(tempfile.mkdtemp(prefix="edgeflare-pg-", dir="/tmp")))
            about = {"folder": str(made.folder), "port": made.port, "user": made.user, "users": 0}
        shared.write_text(json.dumps(about | {"users": about["users"] + 1}))
    server = PostgresServer(Path(about["folder"]), about["port"], about["user"])
    yield server
    with FileLock(root / "postgres.lock"):
        about = json.loads(shared.read_text())
        shared.write_text(json.dumps(about | {"users": about["users"] - 1}))
        if about["users"] == 1:
            shared.unlink()
            server.stop("immediate")
            shutil.rmtree(server.folder)


@pytest.fixture
def database_url(postgres_server: PostgresServer) -> str:
    """The URL of a new, empty database."""
    return postgres_server.new_database()


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.extended)])
def database(request: pytest.FixtureRequest) -> str | None:
    """Where a campaign's data is: None, in its folder; or the URL of an empty database."""
    if request.param == "sqlite":
        return None
    url: str = request.getfixturevalue("database_url")
    return url

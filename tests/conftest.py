"""Fixtures that every suite shares."""

import atexit
import gc
import os
import shutil
import signal
import sys
import tempfile
from pathlib import Path

import pytest
from browser import shared_window, window  # noqa: F401
from hypothesis import settings
from object_stores import memory_place, s3_place, s3_server  # noqa: F401
from postgres_server import database, database_url, postgres_server  # noqa: F401
from ssh_servers import asyncssh_server, openssh_server, ssh_server  # noqa: F401
from virtual_board import virtual_board  # noqa: F401

# Same examples every time, and no judgement by the clock: machines differ.
settings.register_profile("edgeflare", derandomize=True, deadline=None)
settings.load_profile("edgeflare")

# Programs that the tests start inherit what is ignored here, as it is in the background or under nohup.
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGHUP, signal.SIG_DFL)

# The tests start hundreds of programs that import the same modules: each is compiled once.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # its threads cost more than numpy's import

# Stores wait for the disk at every write: the tests' folders are in memory, where that has room and
# runs programs.
MEMORY = Path("/dev/shm")
if (
    os.access(MEMORY, os.W_OK | os.X_OK)
    and not os.statvfs(MEMORY).f_flag & os.ST_NOEXEC
    and shutil.disk_usage(MEMORY).free > 4 << 30
):
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(MEMORY))

# The tests know nothing of virtual boards that the user of this machine has made, or of databases.
os.environ["XDG_STATE_HOME"] = tempfile.mkdtemp(prefix="edgeflare-state-")
atexit.register(shutil.rmtree, os.environ["XDG_STATE_HOME"], ignore_errors=True)

ROOT = Path(__file__).resolve().parent.parent

# What collection makes stays: looking through it for garbage costs a fifth of it, and some of each test.
gc.disable()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--update-golden",
        action="store_true",
        help="write tests/golden again, as the reports are now, in place of comparing them",
    )


def pytest_collection_finish() -> None:
    """Collect garbage again, of what the tests make."""
    gc.freeze()
    gc.enable()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers(config: pytest.Config) -> int | None:
    """`-n auto`: two more than usable CPUs, since many tests wait for agents and servers of theirs.

    None, for xdist's own number: `-n logical`, or the variable that states one.
    """
    stated = os.environ.get("PYTEST_XDIST_AUTO_NUM_WORKERS")
    if stated or config.option.numprocesses == "logical":
        return None
    usable = getattr(os, "sched_getaffinity", None)  # not on macOS
    return (len(usable(0)) if usable else os.cpu_count() or 1) + 2


@pytest.fixture
def own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A home and a working folder of the test's own, so that this machine's cache is not used."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of shared models and data; tests that need it skip where it is absent."""
    folder = Path(os.environ.get("EDGEFLARE_SHARED_DATA", ROOT.parent / "shared" / "data"))
    if not folder.is_dir():
        pytest.skip(f"the shared models and data are not at {folder}")
    return folder

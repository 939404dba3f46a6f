"""The agent's own tests, run by the virtual board's own Python on its own processor."""

import compileall
import importlib.metadata
import io
import py_compile
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from virtual_board import VirtualBoard

from edgeflare.devices import Transport, connect
from edgeflare_lab.virtual.rootfs import wheel_platforms

PROJECT = Path(__file__).resolve().parents[3]
SUITES = ("tests/unit/agent", "tests/contract/runtimes", "tests/integration/agent")
SENT = (
    "agent", "host", "pyproject.toml", "tests/helpers", "tests/data", "tests/unit/agent",
    "tests/contract/runtimes", "tests/integration/agent",
)  # fmt: skip
LIBRARIES = (
    *("pytest", "pluggy", "iniconfig", "packaging", "pygments", "hypothesis", "sortedcontainers"),
    *("onnx", "protobuf", "ml_dtypes", "typing_extensions", "typing_inspection"),
    *("pydantic", "pydantic_core", "annotated_types"),
    *("pytest-xdist", "execnet"),
)
"""What the tests import; the board has numpy and the runtimes already."""
LEFT_OUT = (
    "test_agent_python.py",  # reads the source only
    "test_agent_interpreters.py",  # makes environments of other interpreters
    "test_resize.py",  # compares with OpenCV, which a device need not have
)
CONFTEST = """
from hypothesis import settings
settings.register_profile("board", derandomize=True, deadline=None, max_examples=10)
settings.load_profile("board")
"""
UNPACK = """
import io, os, sys, tarfile
os.makedirs("/tmp/agent-tests", exist_ok=True)
archive = tarfile.open(fileobj=io.BytesIO(sys.stdin.buffer.read()))
archive.extractall("/tmp/agent-tests")
"""
RUN = """
import os, subprocess, sys
os.chdir("/tmp/agent-tests")
paths = [os.path.abspath(name) for name in ("agent", "host", "lib")]
words = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *sys.argv[1:]]
sys.exit(subprocess.call(words, env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)}))
"""


def libraries(folder: Path) -> None:
    """Fetch aarch64 wheels of the libraries, in the versions of this environment."""
    words = ["--quiet", "--no-deps", "--no-compile", "--target", str(folder), "--only-binary=:all:"]
    words += ["--implementation", "cp", "--python-version", "3.11", "--platform", "any"]
    words += [word for abi in ("cp311", "abi3", "none") for word in ("--abi", abi)]
    words += [word for platform in wheel_platforms() for word in ("--platform", platform)]
    pinned = [f"{name}=={importlib.metadata.version(name)}" for name in LIBRARIES]
    subprocess.run([sys.executable, "-m", "pip", "install", *words, *pinned], check=True)
    if sys.version_info[:2] == (3, 11):  # else the board compiles what it imports
        mode = py_compile.PycInvalidationMode.UNCHECKED_HASH
        compileall.compile_dir(folder, quiet=2, invalidation_mode=mode)


def archive(library: Path) -> bytes:
    """Return what the board needs, as a tar file."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz", compresslevel=1) as tar:
        tar.add(library, "lib")
        for name in SENT:
            tar.add(PROJECT / name, name)
        about = tarfile.TarInfo("tests/conftest.py")
        about.size = len(CONFTEST)
        tar.addfile(about, io.BytesIO(CONFTEST.encode()))
    return packed.getvalue()


@pytest.fixture(scope="module")
def board_with_tests(
    virtual_board: VirtualBoard, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Transport]:
    """A connection to the board, which has the tests and what they import."""
    library = tmp_path_factory.mktemp("board") / "lib"
    libraries(library)
    transport = connect(virtual_board.device)
    try:
        unpacked = transport.run(["-c", UNPACK], archive(library), timeout=300)
        assert unpacked.status == 0, unpacked.stderr
        yield transport
    finally:
        transport.close()


@pytest.mark.slow
@pytest.mark.virtual
@pytest.mark.parametrize("suite", SUITES)
def test_the_agents_tests_pass_on_the_boards_own_python(board_with_tests, suite) -> None:
    left_out = [f"--ignore-glob=*/{name}" for name in LEFT_OUT]
    done = board_with_tests.run(["-c", RUN, suite, *left_out], timeout=1800)
    told = done.stdout.decode()
    assert done.status == 0, told[-6000:] + done.stderr[-2000:]
    passed = told.splitlines()[-1]
    assert "passed" in passed
    assert "failed" not in passed

"""A search and a survey decide the same, to the bit, on a host of another architecture.

The board is no host for EdgeFlare otherwise: what the search needs is brought to it for this test.
"""

import io
import subprocess
import sys
import tarfile
from importlib.metadata import version
from pathlib import Path

import pytest

from edgeflare.devices import connect

PROJECT = Path(__file__).resolve().parents[3]
SEARCH = "tests/unit/strategies/boundary/test_portable_bits.py"
FAMILIES = "tests/unit/survey/test_families.py"
BITS = f"{FAMILIES}::test_the_same_bits_without_the_cpus_extensions"
PACKAGES = ("pydantic", "lazy-loader", "opencv-python-headless", "pytest", "rich")
PLATFORMS = ("manylinux2014_aarch64", "manylinux_2_17_aarch64", "manylinux_2_28_aarch64")
RUN = """
import io, os, platform, subprocess, sys, tarfile, tempfile
with tempfile.TemporaryDirectory() as folder:
    tarfile.open(fileobj=io.BytesIO(sys.stdin.buffer.read())).extractall(folder)
    print(platform.machine())
    sys.stdout.flush()
    paths = [os.path.join(folder, one) for one in ("packages", "host", "agent", "mutators", "tests/helpers")]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-o", "addopts=", "-p", "no:cacheprovider", *sys.argv[1:]],
        cwd=folder, env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
    )
sys.exit(done.returncode)
"""


def packages(folder: Path) -> None:
    """Install into a folder, for the board's Python, what a search imports; numpy is there."""
    platforms = [word for one in PLATFORMS for word in ("--platform", one)]
    stated = [f"{name}=={version(name)}" for name in PACKAGES]
    install = [
        sys.executable, "-m", "pip", "install", "--quiet", "--no-compile", "--target", folder,
    ]  # fmt: skip
    python = ["--python-version", "3.11", "--only-binary=:all:"]
    subprocess.run([*install, *platforms, *python, *stated], check=True)


def archive(installed: Path) -> bytes:
    """Return the project's code, the tests and the packages as a tar file."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz", compresslevel=1) as tar:
        for name in (
            "host",
            "agent",
            "mutators",
            "tests/helpers",
            "pyproject.toml",
            SEARCH,
            FAMILIES,
        ):
            tar.add(PROJECT / name, name, filter=_is_code)
        tar.add(installed, "packages", filter=_is_foreign)
    return packed.getvalue()


def _is_code(entry: tarfile.TarInfo) -> tarfile.TarInfo | None:
    return None if "__pycache__" in entry.name or "/assets" in entry.name else entry


def _is_foreign(entry: tarfile.TarInfo) -> tarfile.TarInfo | None:
    return None if entry.name.startswith(("packages/numpy", "packages/bin")) else entry


@pytest.mark.slow
@pytest.mark.virtual
def test_searches_and_surveys_have_the_bits_of_this_machine(virtual_board, tmp_path) -> None:
    packages(tmp_path)
    transport = connect(virtual_board.device)
    try:
        done = transport.run(["-c", RUN, SEARCH, BITS], archive(tmp_path), timeout=1800)
    finally:
        transport.close()
    printed = done.stdout.decode()
    assert printed.startswith("aarch64"), done.stderr[-2000:]
    assert done.status == 0, printed[-4000:] + done.stderr[-2000:]
    assert " passed" in printed
    assert " skipped" not in printed

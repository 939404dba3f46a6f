"""A campaign with a seed and a device in it; a disk of its own."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from edgeflare.store import SeedInput, Store


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    """An open campaign with the seed "a" and the device of fingerprint {"board": "pi"}."""
    with Store.create(tmp_path / "campaign", {"seed": 1}, environment={"numpy": "2.0"}) as created:
        created.add_seeds([SeedInput("a", np.zeros((2, 2, 1), np.uint8), label=3)])
        created.add_device({"board": "pi"}, "bench pi")
        yield created


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of 1 MB, made and unmade by root."""
    folder = tmp_path / "disk"
    folder.mkdir()
    if sys.platform != "linux" or os.geteuid() != 0 or shutil.which("mount") is None:
        pytest.skip("only root on Linux can mount a small disk")
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(folder)], capture_output=True
    )
    if mounted.returncode != 0:
        pytest.skip(f"no small disk could be mounted: {mounted.stderr.decode().strip()}")
    yield folder
    subprocess.run(["umount", "--lazy", str(folder)], check=True)

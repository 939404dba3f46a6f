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


@pytest.fixture(
    params=["sqlite"]
    + [pytest.param(one, marks=pytest.mark.extended) for one in ("postgresql", "s3")]
)
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    """An open campaign with the seed "a" and the device of fingerprint {"board": "pi"}.

    All of it is in its folder, or its data in PostgreSQL, or its samples on an S3 server.
    """
    fixture = {"postgresql": "database_url", "s3": "s3_place"}.get(request.param)
    place = None if fixture is None else request.getfixturevalue(fixture)
    elsewhere = {"postgresql": {"database": place}, "s3": {"samples": place}}.get(request.param, {})
    with _campaign(tmp_path / "campaign", **elsewhere) as created:
        yield created


@pytest.fixture
def sqlite_store(tmp_path: Path) -> Iterator[Store]:
    """The same campaign for tests that reach into its file."""
    with _campaign(tmp_path / "campaign") as created:
        yield created


def _campaign(folder: Path, database: str | None = None, samples: str | None = None) -> Store:
    about = {"numpy": "2.0"}
    made = Store.create(folder, {"seed": 1}, environment=about, database=database, samples=samples)
    made.add_seeds([SeedInput("a", np.zeros((2, 2, 1), np.uint8), label=3)])
    made.add_device({"board": "pi"}, "bench pi")
    return made


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

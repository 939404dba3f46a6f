"""One virtual arm64 board, built and booted once for all tests that need one."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from filelock import FileLock

from edgeflare.devices import Device
from edgeflare.errors import DeviceError
from edgeflare_lab.virtual import BoardSettings, board_down, board_status, board_up
from edgeflare_lab.virtual.packages import find_mirror
from edgeflare_lab.virtual.tools import check_build_tools, check_qemu


@dataclass(frozen=True)
class VirtualBoard:
    """A board that is up, and the environment in which `--device virtual` means it."""

    device: Device
    environment: dict[str, str]
    """XDG_STATE_HOME and XDG_CACHE_HOME."""

    @property
    def root(self) -> Device:
        """The board as its root user, who may fill its disk or delay its link."""
        return self.device.model_copy(update={"user": "root"})


@pytest.fixture(scope="session")
def virtual_board(tmp_path_factory: pytest.TempPathFactory) -> Iterator[VirtualBoard]:
    """A board shared by all workers; the first brings it up, the last takes it down.

    EDGEFLARE_TEST_CACHE may name a folder that keeps the build from one run to the next.
    """
    try:
        check_qemu()
        check_build_tools()
        find_mirror(BoardSettings())
    except DeviceError as error:
        pytest.skip(str(error))
    base = tmp_path_factory.getbasetemp()
    home = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "virtual-board"
    home.mkdir(exist_ok=True)
    kept = os.environ.get("EDGEFLARE_TEST_CACHE")
    environment = {
        "XDG_STATE_HOME": str(home / "state"),
        "XDG_CACHE_HOME": kept or str(home / "cache"),
    }
    with within(environment), FileLock(home / "users.lock"):
        board_up(BoardSettings())
        _count(home, 1)
        device = board_status().device
    assert device is not None
    yield VirtualBoard(device, environment)
    with within(environment), FileLock(home / "users.lock"):
        if _count(home, -1) == 0:
            board_down(delete=not kept)


def _count(home: Path, change: int) -> int:
    file = home / "users"
    users = (int(file.read_text()) if file.exists() else 0) + change
    file.write_text(str(users))
    return users


@contextmanager
def within(environment: dict[str, str]) -> Iterator[None]:
    """Let this process see the boards of this environment for a while."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in environment.items():
            patch.setenv(name, value)
        yield

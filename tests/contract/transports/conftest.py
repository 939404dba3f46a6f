"""The phones of these tests hang on an adb server, their place on a labgrid coordinator of their own."""

from collections.abc import Iterator

import pytest
from adb_server import adb_server
from labgrid_lab import Lab, start_lab
from ssh_servers import SshServer

__all__ = ["adb_server", "lab"]


@pytest.fixture(scope="session")
def lab(tmp_path_factory: pytest.TempPathFactory, asyncssh_server: SshServer) -> Iterator[Lab]:
    """A labgrid lab with one place, ``board``."""
    with start_lab(tmp_path_factory.mktemp("lab"), {"board": asyncssh_server}) as lab:
        yield lab

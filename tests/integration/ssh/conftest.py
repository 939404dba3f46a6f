"""Nothing of the user's own SSH set-up takes part in these tests."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from ssh_servers import SshServer

from edgeflare.devices.transports.ssh.transport import SshTransport


@pytest.fixture(autouse=True)
def no_own_ssh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)


@pytest.fixture
def transport(ssh_server: SshServer) -> Iterator[SshTransport]:
    transport = SshTransport.connect(ssh_server.device())
    yield transport
    transport.close()

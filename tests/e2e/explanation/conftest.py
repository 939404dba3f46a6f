"""A board behind an SSH server, of which a test may spoil what it likes."""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from ssh_servers import SshServer

Board = Callable[..., dict[str, Any]]


@pytest.fixture
def board(tmp_path: Path, openssh_server: SshServer) -> Board:
    """Return a campaign's settings for the SSH server; `more` are fields of its inventory entry."""

    def settings(**more: object) -> dict[str, Any]:
        fields = {
            "host": openssh_server.host,
            "port": openssh_server.port,
            "user": openssh_server.user,
            "key": str(openssh_server.key),
            "known_hosts": str(openssh_server.known_hosts),
            "python": sys.executable,
            "cache": str(tmp_path / "cache"),
            **more,
        }
        lines = [f"{name} = {json.dumps(value)}\n" for name, value in fields.items()]
        (tmp_path / "devices.toml").write_text("[devices.board]\n" + "".join(lines))
        return {"device": "board", "inventory": tmp_path / "devices.toml"}

    return settings

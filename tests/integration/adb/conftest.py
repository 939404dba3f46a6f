"""Phones on an adb server of the tests' own; nothing of the user's SSH set-up takes part."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from adb_server import FakeAdbServer, Phone, adb_server
from ssh_servers import SshServer

from edgeflare.devices.inventory import Device

__all__ = ["adb_server"]


@pytest.fixture(autouse=True)
def no_own_ssh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)


@pytest.fixture
def attach(adb_server: FakeAdbServer) -> Callable[..., Phone]:
    """Attach a phone with some fields."""

    def attach(serial: str, **fields: Any) -> Phone:
        phone = Phone(serial, **fields)
        adb_server.phones.append(phone)
        return phone

    return attach


@pytest.fixture
def termux(ssh_server: SshServer, attach: Callable[..., Phone], tmp_path: Path) -> Device:
    """A phone R58M whose port 8022 is an SSH server; its host key is not trusted yet."""
    attach("R58M", ports={8022: ssh_server.port})
    fields = ssh_server.device().model_dump(exclude_unset=True)
    for field in ("host", "port"):
        del fields[field]
    fields |= {
        "name": "phone",
        "transport": "adb",
        "serial": "R58M",
        "known_hosts": tmp_path / "known_hosts",
    }
    return Device.model_validate(fields)

"""A phone's SSH server through adb: trusting it, using it, losing it."""

import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from adb_server import FakeAdbServer, Phone
from ssh_servers import SshServer

from edgeflare.devices.inventory import Device
from edgeflare.devices.open import connect
from edgeflare.devices.transports.ssh.trust import fetch_host_key, trust_host_key
from edgeflare.errors import AuthenticationError, HostKeyError, InventoryError, UnreachableError


@pytest.fixture
def trusted(termux: Device, ssh_server: SshServer) -> Device:
    trust_host_key(termux, ssh_server.fingerprint)
    return termux


def works(device: Device) -> bool:
    transport = connect(device)
    try:
        return transport.run(["-c", "print(1)"], timeout=30).stdout == b"1\n"
    finally:
        transport.close()


def test_the_key_is_trusted_under_the_serial(termux, ssh_server, adb_server, tmp_path) -> None:
    with pytest.raises(HostKeyError, match=r"unknown.*\$PREFIX/etc/ssh.*trust phone"):
        connect(termux)
    shown = fetch_host_key(termux)
    assert (shown.fingerprint, shown.trusted) == (ssh_server.fingerprint, False)
    assert trust_host_key(termux, shown.fingerprint) == tmp_path / "known_hosts"
    assert (tmp_path / "known_hosts").read_text().startswith("adb-r58m ")
    assert fetch_host_key(termux).trusted
    assert works(termux)
    # Another phone's key is another matter, though every phone's port is 8022.
    adb_server.phones.append(Phone("9A", ports={8022: ssh_server.port}))
    with pytest.raises(HostKeyError, match="adb-9A:8022"):
        connect(termux.model_copy(update={"serial": "9A"}))


def test_a_phone_that_shows_another_key_is_refused(termux, ssh_server, tmp_path) -> None:
    other = (ssh_server.folder / "user_key.pub").read_text().split()[:2]
    (tmp_path / "known_hosts").write_text(f"adb-r58m {' '.join(other)}\n")
    with pytest.raises(HostKeyError, match=r"attack.*ssh-keygen -R"):
        connect(termux)


def test_the_key_is_found_for_the_only_phone_too(trusted: Device) -> None:
    assert works(trusted.model_copy(update={"serial": None}))


def test_another_port_of_the_phone_is_another_server(
    trusted: Device, ssh_server: SshServer, adb_server: FakeAdbServer, tmp_path: Path
) -> None:
    adb_server.phone("R58M").ports[2222] = ssh_server.port
    device = trusted.model_copy(update={"port": 2222})
    with pytest.raises(HostKeyError, match="adb-R58M:2222"):
        connect(device)
    trust_host_key(device, ssh_server.fingerprint)
    assert "[adb-r58m]:2222 " in (tmp_path / "known_hosts").read_text()
    assert works(device)


def test_the_ssh_config_may_speak_of_the_phone(trusted, ssh_server, tmp_path) -> None:
    config = tmp_path / "config"
    config.write_text(
        f"Host adb-R58M\n  User {ssh_server.user}\n  IdentityFile {ssh_server.key}\n"
        "Host *\n  HostName nowhere.invalid\n  ProxyJump nobody@nowhere.invalid\n"
    )
    assert works(trusted.model_copy(update={"user": None, "key": None, "ssh_config": config}))


def test_no_sshd_on_the_phone(trusted: Device, adb_server: FakeAdbServer) -> None:
    adb_server.phone("R58M").ports.clear()
    with pytest.raises(UnreachableError, match=r"8022 .*Termux.*sshd"):
        connect(trusted)


def test_a_key_that_is_refused(trusted: Device, ssh_server: SshServer) -> None:
    device = trusted.model_copy(update={"key": ssh_server.host_key})
    with pytest.raises(AuthenticationError, match="tcp:8022 tcp:8022"):
        connect(device)


def test_a_phone_that_comes_back_is_reached_again(trusted, adb_server) -> None:
    transport = connect(trusted)
    stream = transport.open(["-c", "import sys; sys.stdin.read()"])
    adb_server.cut("R58M", "offline")
    assert stream.read(1) == b""
    assert stream.exit_status(5) is None
    with pytest.raises(UnreachableError):
        transport.run(["-c", "print(1)"], timeout=10)
    stream.close()
    transport.close()
    with pytest.raises(UnreachableError, match="come back"):
        connect(trusted.model_copy(update={"connect_timeout_s": 0.5}))
    adb_server.phone("R58M").comes_back = True
    assert works(trusted)


def test_a_phone_that_is_unplugged_is_missed(trusted: Device, adb_server: FakeAdbServer) -> None:
    transport = connect(trusted)
    adb_server.cut("R58M")
    with pytest.raises(UnreachableError):
        transport.run(["-c", "print(1)"], timeout=10)
    transport.close()
    with pytest.raises(UnreachableError, match="serial R58M"):
        connect(trusted)


def test_a_wrapped_python_gets_files_through_itself(trusted: Device, tmp_path: Path) -> None:
    transport = connect(trusted.model_copy(update={"python": f"env A=1 {sys.executable}"}))
    (tmp_path / "source").write_bytes(b"bytes")
    transport.put(tmp_path / "source", str(tmp_path / "target"))
    transport.close()
    assert (tmp_path / "target").read_bytes() == b"bytes"


def test_no_link_and_no_forward_stay_behind(trusted: Device, adb_server: FakeAdbServer) -> None:
    assert works(trusted)
    for _ in range(200):
        if adb_server.open_links == 0:
            break
        time.sleep(0.05)
    assert adb_server.open_links == 0
    assert not [asked for asked in adb_server.asked if "forward" in asked]


@pytest.mark.parametrize("way", ["shell", "local"])
def test_where_there_is_no_host_key(way: str, attach: Callable[..., Phone]) -> None:
    attach("R58M")
    shell = Device(name="p", transport="adb", serial="R58M", adb_shell=True)
    device = shell if way == "shell" else Device(name="local", transport="local")
    with pytest.raises(InventoryError, match="host key"):
        trust_host_key(device, "SHA256:x")

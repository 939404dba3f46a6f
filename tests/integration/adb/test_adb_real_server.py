"""Android's own adb: its server before a phone of the tests' making, and its client before their server."""

import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from adb_server import FakeAdbd, FakeAdbServer, Phone
from ssh_servers import free_port

from edgeflare.devices.inventory import Device
from edgeflare.devices.open import connect
from edgeflare.devices.transports.adb.phones import attached, choose
from edgeflare.devices.transports.adb.server import AdbServer
from edgeflare.devices.transports.adb.transport import AdbShellTransport
from edgeflare.devices.transports.base import Deadline
from edgeflare.devices.transports.ssh.trust import trust_host_key
from edgeflare.errors import UnreachableError

ADB = shutil.which("adb")
pytestmark = pytest.mark.skipif(ADB is None, reason="Android's adb is not on this machine")


@pytest.fixture
def real_server(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[AdbServer]:
    """Android's adb server on a port of the test's own."""
    monkeypatch.delenv("ADB_SERVER_SOCKET", raising=False)
    monkeypatch.delenv("ANDROID_ADB_SERVER_ADDRESS", raising=False)
    monkeypatch.delenv("ANDROID_SERIAL", raising=False)
    monkeypatch.setenv("ANDROID_ADB_SERVER_PORT", str(free_port()))
    server = AdbServer.from_environment()
    with (tmp_path / "adb.log").open("wb") as log:
        process = subprocess.Popen([str(ADB), "nodaemon", "server"], stdout=log, stderr=log)
    for _ in range(200):
        with suppress(UnreachableError, OSError):
            AdbServer(server.host, server.port)._dial(Deadline(1)).close()
            break
        time.sleep(0.05)
    yield server
    process.terminate()
    process.wait()


@pytest.fixture
def adbd(real_server: AdbServer, tmp_path: Path) -> Iterator[FakeAdbd]:
    """A phone that Android's server has connected to; its serial is its address."""
    daemon = FakeAdbd(Phone("", home=tmp_path))
    daemon.phone.serial = f"127.0.0.1:{daemon.port}"
    said = real_server.ask(f"host:connect:{daemon.phone.serial}", Deadline(20))
    assert "connected to" in said
    yield daemon
    with suppress(UnreachableError):
        real_server.ask(f"host:disconnect:{daemon.phone.serial}", Deadline(20))
    daemon.close()


def test_the_list_and_the_choice(real_server: AdbServer, adbd: FakeAdbd) -> None:
    device = choose(real_server, None, 20)
    assert (device.serial, device.model) == (adbd.phone.serial, "Pixel 6")
    assert attached(real_server, Deadline(5)) == [device]
    with pytest.raises(UnreachableError, match="are 127"):
        choose(real_server, "R58M", 5)


@pytest.mark.sshd
def test_ssh_through_the_real_server(adbd, openssh_server, tmp_path) -> None:
    adbd.phone.ports[8022] = openssh_server.port
    fields = openssh_server.device().model_dump(exclude_unset=True)
    del fields["host"], fields["port"]
    fields |= {"transport": "adb", "known_hosts": tmp_path / "known_hosts"}
    device = Device.model_validate(fields)
    trust_host_key(device, openssh_server.fingerprint)
    transport = connect(device)
    data = np.random.default_rng(1).bytes(3_000_000)
    copy = "import shutil, sys; shutil.copyfileobj(sys.stdin.buffer, sys.stdout.buffer)"
    assert transport.run(["-c", copy], data, timeout=60).stdout == data
    adbd.cut()
    with pytest.raises(UnreachableError):
        transport.run(["-c", "print(1)"], timeout=20)
    transport.close()


def test_no_sshd_behind_the_real_server(adbd: FakeAdbd, tmp_path: Path) -> None:
    device = Device(name="phone", transport="adb", known_hosts=tmp_path / "known_hosts")
    with pytest.raises(UnreachableError, match="port 8022"):
        connect(device)
    assert adbd.phone.opened == ["tcp:8022"]


def test_the_shell_through_the_real_server(adbd: FakeAdbd, tmp_path: Path) -> None:
    device = Device(name="p", transport="adb", adb_shell=True, python=sys.executable)
    transport = AdbShellTransport.connect(device)
    code = "import sys; d=sys.stdin.buffer.read(); sys.stdout.buffer.write(d[::-1]); sys.stderr.write('e'); sys.exit(7)"
    assert transport.run(["-c", code], b"abc", timeout=30) == (7, b"cba", "e")
    (tmp_path / "source").write_bytes(np.random.default_rng(2).bytes(2_000_000))
    transport.put(tmp_path / "source", str(tmp_path / "target"))
    assert (tmp_path / "target").read_bytes() == (tmp_path / "source").read_bytes()
    stream = transport.open(["-c", "import os; os.write(1, b'u'); input()"])
    assert stream.read(10) == b"u"
    adbd.cut()
    assert stream.read(1) == b""
    assert stream.exit_status(5) is None
    transport.close()


def connect_and_run(device: Device) -> AdbShellTransport:
    """Connect and run, again as a session does: the server learns a moment later of a lost phone."""
    deadline = Deadline(60)
    while True:
        try:
            transport = AdbShellTransport.connect(device)
            printed = transport.run(["-c", "print(1)"], timeout=30).stdout
        except UnreachableError:
            if deadline.expired:
                raise
            time.sleep(0.1)
        else:
            assert printed == b"1\n"
            return transport


def test_a_phone_that_the_real_server_lost_comes_back(real_server, adbd) -> None:
    device = Device(name="p", transport="adb", adb_shell=True, python=sys.executable)
    for forgotten in (False, True, False):
        transport = connect_and_run(device)
        adbd.cut()
        transport.close()
        if forgotten:
            real_server.ask(f"host:disconnect:{adbd.phone.serial}", Deadline(20))
            device = device.model_copy(update={"serial": adbd.phone.serial})
        assert choose(real_server, adbd.phone.serial, 60).state == "device"


def test_a_server_is_started_where_none_runs(monkeypatch, tmp_path) -> None:
    for name in ("ADB_SERVER_SOCKET", "ANDROID_ADB_SERVER_ADDRESS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("ANDROID_ADB_SERVER_PORT", str(free_port()))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    server = AdbServer.from_environment()
    try:
        with pytest.raises(UnreachableError, match="is attached"):
            choose(server, None, 30)
        assert server.ask("host:version", Deadline(5))
    finally:
        subprocess.run([str(ADB), "kill-server"], check=True, capture_output=True, timeout=30)


def _client(server: FakeAdbServer, *arguments: str) -> "subprocess.CompletedProcess[str]":
    command = [str(ADB), "-H", "127.0.0.1", "-P", str(server.port), *arguments]
    return subprocess.run(
        command, capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL, check=False
    )


def test_the_real_client_understands_the_tests_server(adb_server, attach, tmp_path) -> None:
    attach("R58M", home=tmp_path)
    attach("9A", state="offline")
    attach("7B", state="unauthorized")
    listed = _client(adb_server, "devices", "-l").stdout.splitlines()
    assert "devices attached" in listed[0]
    assert [line.split()[:2] for line in listed[1:4]] == [
        ["R58M", "device"],
        ["9A", "offline"],
        ["7B", "unauthorized"],
    ]
    ran = _client(adb_server, "-s", "R58M", "shell", "echo out; echo err >&2; exit 7")
    assert (ran.returncode, ran.stdout, ran.stderr) == (7, "out\n", "err\n")
    assert "offline" in _client(adb_server, "-s", "9A", "shell", "true").stderr
    assert "unauthorized" in _client(adb_server, "-s", "7B", "shell", "true").stderr
    assert "not found" in _client(adb_server, "-s", "X", "shell", "true").stderr

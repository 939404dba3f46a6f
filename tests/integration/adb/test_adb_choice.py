"""Which phone is meant, and what is said of one that is not ready."""

import socket
import stat
import threading
import time
from collections.abc import Callable

import pytest
from adb_server import FakeAdbServer, Phone

from edgeflare.devices.transports.adb.phones import attached, choose
from edgeflare.devices.transports.adb.server import AdbServer
from edgeflare.devices.transports.base import Deadline
from edgeflare.errors import (
    AuthenticationError,
    DeviceProtocolError,
    DeviceTimeoutError,
    UnreachableError,
)

Attach = Callable[..., Phone]


@pytest.fixture
def server(adb_server: FakeAdbServer) -> AdbServer:
    return AdbServer.from_environment()


def test_the_list_names_serials_models_and_states(server: AdbServer, attach: Attach) -> None:
    attach("R58M")
    attach("emulator-5554", model="sdk_gphone", state="offline")
    attach("adb-R5 (2)._adb-tls-connect._tcp", model="Pixel_6_Pro")
    attach(
        "9A",
        state="no permissions (missing udev rules? user is in the plugdev group); see [http://x]",
    )
    found = attached(server, Deadline(5))
    assert [(one.serial, one.model) for one in found] == [
        ("R58M", "Pixel 6"),
        ("emulator-5554", ""),
        ("adb-R5 (2)._adb-tls-connect._tcp", "Pixel 6 Pro"),
        ("9A", ""),
    ]
    assert [one.state.split(" (")[0] for one in found] == [
        "device",
        "offline",
        "device",
        "no permissions",
    ]


def test_the_only_phone_needs_no_name(server: AdbServer, attach: Attach) -> None:
    attach("R58M")
    assert choose(server, None, 5).serial == "R58M"


def test_the_environment_may_name_the_phone(server, attach, monkeypatch) -> None:
    attach("R58M")
    attach("9A")
    monkeypatch.setenv("ANDROID_SERIAL", "9A")
    assert choose(server, None, 5).serial == "9A"
    assert choose(server, "R58M", 5).serial == "R58M"


def test_no_phone(server: AdbServer) -> None:
    with pytest.raises(UnreachableError, match="adb; plug"):
        choose(server, None, 5)


def test_several_phones_are_listed(server: AdbServer, attach: Attach) -> None:
    attach("R58M")
    attach("9A", state="unauthorized")
    with pytest.raises(UnreachableError, match=r"9A \(unauthorized"):
        choose(server, None, 5)


def test_another_serial_than_those_attached(server: AdbServer, attach: Attach) -> None:
    attach("R58M")
    with pytest.raises(UnreachableError, match=r"R58M \(Pixel"):
        choose(server, "9A", 5)


@pytest.mark.parametrize(
    ("state", "kind", "sentence"),
    [
        ("unauthorized", AuthenticationError, "confirm the dialog"),
        ("authorizing", AuthenticationError, "confirm the dialog"),
        ("offline", UnreachableError, r"offline and did not come back within 0\.2 s"),
        ("no permissions (missing udev rules?)", UnreachableError, "install udev rules"),
        ("recovery", UnreachableError, "'recovery', where nothing can run"),
        ("some-new-state", UnreachableError, "'some-new-state', where nothing can run"),
    ],
)
def test_a_phone_that_is_not_ready_is_explained(server, attach, state, kind, sentence) -> None:
    attach("R58M", state=state)
    with pytest.raises(kind, match=f"R58M .*{sentence}"):
        choose(server, "R58M", 0.2)


def test_a_phone_that_is_offline_is_called_back(server, adb_server, attach) -> None:
    attach("R58M", state="offline", comes_back=True)
    assert choose(server, "R58M", 20).state == "device"
    assert adb_server.asked.count("host:reconnect-offline") == 1


def test_a_phone_on_wifi_is_connected_to(server: AdbServer, adb_server: FakeAdbServer) -> None:
    adb_server.network["10.0.0.9:5555"] = Phone("10.0.0.9:5555")
    assert choose(server, "10.0.0.9:5555", 20).state == "device"
    with pytest.raises(UnreachableError, match=r"serial 10\.0\.0\.8:5555"):
        choose(server, "10.0.0.8:5555", 20)
    assert adb_server.asked.count("host:connect:10.0.0.8:5555") == 1


def test_a_phone_that_is_plugged_in_anew_while_it_is_waited_for(server, adb_server, attach) -> None:
    phone = attach("R58M", state="offline")

    def replug() -> None:
        until = time.monotonic() + 30
        while adb_server.asked.count("host:devices-l") < 2 and time.monotonic() < until:
            time.sleep(0.02)
        adb_server.phones.remove(phone)
        time.sleep(0.5)
        attach("R58M")

    replugging = threading.Thread(target=replug)
    replugging.start()
    assert choose(server, "R58M", 60).state == "device"
    replugging.join()


@pytest.mark.parametrize("before", ["connecting", "authorizing", "unauthorized"])
def test_a_state_that_passes_is_waited_for(server: AdbServer, attach: Attach, before: str) -> None:
    phone = attach("R58M", state=before)
    timer = threading.Timer(0.3, setattr, (phone, "state", "device"))
    timer.start()
    assert choose(server, "R58M", 30).state == "device"
    timer.join()


def test_something_else_than_adb_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        monkeypatch.setenv("ADB_SERVER_SOCKET", f"tcp:{listener.getsockname()[1]}")

        def greet() -> None:
            link, _ = listener.accept()
            with link:
                link.sendall(b"SSH-2.0-x\r\n")
                link.recv(100)

        thread = threading.Thread(target=greet)
        thread.start()
        with pytest.raises(DeviceProtocolError, match="something else"):
            choose(AdbServer.from_environment(), None, 5)
        thread.join()


def test_a_server_that_says_nothing_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        monkeypatch.setenv("ADB_SERVER_SOCKET", f"tcp:localhost:{listener.getsockname()[1]}")
        with pytest.raises(DeviceTimeoutError, match="within 1"):
            choose(AdbServer.from_environment(), None, 0.3)


def _closed_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


def test_no_server_and_no_command_to_start_one(monkeypatch, tmp_path) -> None:
    monkeypatch.setenv("ADB_SERVER_SOCKET", f"tcp:127.0.0.1:{_closed_port()}")
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("ANDROID_HOME", raising=False)
    monkeypatch.delenv("ANDROID_SDK_ROOT", raising=False)
    with pytest.raises(UnreachableError, match="`adb` command"):
        choose(AdbServer.from_environment(), None, 5)


def test_a_command_that_can_not_start_the_server_is_quoted(monkeypatch, tmp_path) -> None:
    monkeypatch.setenv("ADB_SERVER_SOCKET", f"tcp:127.0.0.1:{_closed_port()}")
    tools = tmp_path / "sdk" / "platform-tools"
    tools.mkdir(parents=True)
    (tools / "adb").write_text('#!/bin/sh\necho "no $1 today" >&2\nexit 1\n')
    (tools / "adb").chmod(stat.S_IRWXU)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("ANDROID_HOME", str(tmp_path / "sdk"))
    with pytest.raises(UnreachableError, match="start-server` failed"):
        choose(AdbServer.from_environment(), None, 5)


def test_a_server_elsewhere_is_not_started_from_here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ADB_SERVER_SOCKET", f"tcp:127.0.0.2:{_closed_port()}")
    with pytest.raises(UnreachableError, match=r"127\.0\.0\.2"):
        choose(AdbServer.from_environment(), None, 5)


@pytest.mark.parametrize(
    ("variable", "value", "address"),
    [
        ("ADB_SERVER_SOCKET", "tcp:6000", "127.0.0.1:6000"),
        ("ADB_SERVER_SOCKET", "tcp:lab:6000", "lab:6000"),
        ("ADB_SERVER_SOCKET", "tcp:[::1]:6000", "[::1]:6000"),
        ("ADB_SERVER_SOCKET", "localfilesystem:/run/adb", "/run/adb"),
        ("ANDROID_ADB_SERVER_ADDRESS", "lab", "lab:5037"),
        ("ANDROID_ADB_SERVER_PORT", "6001", "127.0.0.1:6001"),
    ],
)
def test_the_environment_names_the_server(monkeypatch, variable, value, address) -> None:
    for name in ("ADB_SERVER_SOCKET", "ANDROID_ADB_SERVER_ADDRESS", "ANDROID_ADB_SERVER_PORT"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv(variable, value)
    assert AdbServer.from_environment().address == address


@pytest.mark.parametrize("value", ["tcp:", "acceptfd:3", "tcp:lab:70000"])
def test_an_environment_that_makes_no_sense(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    monkeypatch.setenv("ADB_SERVER_SOCKET", value)
    with pytest.raises(UnreachableError, match="ADB_SERVER_SOCKET"):
        AdbServer.from_environment()

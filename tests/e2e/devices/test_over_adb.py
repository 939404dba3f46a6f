"""A campaign on a phone gives the triggers that this machine gives, even if its cable is pulled."""

import json
import sys
from pathlib import Path

import pytest
from adb_server import FakeAdbServer, Phone, adb_server
from campaigns import Found, found_in
from command import DEMO_PAIR, edgeflare, must_run
from ssh_servers import SshServer

__all__ = ["adb_server"]

SEARCH = ("--limit", 5, "--strategy", "dflare", "--no-survey")


@pytest.fixture
def home(tmp_path: Path, asyncssh_server: SshServer, adb_server: FakeAdbServer) -> Path:
    adb_server.phones.append(Phone("R58M", ports={8022: asyncssh_server.port}, home=tmp_path))
    cache, python = json.dumps(str(tmp_path / "cache")), json.dumps(sys.executable)
    (tmp_path / "devices.toml").write_text(
        f'[devices.phone]\ntransport = "adb"\nserial = "R58M"\ncache = {cache}\n'
        f"user = {json.dumps(asyncssh_server.user)}\n"
        f"key = {json.dumps(str(asyncssh_server.key))}\npython = {python}\n"
        f'[devices.shell]\ntransport = "adb"\nadb_shell = true\ncompression = "off"\n'
        f"cache = {cache}\npython = {python}\n"
    )
    return tmp_path


def run(home: Path, device: str, name: str, *more: object) -> Found:
    must_run("run", *DEMO_PAIR, *SEARCH, "--device", device, "--out", name, *more, home=home)
    return found_in(home / name)


@pytest.fixture(scope="module")
def local(tmp_path_factory: pytest.TempPathFactory) -> Found:
    """What this machine finds."""
    return run(tmp_path_factory.mktemp("local"), "local", "local")


@pytest.mark.extended
def test_a_phone_is_trusted_and_finds_what_this_machine_finds(
    home: Path, local: Found, asyncssh_server: SshServer, adb_server: FakeAdbServer
) -> None:
    unknown = edgeflare("devices", "check", "phone", home=home)
    assert unknown.code == 3
    assert "edgeflare devices trust" in unknown.out + unknown.err
    print_ = asyncssh_server.fingerprint
    must_run("devices", "trust", "adb://", "--fingerprint", print_, home=home)
    assert run(home, "phone", "by-ssh", "--concurrency", 4) == local
    adb_server.phones.append(Phone("9A"))
    two = edgeflare("devices", "trust", "adb://", home=home)
    assert two.code == 3
    assert "R58M (Pixel 6)" in two.sentence


@pytest.mark.extended
def test_a_cable_that_is_pulled_again_and_again_changes_nothing(home, local, adb_server) -> None:
    assert run(home, "shell", "whole", "--concurrency", 4) == local
    phone = adb_server.phone("R58M")
    phone.comes_back = True
    phone.offline_after = 80_000
    ran = must_run("run", *DEMO_PAIR, *SEARCH, "--device", "shell", "--out", "cut", home=home)
    assert found_in(home / "cut") == local
    assert "is back" in ran.err
    assert adb_server.asked.count("host:reconnect-offline") >= 2

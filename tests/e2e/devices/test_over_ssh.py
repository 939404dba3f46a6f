"""The same campaign on this machine and through an SSH server gives the same triggers, bit for bit."""

import json
import sys
from pathlib import Path

import pytest
from campaigns import Found, found_in
from command import DEMO_PAIR, edgeflare, must_run
from ssh_servers import SshServer

from edgeflare.types import Status

pytestmark = pytest.mark.sshd

SEEDS = 5


@pytest.fixture
def home(tmp_path: Path, openssh_server: SshServer) -> Path:
    (tmp_path / "devices.toml").write_text(
        "[devices.board]\n"
        f"host = {json.dumps(openssh_server.host)}\n"
        f"port = {openssh_server.port}\n"
        f"user = {json.dumps(openssh_server.user)}\n"
        f"key = {json.dumps(str(openssh_server.key))}\n"
        f"python = {json.dumps(sys.executable)}\n"
        f"cache = {json.dumps(str(tmp_path / 'cache'))}\n"
    )
    return tmp_path


def run(home: Path, device: str, name: str, concurrency: int, *more: object) -> Found:
    must_run(
        "run", *DEMO_PAIR, "--no-survey", "--limit", SEEDS, "--device", device, "--concurrency",
        concurrency, "--out", name, *more, home=home,
    )  # fmt: skip
    found = found_in(home / name)
    assert len(found) == SEEDS
    return found


@pytest.mark.extended
def test_ssh_and_local_find_the_same_triggers_at_any_concurrency(home, openssh_server) -> None:
    unknown = edgeflare("devices", "check", "board", home=home)
    assert unknown.code == 3
    assert "edgeflare devices trust" in unknown.out + unknown.err

    shown = edgeflare("devices", "trust", "board", home=home)
    assert shown.code == 3
    fingerprint = next(word for word in shown.err.split() if word.startswith("SHA256:"))
    must_run("devices", "trust", "board", "--fingerprint", fingerprint, home=home)
    again = must_run("devices", "trust", "board", home=home)
    assert "trusted already" in again.err
    checked = edgeflare("devices", "check", "board", "--json", home=home)
    assert checked.code == 0, checked.out + checked.err
    assert checked.json["ready"] is True

    dflare = ("--strategy", "dflare")
    local = run(home, "local", "local", 1, *dflare)
    assert run(home, "board", "board-1", 1, *dflare) == local
    assert run(home, "board", "board-32", 32, *dflare) == local
    assert any(value[0] is Status.FOUND for value in local.values())

    stated = ("--crossing", "least-l2", "--option", "effort=32", "--device-budget", 6)
    near = run(home, "local", "near-local", 1, *stated)
    assert run(home, "board", "near-board", 32, *stated) == near
    assert all(value[0] is Status.FOUND for value in near.values())

    address = f"ssh://{openssh_server.user}@{openssh_server.host}:{openssh_server.port}"
    (home / ".ssh" / "id_ed25519").symlink_to(openssh_server.key)
    assert run(home, address, "by-address", 16, "--python", sys.executable, *dflare) == local

    must_run("devices", "prune", "board", "--all", home=home)
    left = [path for path in (home / "cache").rglob("*") if path.is_file()]
    assert {path.parent.name for path in left} <= {"leases"}


def test_trust_warns_of_a_key_that_changed(home: Path, openssh_server: SshServer) -> None:
    other = (openssh_server.folder / "user_key.pub").read_text().split()[:2]
    (home / ".ssh").mkdir(mode=0o700)
    (home / ".ssh" / "known_hosts").write_text(
        f"[{openssh_server.host}]:{openssh_server.port} {' '.join(other)}\n"
    )
    ran = edgeflare("devices", "trust", "board", home=home)
    assert ran.code == 3
    assert "attack" in ran.sentence
    assert "ssh-keygen -R" in ran.sentence


def test_an_unknown_host_key_stops_a_run_before_anything_is_made(home: Path) -> None:
    ran = edgeflare("run", *DEMO_PAIR, "--device", "board", home=home)
    assert ran.code == 3
    assert "devices trust" in ran.sentence
    assert not (home / "campaigns").exists()

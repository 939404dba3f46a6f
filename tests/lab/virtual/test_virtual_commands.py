"""What the user sees of a virtual board where nothing needs to boot."""

import json
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from filelock import FileLock
from typer.testing import CliRunner

from edgeflare.cli.devices import app as devices_app
from edgeflare_lab.virtual import board_down
from edgeflare_lab.virtual.board_files import (
    BoardState,
    board_device,
    board_keys,
    write_entry,
    write_state,
)
from edgeflare_lab.virtual.cli import Steps, app
from edgeflare_lab.virtual.machine import BoardSettings


@pytest.fixture
def boards(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of boards of a user who has made none."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "state" / "edgeflare" / "virtual"


@pytest.fixture
def stopped(boards: Path) -> Path:
    """A board that was up once and whose build is gone."""
    folder = boards / "attic"
    folder.mkdir(parents=True)
    board_keys(folder)
    write_state(folder, BoardState("gone", 2222, 2, 1024, "cortex-a72", 0.0, 7.0, "3.11.2"))
    return folder


def test_nothing_there_is_no_error(boards: Path) -> None:
    shown = CliRunner().invoke(app, ["status"])
    assert shown.exit_code == 0
    assert "'virtual'; edgeflare devices" in shown.stdout
    data = json.loads(CliRunner().invoke(app, ["status", "--json"]).stdout)
    assert (data["made"], data["running"], data["port"]) == (False, False, None)
    stopped = CliRunner().invoke(app, ["down", "--delete"])
    assert stopped.exit_code == 0
    assert "virtual board" in stopped.stderr
    assert not boards.exists()


def test_a_stopped_board_says_how_to_start_it(stopped: Path) -> None:
    shown = CliRunner().invoke(app, ["status", "--name", "attic"])
    assert shown.exit_code == 0
    assert "--name attic starts" in shown.stdout
    assert "from the cache" in shown.stdout
    data = json.loads(CliRunner().invoke(app, ["status", "--name", "attic", "--json"]).stdout)
    assert (data["made"], data["running"], data["port"]) == (True, False, 2222)


def test_down_reports_what_it_did_and_delete_leaves_nothing(stopped: Path) -> None:
    kept = CliRunner().invoke(app, ["down", "--name", "attic"])
    assert "run; up starts" in kept.stderr
    assert stopped.is_dir()
    removed = CliRunner().invoke(app, ["down", "--name", "attic", "--delete"])
    assert "and is removed" in removed.stderr
    assert not stopped.exists()


def test_a_board_that_is_removed_while_down_waits_is_gone_without_ado(stopped: Path) -> None:
    told: list[str] = []
    waits = threading.Event()

    def tell(what: str, seconds: float | None) -> None:
        told.append(what)
        waits.set()

    reports = []
    other = threading.Thread(target=lambda: reports.append(board_down("attic", True, tell)))
    with FileLock(stopped.parent / ".attic.lock"):
        other.start()
        assert waits.wait(120)
        stopped.rename(stopped.with_name("elsewhere"))
    other.join()
    assert told == ["waiting for another command on this board"] * 2
    assert [(report.made, report.ran) for report in reports] == [(False, False)]


def test_a_board_whose_first_up_was_killed_is_not_called_unmade(boards: Path) -> None:
    pid_file = boards / "attic" / "qemu.pid"
    pid_file.parent.mkdir(parents=True)
    code = "print(flush=True); input()"
    with subprocess.Popen(
        [sys.executable, "-c", code, pid_file], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        process.stdout.readline()
        pid_file.write_text(str(process.pid))
        shown = CliRunner().invoke(app, ["status", "--name", "attic"])
        process.kill()
    assert f"booting (process {process.pid})" in shown.stdout


def test_a_stopped_board_is_no_fault_of_the_inventory(stopped, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    write_entry(stopped, board_device(stopped, "attic", 2222), "ssh-ed25519 AAAA")
    shown = CliRunner().invoke(devices_app, ["status"])
    assert shown.exit_code == 0, shown.stderr
    assert "don't run: attic" in shown.stderr
    named = CliRunner().invoke(devices_app, ["status", "attic"])
    assert named.exit_code == 3


@pytest.mark.skipif(os.geteuid() == 0, reason="root may enter every folder")
def test_another_user_s_board_keeps_nobody_from_the_other_devices(stopped, tmp_path) -> None:
    from edgeflare.devices import load_inventory

    (tmp_path / "mine.toml").write_text('[devices.zero]\nhost = "zero"\n')
    stopped.chmod(0)
    try:
        assert list(load_inventory(tmp_path / "mine.toml")) == ["zero"]
    finally:
        stopped.chmod(0o700)


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["--port", "70000"], "--port 70000"),
        (["--cores", "0"], "--cores 0"),
        (["--memory", "100"], "--memory 100"),
        (["--cpu", "i486"], "--cpu i486"),
        (["--mirror", "mirror.example.org"], "--mirror mirror.example.org"),
        (["--keyring", "nowhere.gpg"], "--keyring nowhere.gpg"),
        (["--name", "../up"], "--name '../up'"),
        (["--name", "local"], "--name 'local'"),
    ],
)
def test_what_cannot_be_is_a_usage_error(words: list[str], reason: str, boards: Path) -> None:
    done = CliRunner().invoke(app, ["up", *words])
    assert done.exit_code == 2
    assert reason in done.stderr
    assert not boards.exists()


def test_keys_where_apt_cannot_name_them_are_refused(boards: Path, tmp_path: Path) -> None:
    keyring = tmp_path / "my keys.gpg"
    keyring.touch()
    done = CliRunner().invoke(app, ["up", "--keyring", str(keyring)])
    assert done.exit_code == 2
    assert "with a space" in done.stderr


def test_a_state_folder_that_cannot_be_made_is_reported(tmp_path, monkeypatch) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "file"))
    monkeypatch.setattr("edgeflare_lab.virtual.board.check_qemu", lambda: None)
    done = CliRunner().invoke(app, ["up"])
    assert done.exit_code == 3
    assert f"folder {tmp_path}/file/edgeflare/virtual" in done.stderr


def test_the_steps_are_shown_as_they_go(capsys: pytest.CaptureFixture[str]) -> None:
    steps = Steps()
    steps("fetching", None)
    assert capsys.readouterr().err == "fetching ..."
    steps("fetching", 1.25)
    steps("booting", None)
    steps.close()
    steps.close()
    assert "booting" in capsys.readouterr().err


def test_a_running_board_s_differences_are_noted(stopped: Path) -> None:
    from edgeflare_lab.virtual.board import notes
    from edgeflare_lab.virtual.build import build_key
    from edgeflare_lab.virtual.rootfs import host_versions

    same = BoardState(build_key(host_versions()), 2222, 2, 1024, "cortex-a72", 0.0, 7.0, "3.11.2")
    assert notes(BoardSettings(), same) == []
    (unlike,) = notes(BoardSettings(cores=4, port=2223), same)
    assert "2222 (asked: 2223)" in unlike
    old = BoardState("older", 2222, 2, 1024, "cortex-a72", 0.0, 7.0, "3.11.2")
    (outdated,) = notes(BoardSettings(), old)
    assert "changed since" in outdated

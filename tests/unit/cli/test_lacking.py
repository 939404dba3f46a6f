"""A machine without memory, threads, a home or a working folder: code 3 and a sentence, not 70."""

import errno
import os
from pathlib import Path

import pytest
import typer
from command import DEMO_PAIR, edgeflare
from typer.testing import CliRunner

from edgeflare._internal.files import cache_folder, make_folder, state_folder
from edgeflare.cli import app
from edgeflare.cli.terminal import with_exit_codes
from edgeflare.errors import HostError


@pytest.mark.parametrize(
    ("fault", "word"),
    [
        (MemoryError(), "memory"),
        (ImportError("a.so: failed to map segment from shared object"), "memory"),
        (RuntimeError("can't start new thread"), "threads"),
        (RuntimeError("Could not determine home directory."), "HOME"),
        (OSError(errno.EAGAIN, os.strerror(errno.EAGAIN)), "ulimit"),
        (OSError(errno.EMFILE, os.strerror(errno.EMFILE), "a.npz"), "ulimit"),
        (MemoryError(), "repeat the command"),
        (OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "a.npz"), "a.npz"),
    ],
)
def test_what_a_machine_lacks(fault, word, capsys) -> None:
    def command() -> None:
        raise fault

    with pytest.raises(typer.Exit) as ended:
        with_exit_codes(command)()
    assert ended.value.exit_code == 3
    assert word in capsys.readouterr().err


@pytest.mark.parametrize(
    "fault", [BrokenPipeError(errno.EPIPE, "Broken pipe"), RuntimeError("new"), OSError("odd")]
)
def test_another_fault_stays_one(fault: Exception) -> None:
    def command() -> None:
        raise fault

    with pytest.raises(typer.Exit) as ended:
        with_exit_codes(command)()
    assert ended.value.exit_code == 70


@pytest.mark.parametrize("command", [("run", *DEMO_PAIR, "--limit", "1"), ("demo", "--seeds", "1")])
def test_a_working_folder_that_was_removed(tmp_path, monkeypatch, command) -> None:
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    done = CliRunner().invoke(app, [str(one) for one in command])
    assert done.exit_code == 3
    assert "working folder" in done.stderr


def test_a_home_that_is_missing_is_not_made(tmp_path, monkeypatch) -> None:
    home = tmp_path / "nonexistent"
    monkeypatch.setenv("HOME", str(home))
    with pytest.raises(HostError, match="nonexistent"):
        make_folder(home / ".cache" / "edgeflare")
    make_folder(tmp_path / "elsewhere" / "a")
    run = ("run", *DEMO_PAIR, "--limit", 1, "--no-survey", "--out", "c")
    missing = {"HOME": str(home)}
    assert edgeflare("devices", "list", home=tmp_path, extra=missing).code == 0
    ran = edgeflare(*run, home=tmp_path, extra=missing)
    assert (ran.code, str(home) in ran.err) == (3, True)
    assert not home.exists()


def test_no_home_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As of a user without an entry in the list of users."""

    def unknown() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "home", unknown)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.delenv("XDG_STATE_HOME", raising=False)
    for folder in (cache_folder, state_folder):
        with pytest.raises(HostError):
            folder()
    make_folder(tmp_path / "a")
    assert edgeflare("devices", "list", home=tmp_path).code == 0

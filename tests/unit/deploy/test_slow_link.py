"""The virtual board's slow link: what reaches the board, with a stand-in for ssh."""

from pathlib import Path

import pytest
from stand_ins import DEPLOY, run_script, write_command

SLOW_LINK = DEPLOY / "virtual-pi" / "slow-link.sh"

ENTRY = """[devices.lab]
host = "127.0.0.1"
port = 40022
key = "/home/me/my state/id_ed25519"
"""


@pytest.fixture
def home(tmp_path: Path) -> Path:
    folder = tmp_path / "home" / ".local" / "state" / "edgeflare" / "virtual" / "lab"
    folder.mkdir(parents=True)
    (folder / "devices.toml").write_text(ENTRY, encoding="utf-8")
    write_command(tmp_path / "bin", "ssh", 'for word; do echo "$word"; done')
    return tmp_path / "home"


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("on", "--delay", "40", "--loss", "0.5"), "netem delay 40ms 0ms loss 0.5% limit 10000"),
        (("off",), "tc qdisc del dev eth0 root"),
        ((), "/usr/sbin/tc qdisc show dev eth0"),
    ],
)
def test_the_board_is_told_to_delay(home: Path, arguments: tuple[str, ...], told: str) -> None:
    done = run_script(
        SLOW_LINK, *arguments, "--name", "lab", home=home, commands=home.parent / "bin"
    )
    assert done.returncode == 0, done.stderr
    words = done.stdout.splitlines()
    assert words[words.index("-i") + 1] == "/home/me/my state/id_ed25519"
    # ssh takes a value with a space only in quotes of its own
    assert f'UserKnownHostsFile="{home}/.local/state/edgeflare/virtual/lab/known_hosts"' in words
    assert words[words.index("-p") + 1] == "40022"
    assert words[-2] == "root@127.0.0.1"
    assert told in words[-1]


def test_a_board_that_is_not_there_is_named(home: Path) -> None:
    done = run_script(SLOW_LINK, "--name", "attic", home=home)
    assert done.returncode == 3
    assert "virtual up --name" in done.stderr


def test_a_board_that_is_down_is_reported(home: Path) -> None:
    write_command(home.parent / "bin", "ssh", "exit 255")
    done = run_script(SLOW_LINK, "on", "--name", "lab", home=home, commands=home.parent / "bin")
    assert done.returncode == 3
    assert "is it up?" in done.stderr


def test_a_board_that_refuses_is_not_called_down(home: Path) -> None:
    write_command(home.parent / "bin", "ssh", "echo 'Illegal loss percent' >&2; exit 1")
    arguments = ("on", "--loss", "101", "--name", "lab")
    done = run_script(SLOW_LINK, *arguments, home=home, commands=home.parent / "bin")
    assert done.returncode == 3
    assert "lab refused this" in done.stderr
    assert "is it up?" not in done.stderr


@pytest.mark.parametrize(
    "arguments",
    [
        ("on", "--delay", "1; reboot"),
        ("on", "--loss", ""),
        ("on", "--loss", "1.2.3"),
        ("on", "--jitter", "."),
        ("on", "off"),
    ],
)
def test_a_wrong_argument_never_reaches_the_board(home: Path, arguments: tuple[str, ...]) -> None:
    done = run_script(
        SLOW_LINK, *arguments, "--name", "lab", home=home, commands=home.parent / "bin"
    )
    assert (done.returncode, done.stdout) == (2, "")

"""Virtual boards are in every inventory, behind the user's own devices."""

import subprocess
from pathlib import Path

import pytest

from edgeflare.devices import connect, load_inventory
from edgeflare.devices.transports.ssh.config import resolve_endpoint
from edgeflare.devices.transports.ssh.known_hosts import known_keys
from edgeflare.errors import DeviceError, UnreachableError
from edgeflare_lab.virtual import BoardSettings, board
from edgeflare_lab.virtual.board_files import USER_KEY, board_device, board_keys, write_entry
from edgeflare_lab.virtual.machine import free_port


@pytest.fixture
def boards(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of boards, with two of them."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.chdir(tmp_path)
    root = tmp_path / "state" / "edgeflare" / "virtual"
    for name in ("virtual", "second"):
        (root / name).mkdir(parents=True)
        write_entry(root / name, board_device(root / name, name, 2222), "ssh-ed25519 AAAA")
    (root / ".virtual.lock").touch()
    (root / "unfinished").mkdir()
    return root


def test_boards_are_known_without_an_inventory(boards: Path) -> None:
    devices = load_inventory()
    assert list(devices) == ["second", "virtual"]
    board = devices["virtual"]
    assert board == board_device(boards / "virtual", "virtual", 2222)
    assert (board.user, board.host, board.port) == ("pi", "127.0.0.1", 2222)
    assert board.key == boards / "virtual" / USER_KEY
    known = board.known_hosts
    assert known.read_text() == "[127.0.0.1]:2222 ssh-ed25519 AAAA\n"


def test_the_usual_port_is_known_without_its_number(boards: Path) -> None:
    folder = boards / "second"
    device = board_device(folder, "second", 22)
    keys = board_keys(folder)
    write_entry(folder, device, keys.host_public)
    endpoint = resolve_endpoint(device)
    (known,) = known_keys(endpoint.known_as, endpoint.known_hosts)
    assert known.type == "ssh-ed25519"
    words = ["ssh-keygen", "-F", "127.0.0.1", "-f", str(folder / "known_hosts")]
    assert subprocess.run(words, capture_output=True).returncode == 0


def test_a_board_that_was_refused_leaves_nothing(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(board, "check_qemu", lambda: None)

    def refuse(*_: object) -> None:
        raise DeviceError("no mirror answers")

    monkeypatch.setattr(board, "ensure_build", refuse)
    with pytest.raises(DeviceError, match="no mirror"):
        board.board_up(BoardSettings(name="lab"))
    assert not (tmp_path / "state" / "edgeflare" / "virtual" / "lab").exists()
    assert board.board_status("lab").folder is None


def test_the_user_s_own_names_win(boards: Path, tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text('[devices.zero]\nhost = "zero"\n[devices.virtual]\nhost = "elsewhere"\n')
    devices = load_inventory(path)
    assert list(devices) == ["zero", "virtual", "second"]
    assert devices["virtual"].host == "elsewhere"


def test_a_damaged_entry_keeps_nobody_from_the_other_devices(boards: Path) -> None:
    (boards / "second" / "devices.toml").write_text("[devices.second\n")
    assert list(load_inventory()) == ["virtual"]


def test_no_boards_no_devices(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    assert load_inventory() == {}
    monkeypatch.setenv("XDG_STATE_HOME", "relative")  # such a folder does not count
    monkeypatch.setenv("HOME", str(tmp_path))
    assert load_inventory() == {}


def test_a_board_that_is_down_is_reported_with_what_starts_it(boards: Path) -> None:
    folder = boards / "second"
    board_keys(folder)
    board = board_device(folder, "second", free_port())
    with pytest.raises(UnreachableError, match="--name second"):
        connect(board)
    with pytest.raises(UnreachableError) as caught:
        connect(board.model_copy(update={"name": "other"}))
    assert "virtual up" not in str(caught.value)


def test_keys_are_made_once_and_are_private(tmp_path: Path) -> None:
    first = board_keys(tmp_path)
    assert board_keys(tmp_path) == first
    assert (tmp_path / USER_KEY).stat().st_mode & 0o777 == 0o600
    assert first.authorized != first.host_public
    (tmp_path / "next").mkdir()
    assert board_keys(tmp_path / "next").authorized != first.authorized

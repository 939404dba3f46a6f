"""Termux's script, with stand-ins for Termux's commands: a phone that is a folder."""

import shutil
from pathlib import Path
from subprocess import CompletedProcess

import pytest
from stand_ins import DEPLOY, run_script, write_command

from edgeflare import Device, load_inventory

SETUP = DEPLOY / "android" / "setup-termux.sh"
KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIFbogus you@host"

_EVERYWHERE = ("cat", "chmod", "cp", "grep", "id", "mkdir", "sed", "sh", "tail", "touch")

PROOT_DISTRO = """
case "$*" in
    "install debian") touch {phone}/debian ;;
    "login debian -- true") [ -e {phone}/debian ] ;;
    *ensurepip*) touch {phone}/python ;;
    *importlib*) [ -e {phone}/python ] && echo "numpy 2.3.0, ai_edge_litert 2.3.0" || echo "no python" ;;
    *) exit 9 ;;
esac
"""


class Phone:
    """Termux's commands as scripts that note what they did in a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.commands, self.home = folder, folder / "bin", folder / "home"
        write_command(
            self.commands,
            "pkg",
            f'echo "$@" >>{folder}/pkg; cp {folder}/packages/* {self.commands}',
        )
        text = PROOT_DISTRO.format(phone=folder)
        write_command(folder / "packages", "proot-distro", text)
        write_command(folder / "packages", "sshd", f"echo started >>{folder}/sshd")
        write_command(self.commands, "pgrep", f"[ -e {folder}/sshd ]")
        for name in _EVERYWHERE:
            place = shutil.which(name)
            assert place is not None
            (self.commands / name).symlink_to(place)
        write_command(self.commands, "termux-wake-lock", f"touch {folder}/awake")
        write_command(self.commands, "uname", "echo aarch64")
        write_command(self.commands, "ip", 'echo "192.0.2.1 via 10.0.0.1 dev wlan0 src 10.0.0.7"')

    def run(self, *arguments: str, termux: bool = True) -> "CompletedProcess[str]":
        environment = {"PATH": str(self.commands)}
        if termux:
            environment["PREFIX"] = "/data/data/com.termux/files/usr"
        return run_script(SETUP, *arguments, home=self.home, environment=environment)


@pytest.fixture
def phone(tmp_path: Path) -> Phone:
    return Phone(tmp_path)


def test_a_fresh_phone_becomes_a_device(phone, tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    done = phone.run("--key", KEY)
    assert done.returncode == 0, done.stderr
    keys = phone.home / ".ssh" / "authorized_keys"
    assert keys.read_text() == f"{KEY}\n"
    assert keys.stat().st_mode & 0o777 == 0o600
    assert (tmp_path / "awake").exists()
    tables = done.stdout.split("[devices.phone]")[1:]
    assert len(tables) == 2
    found = []
    for number, table in enumerate(tables):
        inventory = tmp_path / f"{number}.toml"
        inventory.write_text("[devices.phone]" + table.partition("\n\n")[0], encoding="utf-8")
        found.append(load_inventory(inventory)["phone"])
    wifi, usb = found
    assert (wifi.transport, wifi.host, wifi.port) == ("ssh", "10.0.0.7", 8022)
    assert usb.transport == "adb"
    assert wifi.python == usb.python
    assert wifi.python.endswith("debian -- /root/edgeflare-python/bin/python")
    assert wifi.cache == usb.cache == Device.model_fields["cache"].default


def test_a_second_run_repeats_nothing(phone: Phone, tmp_path: Path) -> None:
    phone.run("--key", KEY)
    done = phone.run("--key", KEY)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "pkg").read_text() == "install -y openssh\n"
    assert (tmp_path / "sshd").read_text() == "started\n"
    assert (phone.home / ".ssh" / "authorized_keys").read_text() == f"{KEY}\n"
    assert phone.run("--check").returncode == 0


def test_a_key_joins_those_that_are_there(phone: Phone) -> None:
    keys = phone.home / ".ssh" / "authorized_keys"
    keys.parent.mkdir(parents=True)
    keys.write_text("ssh-rsa AAAAother")
    done = phone.run("--key", KEY)
    assert done.returncode == 0, done.stderr
    assert keys.read_text() == f"ssh-rsa AAAAother\n{KEY}\n"


def test_check_only_looks(phone: Phone, tmp_path: Path) -> None:
    done = phone.run("--check")
    assert done.returncode == 3
    assert "fix: not installed" in done.stdout
    assert "key may log" in done.stdout
    assert not (tmp_path / "pkg").exists()
    assert list(phone.home.iterdir()) == []


def test_without_any_key_it_asks_for_one(phone: Phone) -> None:
    done = phone.run()
    assert done.returncode == 2
    assert "--key" in done.stderr


@pytest.mark.parametrize(
    ("key", "told"),
    [
        ("-----BEGIN OPENSSH PRIVATE KEY-----", "a private key"),
        (f"{KEY}\n{KEY}", "several lines"),
        ("id_ed25519.pub", "no public key"),
    ],
)
def test_what_is_no_public_key_is_not_let_in(phone: Phone, key: str, told: str) -> None:
    done = phone.run("--key", key)
    assert done.returncode == 2
    assert told in done.stderr
    assert list(phone.home.iterdir()) == []


def test_elsewhere_it_does_nothing(phone: Phone) -> None:
    outside = phone.run("--key", KEY, termux=False)
    assert outside.returncode == 3
    assert "not Termux" in outside.stderr
    write_command(phone.commands, "uname", "echo armv8l")
    old = phone.run("--key", KEY)
    assert old.returncode == 3
    assert "64-bit phone" in old.stderr
    assert list(phone.home.iterdir()) == []

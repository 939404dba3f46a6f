"""What is missing is said at once, before anything is begun."""

import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from edgeflare.errors import DeviceError, DiskFullError
from edgeflare_lab.virtual import tools as needs
from edgeflare_lab.virtual.tools import check_build_tools, check_qemu, check_space


class Usage(NamedTuple):
    free: int


@pytest.fixture
def bare(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A machine without any program; returns the folder where one may be put."""
    monkeypatch.setattr(needs, "search_path", lambda: str(tmp_path))
    return tmp_path


def put(folder: Path, *names: str) -> None:
    for name in names:
        (folder / name).touch(mode=0o755)


def test_all_that_is_missing_is_named_in_one_command_line(bare, monkeypatch) -> None:
    put(bare, "apt-get", "apt-cache", "dpkg-deb", "tar")
    monkeypatch.setattr(needs, "pip_command", lambda: None)
    with pytest.raises(DeviceError) as caught:
        check_build_tools()
    assert "qemu-system-aarch64, mke2fs, debugfs" in str(caught.value)
    assert "--no-install-recommends qemu-system-arm e2fsprogs" in str(caught.value)


def test_without_apt_the_mirror_and_the_keys_are_asked_for(bare: Path) -> None:
    put(bare, "qemu-system-aarch64", "tar", "mke2fs", "debugfs", "e2fsck")
    with pytest.raises(DeviceError, match="Fedora") as caught:
        check_build_tools()
    assert "--mirror" in str(caught.value)
    assert "--keyring" in str(caught.value)


def test_a_machine_with_all_of_it_is_ready(bare: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(bare, *needs.PACKAGES)
    monkeypatch.setattr(needs, "pip_command", lambda: ["pip"])
    check_qemu()
    assert check_build_tools() == ["pip"]


def test_another_system_is_told_what_to_use_instead(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    with pytest.raises(DeviceError, match="need Linux"):
        check_qemu()


@pytest.mark.parametrize(("free_mb", "enough"), [(1499, False), (1500, True)])
def test_too_little_space_is_reported_before_building(
    free_mb: int, enough: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("shutil.disk_usage", lambda folder: Usage(free_mb * 1_000_000))
    if enough:
        check_space(tmp_path)
    else:
        with pytest.raises(DiskFullError, match="1500 MB"):
            check_space(tmp_path)

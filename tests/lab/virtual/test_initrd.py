"""The archive that Linux begins with, read back byte by byte, and by cpio where there is one."""

import shutil
import stat
import subprocess
from pathlib import Path

import pytest

from edgeflare_lab.virtual.initrd import Entry, archive, base_archive, board_archive, file, folder

ENTRIES = [
    folder("dev"),
    Entry("dev/console", stat.S_IFCHR | 0o600, device=(5, 1)),
    folder("bin"),
    file("bin/busybox", b"\x7fELF odd", 0o755),
    Entry("bin/sh", stat.S_IFLNK | 0o777, b"busybox"),
    file("empty", b""),
]


def read(data: bytes) -> list[Entry]:
    """Read "newc" archives, one behind the other, as Linux does."""
    entries, at = [], 0
    while at < len(data):
        assert data[at : at + 6] == b"070701"
        numbers = [int(data[at + 6 + 8 * n : at + 14 + 8 * n], 16) for n in range(13)]
        mode, size, device, length = numbers[1], numbers[6], numbers[9:11], numbers[11]
        name = data[at + 110 : at + 110 + length]
        assert name.endswith(b"\0")
        begin = (at + 110 + length + 3) // 4 * 4
        at = (begin + size + 3) // 4 * 4
        if name != b"TRAILER!!!\0":
            content = data[begin : begin + size]
            entries.append(Entry(name[:-1].decode(), mode, content, (device[0], device[1])))
    return entries


def test_an_archive_is_read_back() -> None:
    assert read(archive(ENTRIES)) == ENTRIES
    assert archive(ENTRIES) == archive(ENTRIES)


@pytest.mark.skipif(shutil.which("cpio") is None, reason="needs cpio")
def test_cpio_reads_it(tmp_path: Path) -> None:
    plain = [entry for entry in ENTRIES if not stat.S_ISCHR(entry.mode)]
    subprocess.run(
        ["cpio", "--extract", "--quiet", "--make-directories"],
        input=archive(plain),
        cwd=tmp_path,
        check=True,
    )
    assert (tmp_path / "bin/sh").read_bytes() == b"\x7fELF odd"
    assert stat.S_IMODE((tmp_path / "bin/busybox").stat().st_mode) == 0o755


def test_a_board_s_own_files_follow_those_of_its_build(tmp_path: Path) -> None:
    for name in ("busybox", "b.ko", "a.ko"):
        (tmp_path / name).write_text(name)
    data = base_archive(tmp_path / "busybox", [tmp_path / "b.ko", tmp_path / "a.ko"])
    own = board_archive("attic", "ssh-ed25519 AAAA", b"secret")
    entries = {entry.name: entry for entry in read(data + own)}
    assert entries["modules/order"].data == b"b.ko\na.ko\n"
    assert entries["init"].mode == stat.S_IFREG | 0o755
    assert entries["board/host_key"] == file("board/host_key", b"secret", 0o600)
    assert entries["board/hostname"].data == b"attic\n"
    for name in entries:  # Linux makes no folders on its own
        parent = name.rpartition("/")[0]
        assert not parent or stat.S_ISDIR(entries[parent].mode)

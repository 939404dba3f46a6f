"""Writes the archive that Linux takes as its first root file system (cpio, "newc")."""

import stat
from collections.abc import Iterable
from typing import NamedTuple

_MAGIC = b"070701"


class Entry(NamedTuple):
    """One file of an archive; owner and group are root."""

    name: str
    """Its path without a leading slash; its folder must come before it."""
    mode: int
    """Type and permissions, as ``os.stat`` gives them."""
    data: bytes = b""
    """A file's content, a link's target."""
    device: tuple[int, int] = (0, 0)
    """Major and minor number of a device."""


def folder(name: str) -> Entry:
    """Return a folder's entry."""
    return Entry(name, stat.S_IFDIR | 0o755)


def file(name: str, data: bytes, mode: int = 0o644) -> Entry:
    """Return a plain file's entry."""
    return Entry(name, stat.S_IFREG | mode, data)


def archive(entries: Iterable[Entry]) -> bytes:
    """Return an archive of these entries; the same bytes for the same entries."""
    blocks = [_block(number, entry) for number, entry in enumerate(entries, 1)]
    return b"".join([*blocks, _block(0, Entry("TRAILER!!!", 0))])


def _block(number: int, entry: Entry) -> bytes:
    name = entry.name.encode() + b"\0"
    links = 2 if stat.S_ISDIR(entry.mode) else 1
    numbers = (
        *(number, entry.mode, 0, 0, links, 0, len(entry.data), 0, 0),
        *entry.device,
        *(len(name), 0),
    )
    return _padded(_MAGIC + b"".join(b"%08x" % each for each in numbers) + name) + _padded(
        entry.data
    )


def _padded(data: bytes) -> bytes:
    return data + bytes(-len(data) % 4)

"""Files that are written whole or not at all, and names of files."""

import errno
import hashlib
import os
import re
import shutil
import stat
import time
import uuid
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from edgeflare.errors import HostError

_NO_SPACE = (errno.ENOSPC, errno.EDQUOT)
_NO_MORE = (errno.EAGAIN, errno.ENOMEM, errno.EMFILE, errno.ENFILE)
_TEMPORARY = re.compile(r"\.new-[0-9a-f]{32}")
_PRIVATE = 0o600
MOST_BYTES = 256 << 20
"""Of a document that is read whole."""
_AT_ONCE = getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
"""A FIFO is opened without waiting for who writes to it; on Windows no byte is changed."""
_SPECIAL = (
    *((stat.S_ISDIR, "a folder"), (stat.S_ISFIFO, "a FIFO"), (stat.S_ISSOCK, "a socket")),
    *((stat.S_ISCHR, "a device"), (stat.S_ISBLK, "a device")),
)


@contextmanager
def replacing(path: Path, *, durable: bool = False, private: bool = False) -> Iterator[BinaryIO]:
    """Yield a new file that replaces `path` at the end; after an error the old one is unchanged.

    `durable`: the file and its name are on disk when this ends, and so survive a loss of power.
    `private`: only this user may read it. Raises OSError, which names `path`.
    """
    temporary = _temporary_name(path)
    try:
        with _new_file(temporary, durable=durable, private=private) as file:
            yield file
    except OSError as error:
        if error.filename == str(temporary):
            error.filename = str(path)
        raise
    try:
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    if durable:
        sync_folder(path.parent)


def check_regular(
    path: Path | str, most: int | None = None, *, inside: Path | str | None = None
) -> None:
    """Raise OSError unless a path is that of a regular file, of `most` bytes at most.

    A FIFO would be waited for, a device read without an end. `inside`: a folder that links in it
    may not lead out of; the folder itself may be reached by one.
    """
    check_inside(path, inside)
    _check_kind(os.stat(path), path, most)  # noqa: PTH116 - many samples are read


def read_regular(
    path: Path | str, most: int = MOST_BYTES, *, inside: Path | str | None = None
) -> bytes:
    """Return the content of a regular file, see `check_regular`. Raises OSError, which names it."""
    check_inside(path, inside)
    descriptor = os.open(path, os.O_RDONLY | _AT_ONCE)
    try:
        left = _check_kind(os.fstat(descriptor), path, most)
    except OSError:
        os.close(descriptor)
        raise
    with open(descriptor, "rb", buffering=0) as file:  # noqa: PTH123
        parts = []
        while left and (part := file.read(left)):
            parts.append(part)
            left -= len(part)
    return parts[0] if len(parts) == 1 else b"".join(parts)


def check_inside(path: Path | str, inside: Path | str | None) -> None:
    """Raise OSError where a link in the folder `inside`, on the way to this path, leads out of it."""
    path = part = os.fspath(path)
    top = path if inside is None else os.fspath(inside)
    while len(part) > len(top):
        if os.path.islink(part):  # noqa: PTH114
            if not Path(os.path.realpath(path)).is_relative_to(os.path.realpath(top)):
                raise OSError(
                    errno.ELOOP,
                    f"it is a link that leads out of {top}: put the file itself there",
                    path,
                )
            return
        part = os.path.dirname(part)  # noqa: PTH120


def _check_kind(about: os.stat_result, path: Path | str, most: int | None) -> int:
    """Return a file's size. Raises OSError."""
    if not stat.S_ISREG(about.st_mode):
        what = next((what for is_it, what in _SPECIAL if is_it(about.st_mode)), "a special file")
        number = errno.EISDIR if stat.S_ISDIR(about.st_mode) else errno.ENXIO
        raise OSError(number, f"it is {what}, not a regular file", os.fspath(path))
    if most is not None and about.st_size > most:
        raise OSError(
            errno.EFBIG, f"it has {about.st_size} bytes, and up to {most} are read", os.fspath(path)
        )
    return about.st_size


def copy_regular(source: str, target: str) -> None:
    """Copy a regular file, as `shutil.copytree` copies. Raises OSError for others."""
    check_regular(source)
    shutil.copy2(source, target)


def write_whole(path: Path, data: bytes, *, private: bool = False) -> None:
    """Write a file, whole or not at all; `private`: only this user may read it. Raises OSError."""
    with replacing(path, private=private) as file:
        file.write(data)


def write_durably(path: Path, data: bytes) -> None:
    """Write a file, whole or not at all, that is on disk when this returns. Raises OSError."""
    with replacing(path, durable=True) as file:
        file.write(data)


def write_temporary(path: Path, data: bytes) -> Path:
    """Write a file into the folder of `path`, to be renamed to it; return its path.

    Raises OSError.
    """
    temporary = _temporary_name(path)
    with _new_file(temporary, durable=True, private=False) as file:
        file.write(data)
    return temporary


def _is_partial_file(path: Path) -> bool:
    """Whether a file has the name of one that was not yet written whole."""
    return _TEMPORARY.fullmatch(path.name) is not None and path.is_file()


def remove_torn(folder: Path) -> None:
    """Remove the temporary files of a process that was killed while it wrote to this folder."""
    for path in folder.iterdir():
        if _is_partial_file(path):
            path.unlink()


def sync_folder(folder: Path) -> None:
    """Write a folder's entries to disk; the system does it where folders can't be opened."""
    if os.name == "nt":
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def is_disk_full(error: OSError) -> bool:
    """Whether no space, or none of this user's quota, is left."""
    return error.errno in _NO_SPACE


def is_used_up(error: OSError) -> bool:
    """Whether this host gives no more of something: processes, memory or open files."""
    return error.errno in _NO_MORE


def is_open_to_others(path: Path) -> bool:
    """Whether others than this user, whose file it is, may use a file; the rule of OpenSSH for keys.

    Of another's file (root's, that a group may read) its owner decides. Raises OSError.
    """
    about = path.stat()
    return os.name != "nt" and about.st_uid == os.geteuid() and bool(about.st_mode & 0o077)


def home_folder() -> Path:
    """Return the user's home folder, which may not exist. Raises HostError where none is known."""
    if (home := _home()) is None:
        raise HostError("this user has no home folder; state one in HOME")
    return home


def make_folder(folder: Path, mode: int = 0o777) -> None:
    """Make a folder and those above it, but no home folder. Raises OSError, HostError.

    A home that is missing is not mounted, or the user is not to have one (``/nonexistent``).
    """
    home = _home()
    if home is not None and folder.is_relative_to(home) and not home.is_dir():
        raise HostError(
            f"{folder} can't be made: the home folder {home} does not exist; make it, or state "
            "another one in HOME"
        )
    folder.mkdir(mode, parents=True, exist_ok=True)


def cache_folder() -> Path:
    """Return the user's folder of what can be made again, $XDG_CACHE_HOME/edgeflare. Raises HostError."""
    configured = Path(os.environ.get("XDG_CACHE_HOME", ""))
    root = configured if configured.is_absolute() else home_folder() / ".cache"
    return root / "edgeflare"


def state_folder() -> Path:
    """Return the user's folder of what is kept on this host, $XDG_STATE_HOME/edgeflare. Raises HostError."""
    configured = Path(os.environ.get("XDG_STATE_HOME", ""))
    root = configured if configured.is_absolute() else home_folder() / ".local" / "state"
    return root / "edgeflare"


def is_unused(folder: Path, ignored: Collection[str] = ()) -> bool:
    """Whether a folder is missing, or has only `ignored` names and torn files. Raises OSError."""
    if not folder.exists():
        return True
    return folder.is_dir() and all(
        path.name in ignored or _is_partial_file(path) for path in folder.iterdir()
    )


def new_folder_name(parent: str, stem: str, longest: int | None = None) -> Path:
    """Return `parent`/`stem`-DATE-TIME, with a number behind it where that exists already.

    The stem is cut where the name would have more than `longest` characters.
    """
    behind = time.strftime("-%Y%m%d-%H%M%S")
    cut = stem if longest is None else stem[: longest - len(behind) - len("-99")]
    base = Path(parent) / f"{cut}{behind}"
    candidates = [base, *(base.with_name(f"{base.name}-{n}") for n in range(2, 100))]
    return next(folder for folder in candidates if not folder.exists())


def natural_key(name: str) -> list[tuple[int, int | str]]:
    """Return a sort key for POSIX paths: "a2" comes before "a10", files of one folder together."""
    pieces = re.split(r"([0-9]+)", name.replace("/", "\0").casefold())
    key: list[tuple[int, int | str]] = [
        (0, int(piece)) if piece.isdigit() and piece.isascii() else (1, piece) for piece in pieces
    ]
    return [*key, (2, name)]


def _home() -> Path | None:
    try:
        return Path.home()
    except RuntimeError:  # no HOME, and no entry in the list of users, as in some containers
        return None


def _temporary_name(path: Path) -> Path:
    return path.with_name(f".new-{uuid.uuid4().hex}")


@contextmanager
def _new_file(path: Path, *, durable: bool, private: bool) -> Iterator[BinaryIO]:
    try:
        with open(path, "xb", opener=_open_private if private else None) as file:
            yield file
            if durable:
                file.flush()
                os.fsync(file.fileno())
    except BaseException:
        path.unlink(missing_ok=True)
        raise


def _open_private(name: str, flags: int) -> int:
    return os.open(name, flags, _PRIVATE)


def file_sha256(path: Path) -> str:
    """Return the hex digest of a regular file's content. Raises OSError."""
    check_regular(path)
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()

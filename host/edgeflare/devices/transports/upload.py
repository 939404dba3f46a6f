"""Copies a file to the device through the device's Python, for a link that has nothing better."""

import errno
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from edgeflare._internal.text import clean_text
from edgeflare.devices.reported import LONGEST_LINE
from edgeflare.devices.transports.base import Completed
from edgeflare.errors import DeviceDiskFullError, DeviceError

STALL_S = 60.0
"""Seconds without any progress after which a transfer has failed."""

_FAILED = 74
_FULL = (str(errno.ENOSPC), str(errno.EDQUOT))
_MARK = "edgeflare-errno:"
_RECEIVE = f"""
import os, shutil, sys
path = sys.argv[1]
try:
    with open(path, "wb") as file:
        shutil.copyfileobj(sys.stdin.buffer, file, 1 << 20)
        file.flush()
        os.fsync(file.fileno())
        size = file.tell()
    if size != int(sys.argv[2]):
        raise OSError(5, "%d bytes arrived" % size)
except OSError as error:
    sys.stderr.write("\\n{_MARK}%d %s\\n" % (error.errno or 0, error.strerror or error))
    try:
        os.remove(path)
    except OSError:
        pass
    sys.exit({_FAILED})
"""


def put_by_python(
    run: Callable[[list[str], Iterable[bytes], float], Completed],
    address: str,
    local: Path,
    remote: str,
) -> None:
    """Copy a file through the stdin of the device's Python, which reports errors.

    `address` is the device's, for messages; `run(arguments, blocks, timeout)` runs Python there.
    Raises DeviceDiskFullError, DeviceError.
    """
    size = local.stat().st_size
    limit = STALL_S + size / 20e3
    done = run(["-c", _RECEIVE, remote, str(size)], _blocks(local), limit)
    if done.status == 0:
        return
    _, marked, problem = done.stderr.rpartition(_MARK)
    number, _, text = problem.strip().partition(" ")
    where = f"{remote} on {address}"
    if done.status == _FAILED and marked and number in _FULL:
        raise DeviceDiskFullError(
            f"no space left on the device for {where} ({size / 1e6:.1f} MB); free some there, run "
            "`edgeflare devices prune`, or give another folder as `cache` in the inventory"
        )
    last = done.stderr.strip().splitlines()[-1:]
    why = clean_text(text if marked else " ".join(last), LONGEST_LINE)
    raise DeviceError(f"can't write {where}: {why or done.status}")


def _blocks(path: Path) -> Iterator[bytes]:
    with path.open("rb") as source:
        while block := source.read(1 << 18):
            yield block

"""Starting an adb server: the one thing for which the `adb` command is needed."""

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from edgeflare.devices.deadline import Deadline
from edgeflare.errors import DeviceTimeoutError, UnreachableError

_START_S = 20.0
_GET_ADB = (
    "install Android's platform tools (Debian: apt install adb), or put their folder on the PATH"
)


def start_server(address: str, deadline: Deadline) -> None:
    """Have the `adb` command start a server, which lives on. Raises UnreachableError, DeviceTimeoutError."""
    adb = _find_adb()
    if adb is None:
        raise UnreachableError(
            f"no adb server runs at {address}, and there is no `adb` command to start one; {_GET_ADB}"
        )
    # A file, not a pipe: the server that stays behind would hold a pipe's other end open.
    with tempfile.TemporaryFile() as said:
        try:
            done = subprocess.run(
                [adb, "start-server"],
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=said,
                timeout=min(_START_S, max(deadline.remaining(), 0.1)),
                start_new_session=True,
                check=False,
            )
        except subprocess.TimeoutExpired as error:
            raise DeviceTimeoutError(f"`{adb} start-server` did not end; try it by hand") from error
        except OSError as error:
            raise UnreachableError(f"{adb} can't be run: {error.strerror}; {_GET_ADB}") from error
        said.seek(0)
        lines = said.read().decode(errors="replace").strip().splitlines()
    if done.returncode:
        raise UnreachableError(
            f"`{adb} start-server` failed: {lines[-1] if lines else done.returncode}; try it by hand"
        )


def _find_adb() -> str | None:
    """Return the path of the `adb` command: on the PATH, or below ANDROID_HOME or ANDROID_SDK_ROOT."""
    roots = (os.environ.get(name) for name in ("ANDROID_HOME", "ANDROID_SDK_ROOT"))
    folders = [str(Path(root) / "platform-tools") for root in roots if root]
    return shutil.which("adb") or shutil.which("adb", path=os.pathsep.join(folders) or os.devnull)

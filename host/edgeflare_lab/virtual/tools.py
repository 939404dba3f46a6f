"""Programs and free space that a virtual board needs here; running programs with a log."""

import os
import shutil
import subprocess
import sys
from collections.abc import Collection, Sequence
from pathlib import Path

from edgeflare.errors import DeviceError, DiskFullError

_LAST_LINES = 6
_LIMIT_S = 3600.0


def search_path() -> str:
    """Return the search path of programs: PATH, and the folders that only root has on it."""
    return os.pathsep.join([os.environ.get("PATH", os.defpath), "/usr/sbin", "/sbin"])


class BuildLog:
    """The file to which the output of the programs is appended."""

    def __init__(self, path: Path) -> None:
        self.path = path
        path.write_text("", encoding="utf-8")

    def add(self, text: str) -> None:
        """Append text and a newline where it has none."""
        with self.path.open("a", encoding="utf-8") as file:
            file.write(text if text.endswith("\n") else text + "\n")


class ToolError(DeviceError):
    """A program failed; `output` is all that it printed."""

    def __init__(self, message: str, output: str) -> None:
        super().__init__(message)
        self.output = output


def run_tool(
    command: Sequence[str | Path],
    log: BuildLog,
    *,
    doing: str,
    cwd: Path | None = None,
    text: str = "",
    success: Collection[int] = (0,),
) -> str:
    """Run a program to its end and return what it printed, stdout and stderr together.

    `doing` begins the error's sentence, as in "fetching Debian's packages"; `success` are the exit
    codes of success. Raises ToolError with the last lines and the log's path.
    """
    words = [str(word) for word in command]
    log.add("$ " + " ".join(words))
    try:
        done = subprocess.run(
            words,
            cwd=cwd,
            input=text,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            timeout=_LIMIT_S,
            env={**os.environ, "LC_ALL": "C.UTF-8", "PATH": search_path()},
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ToolError(f"{doing} failed: {error}; the log is {log.path}", "") from error
    log.add(done.stdout)
    if done.returncode not in success:
        lines = [line.strip() for line in done.stdout.splitlines() if line.strip()]
        last = " | ".join(lines[-_LAST_LINES:]) or "it printed nothing"
        raise ToolError(
            f"{doing} failed ({words[0]} ended with {done.returncode}): {last}; "
            f"the whole log is {log.path}",
            done.stdout,
        )
    return done.stdout


def runs(command: Sequence[str]) -> bool:
    """Return whether a command can be run and succeeds within a minute."""
    try:
        return subprocess.run(command, capture_output=True, check=False, timeout=60).returncode == 0
    except (OSError, subprocess.TimeoutExpired):
        return False


def pip_command() -> list[str] | None:
    """Return the command of pip, of this Python or of the machine's; None where there is none."""
    for python in (sys.executable, "python3"):
        if runs([python, "-m", "pip", "--version"]):
            return [python, "-m", "pip"]
    return None


_BUILD_MB = 1500
"""Free space that a build needs; about 300 MB of it stay in use."""


QEMU = "qemu-system-aarch64"
PACKAGES = {
    QEMU: "qemu-system-arm",
    "apt-get": "apt",
    "apt-cache": "apt",
    "dpkg-deb": "dpkg",
    "tar": "tar",
    **dict.fromkeys(("mke2fs", "debugfs", "e2fsck"), "e2fsprogs"),
    "pip": "python3-pip",
}
"""The programs that a build needs, and the Debian package that contains each."""


def check_qemu() -> None:
    """Raise DeviceError where a board can't run on this machine at all."""
    if not sys.platform.startswith("linux"):
        raise DeviceError(
            "virtual boards need Linux; on another system use one that runs in a virtual machine, "
            "or a real board (edgeflare devices check ssh://user@host)"
        )
    _raise_if_any(_missing(QEMU))


def check_build_tools() -> list[str]:
    """Return pip's command. Raises DeviceError naming all that a build needs and is missing."""
    pip = pip_command()
    lacking = _missing(*(program for program in PACKAGES if program != "pip"))
    if pip is None:
        lacking.append("pip")
    _raise_if_any(lacking)
    return pip or []


def _missing(*programs: str) -> list[str]:
    """Return the programs that are not on this machine."""
    return [name for name in programs if shutil.which(name, path=search_path()) is None]


def check_space(folder: Path) -> None:
    """Raise DiskFullError where too little is free for a build."""
    free_mb = shutil.disk_usage(folder).free // 1_000_000
    if free_mb < _BUILD_MB:
        raise DiskFullError(
            f"building a virtual board needs {_BUILD_MB} MB free in {folder}, and there are "
            f"{free_mb} MB; make room, or set XDG_CACHE_HOME to a folder with more"
        )


def _raise_if_any(lacking: list[str]) -> None:
    if not lacking:
        return
    programs = ", ".join(lacking)
    packages = " ".join(dict.fromkeys(PACKAGES[name] for name in lacking))
    if shutil.which("apt-get", path=search_path()):
        root = "" if os.getuid() == 0 else "sudo "
        advice = (
            f"install what brings them: {root}apt-get install --no-install-recommends {packages}"
        )
    else:
        advice = (
            "install them with this system's package manager (they are Debian's packages "
            f"{packages}; Fedora has apt, dpkg and debian-keyring, too), then give a mirror with "
            "--mirror and Debian's keys with --keyring"
        )
    raise DeviceError(f"a virtual board needs {programs}, not found on this machine; {advice}")

"""What a virtual board needs of this machine, looked at before anything is begun."""

import os
import shutil
import sys
from pathlib import Path
from typing import NamedTuple

from edgeflare.errors import DeviceError, DiskFullError
from edgeflare.virtual.tools import search_path
from edgeflare.virtual.wheels import pip_command

BUILD_MB = 1500
"""Free space that a build needs; about 300 MB of it stay in use."""


class Tool(NamedTuple):
    """A program and the Debian package that brings it."""

    program: str
    package: str


QEMU = Tool("qemu-system-aarch64", "qemu-system-arm")
BUILDERS = (
    Tool("apt-get", "apt"),
    Tool("apt-cache", "apt"),
    Tool("dpkg-deb", "dpkg"),
    Tool("tar", "tar"),
    Tool("mke2fs", "e2fsprogs"),
    Tool("debugfs", "e2fsprogs"),
    Tool("e2fsck", "e2fsprogs"),
)


def look_for_qemu() -> None:
    """Raise DeviceError where a board can't run on this machine at all."""
    if not sys.platform.startswith("linux"):
        raise DeviceError(
            "virtual boards need Linux; on another system use one that runs in a virtual machine, "
            "or a real board (edgeflare devices check ssh://user@host)"
        )
    _raise_for(missing([QEMU]))


def look_for_builders() -> list[str]:
    """Return the command of pip. Raises DeviceError with all that building lacks, in one sentence."""
    pip = pip_command()
    lacking = missing([QEMU, *BUILDERS])
    if pip is None:
        lacking.append(Tool("pip", "python3-pip"))
    _raise_for(lacking)
    return pip or []


def missing(tools: list[Tool]) -> list[Tool]:
    """Return the tools that this machine lacks."""
    return [tool for tool in tools if shutil.which(tool.program, path=search_path()) is None]


def look_for_space(folder: Path) -> None:
    """Raise DiskFullError where too little is free for a build."""
    free_mb = shutil.disk_usage(folder).free // 1_000_000
    if free_mb < BUILD_MB:
        raise DiskFullError(
            f"building a virtual board needs {BUILD_MB} MB free in {folder}, and there are "
            f"{free_mb} MB; make room, or set XDG_CACHE_HOME to a folder with more"
        )


def _raise_for(lacking: list[Tool]) -> None:
    if not lacking:
        return
    programs = ", ".join(tool.program for tool in lacking)
    packages = " ".join(dict.fromkeys(tool.package for tool in lacking))
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

"""The settings of a virtual board."""

import re
from dataclasses import dataclass
from pathlib import Path

from edgeflare.errors import UsageError

CPUS = ("cortex-a53", "cortex-a72", "cortex-a76")
"""The cores of a Raspberry Pi 3, 4 and 5."""

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,39}")
_RESERVED = ("local", "adb", "ssh")


@dataclass(frozen=True)
class BoardSettings:
    """How a board is built and started. Raises UsageError where a value can't be used."""

    name: str = "virtual"
    """Its name in the inventory."""
    port: int | None = None
    """The port of its SSH server on 127.0.0.1; None: the one it had, else a free one."""
    cores: int = 2
    """1 to 8."""
    memory_mb: int = 1024
    """256 to 65536."""
    cpu: str = "cortex-a72"
    """The kind of core that is emulated; kernels of the runtimes differ by it."""
    mirror: str | None = None
    """Where Debian's packages are, as ``http://host/debian``; None: as apt is set up here."""
    keyring: Path | None = None
    """The file of keys that Debian's packages are signed with; None: this machine's."""
    rebuild: bool = False
    """Build anew even where a build that fits is there."""

    def __post_init__(self) -> None:
        check_name(self.name)
        if self.port is not None and not 1 <= self.port <= 65535:
            raise UsageError(f"--port {self.port}: a port is a number from 1 to 65535")
        if not 1 <= self.cores <= 8:
            raise UsageError(f"--cores {self.cores}: a virtual board has 1 to 8 cores")
        if not 256 <= self.memory_mb <= 65536:
            raise UsageError(f"--memory {self.memory_mb}: give from 256 to 65536 MB")
        if self.cpu not in CPUS:
            raise UsageError(f"--cpu {self.cpu}: choose from {', '.join(CPUS)}")
        if self.mirror is not None and not re.fullmatch(
            r"(https?|file|copy|ftp|tor\+http)s?:/\S+", self.mirror
        ):
            raise UsageError(
                f"--mirror {self.mirror}: give the address of a Debian mirror, "
                "such as http://mirror.example.org/debian"
            )
        if self.keyring is not None and not self.keyring.is_file():
            raise UsageError(f"--keyring {self.keyring}: there is no such file")
        if self.keyring is not None and " " in str(self.keyring.absolute()):
            raise UsageError(
                f"--keyring {self.keyring.absolute()}: apt takes no path with a space; copy the file elsewhere"
            )


def check_name(name: str) -> str:
    """Return the name of a board. Raises UsageError where it can't be one."""
    if not _NAME.fullmatch(name) or name in _RESERVED:
        raise UsageError(
            f"--name {name!r}: a board's name is of letters, digits, - and _, begins with a letter "
            f"or digit, has at most 40 characters and is not {', '.join(_RESERVED)}"
        )
    return name

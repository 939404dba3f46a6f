"""Where Debian's packages come from, and whose signature they must bear."""

import re
import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from edgeflare.errors import DeviceError
from edgeflare.virtual.settings import BoardSettings

RELEASE = "bookworm"
"""The Debian release of the board, Raspberry Pi OS's own base."""

_FORMAT = "$(REPO_URI)|$(RELEASE)|$(COMPONENT)|$(ORIGIN)|$(LABEL)"
_KEYRINGS = (
    Path("/usr/share/keyrings/debian-archive-keyring.gpg"),
    Path("/usr/share/keyrings/debian-archive-keyring.pgp"),
    Path("/etc/apt/trusted.gpg.d/debian-archive-keyring.gpg"),
    Path("/usr/share/keyrings/debian-archive-bookworm-stable.gpg"),
    Path("/etc/apt/trusted.gpg.d/debian-archive-bookworm-stable.asc"),
)


class Mirror(NamedTuple):
    """A Debian mirror and the keys its packages are signed with."""

    url: str
    keyring: Path

    def sources(self) -> str:
        """Return it as a line of apt's sources.list."""
        return f"deb [arch=arm64 signed-by={self.keyring}] {self.url} {RELEASE} main\n"


def find_mirror(settings: BoardSettings) -> Mirror:
    """Return the mirror that the user gave, else that of this machine's apt. Raises DeviceError."""
    url = settings.mirror or debian_of(_targets())
    if url is None:
        raise DeviceError(
            "this machine's apt sources name no Debian mirror; give one, such as "
            "`edgeflare devices virtual up --mirror http://mirror.example.org/debian`"
        )
    keyring = settings.keyring or next((path for path in _KEYRINGS if path.is_file()), None)
    if keyring is None:
        raise DeviceError(
            "the keys that Debian's packages are signed with are not on this machine; install "
            "the package debian-archive-keyring (debian-keyring on Fedora), or give the file with "
            "--keyring"
        )
    return Mirror(url.rstrip("/"), keyring.absolute())


def debian_of(targets: Iterable[str]) -> str | None:
    """Return the mirror with Debian's own packages among apt's index targets, None where there is none.

    A target is ``address|release|component|origin|label``; apt leaves ``$(ORIGIN)`` as it is where it
    has not fetched the lists yet, and then the address must end like Debian's.
    """
    likely = None
    for target in targets:
        url, release, component, origin, label = target.strip().split("|")
        if component != "main":
            continue
        if (origin, label) == ("Debian", "Debian"):
            if release == RELEASE:
                return url
            likely = likely or url
        elif origin.startswith("$(") and re.search(r"[:/.]\S*/debian/?$", url):
            likely = likely or url
    return likely


def _targets() -> list[str]:
    if shutil.which("apt-get") is None:
        return []
    lines: list[str] = []
    for option in ((), ("--no-release-info",)):  # without it apt tells only of lists that it has
        done = subprocess.run(
            ["apt-get", "indextargets", *option, "--format", _FORMAT, "Created-By: Packages"],
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
        lines += done.stdout.splitlines()
    return [line for line in lines if line.count("|") == 4]

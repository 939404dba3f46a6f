"""Debian's arm64 packages, fetched and unpacked by this machine's apt and dpkg.

Nothing of the machine's own package state is read or changed, and no root is needed: no package is
installed here and no script of a package is run.
"""

import re
import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path

from edgeflare.errors import DeviceError
from edgeflare_lab.virtual.machine import BoardSettings
from edgeflare_lab.virtual.tools import BuildLog, ToolError, run_tool

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


def find_mirror(settings: BoardSettings) -> tuple[str, Path]:
    """Return the mirror that the user gave, else that of this machine's apt, and its packages' keys.

    Raises DeviceError.
    """
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
    return url.rstrip("/"), keyring.absolute()


def debian_of(targets: Iterable[str]) -> str | None:
    """Return the mirror with Debian's own packages among apt's index targets, else None.

    A target is ``address|release|component|origin|label``; apt leaves ``$(ORIGIN)`` as it is where
    it has not fetched the lists yet, and then the address must end like Debian's.
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
    for option in ((), ("--no-release-info",)):  # without it apt lists only those that it has
        done = subprocess.run(
            ["apt-get", "indextargets", *option, "--format", _FORMAT, "Created-By: Packages"],
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
        lines += done.stdout.splitlines()
    return [line for line in lines if line.count("|") == 4]


PACKAGES = (
    *("base-files", "base-passwd", "bash", "busybox-static", "coreutils", "dash", "findutils"),
    *("grep", "gzip", "hostname", "iproute2", "kmod", "libc-bin", "libstdc++6", "mawk", "mount"),
    *("ncurses-base", "openssh-server", "openssh-sftp-server", "procps", "python3"),
    *("python3-minimal", "sed", "tar"),
    *("usr-is-merged", "util-linux"),  # usr-is-merged: apt would take usrmerge, which brings perl
)
"""Debian packages of the board; their dependencies are installed, too."""

KERNEL = "linux-image-cloud-arm64"
"""Debian's small kernel for virtual machines; it names the newest one of the release."""

_CONFIGURATION = """\
APT::Architecture "arm64";
#clear APT::Architectures;
APT::Architectures {{ "arm64"; }};
#clear APT::Update;
#clear DPkg;
APT::Install-Recommends "false";
APT::Sandbox::User "root";
Acquire::Languages "none";
Acquire::Retries "3";
Dir::State "{folder}/state/";
Dir::State::lists "{folder}/state/lists/";
Dir::State::status "{folder}/status";
Dir::Cache "{folder}/cache/";
Dir::Cache::archives "{folder}/cache/archives/";
Dir::Etc::sourcelist "{folder}/sources.list";
Dir::Etc::sourceparts "/dev/null";
Dir::Etc::preferences "/dev/null";
Dir::Etc::preferencesparts "/dev/null";
"""


class Apt:
    """A private apt for arm64 in an empty folder, with this machine's proxy and credentials."""

    def __init__(self, folder: Path, mirror: str, keyring: Path, log: BuildLog) -> None:
        self._folder = folder
        self._log = log
        self._mirror = mirror
        for part in ("state/lists/partial", "cache/archives/partial", "kernel"):
            (folder / part).mkdir(parents=True)
        (folder / "status").touch()
        source = f"deb [arch=arm64 signed-by={keyring}] {mirror} {RELEASE} main\n"
        (folder / "sources.list").write_text(source, encoding="utf-8")
        (folder / "apt.conf").write_text(_CONFIGURATION.format(folder=folder), encoding="utf-8")

    def update(self) -> None:
        """Fetch the mirror's list of packages. Raises DeviceError if it can't be had or trusted."""
        try:
            self._run(
                "apt-get",
                "update",
                "--error-on=any",
                doing=f"reading the mirror {self._mirror}",
            )
        except ToolError as error:
            raise DeviceError(f"{error}; --mirror names another mirror") from error

    def fetch(self) -> list[Path]:
        """Fetch the board's packages and all that these need; return the files."""
        self._run(
            *("apt-get", "install", "--download-only", "--yes", *PACKAGES),
            doing=f"fetching Debian's packages from {self._mirror}",
        )
        return sorted((self._folder / "cache" / "archives").glob("*.deb"))

    def fetch_kernel(self) -> Path:
        """Fetch the kernel's package; return the file."""
        text = self._run(
            "apt-cache", "depends", "--important", KERNEL, doing="looking up the kernel"
        )
        names = [
            line.split()[1] for line in text.splitlines() if line.strip().startswith("Depends:")
        ]
        if len(names) != 1:
            raise DeviceError(
                f"the mirror {self._mirror} does not say which kernel {KERNEL} is; "
                f"the log is {self._log.path}"
            )
        self._run(
            "apt-get",
            "download",
            names[0],
            doing="fetching the kernel",
            cwd=self._folder / "kernel",
        )
        return next((self._folder / "kernel").glob("*.deb"))

    def _run(self, program: str, *words: str, doing: str, cwd: Path | None = None) -> str:
        command: list[str | Path] = [program, "-q", "-c", self._folder / "apt.conf", *words]
        return run_tool(command, self._log, doing=doing, cwd=cwd)


def unpack(packages: list[Path], into: Path, log: BuildLog) -> None:
    """Unpack packages into a folder; all files become this user's. Raises DeviceError."""
    into.mkdir(exist_ok=True)
    for package in packages:
        with subprocess.Popen(
            ["dpkg-deb", "--fsys-tarfile", package], stdout=subprocess.PIPE, stderr=subprocess.PIPE
        ) as reader:
            done = subprocess.run(
                [
                    *("tar", "--extract", "--keep-directory-symlink", "--preserve-permissions"),
                    *("--no-same-owner", "--directory", into),
                ],
                stdin=reader.stdout,
                capture_output=True,
                check=False,
            )
            if reader.stdout:
                reader.stdout.close()  # where tar ended early, the reader must not wait for it
            errors = (reader.stderr.read() if reader.stderr else b"") + done.stderr
        if reader.returncode != 0 or done.returncode != 0:
            log.add(errors.decode(errors="replace"))
            last = errors.decode(errors="replace").strip().rpartition("\n")[2]
            raise DeviceError(f"can't unpack {package.name}: {last}; the log is {log.path}")

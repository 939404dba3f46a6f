"""The board's disk: Debian's setup, a small init, Python wheels for aarch64, the ext4 image."""

import importlib.metadata
import os
import re
import shutil
from pathlib import Path

from edgeflare_lab.virtual.tools import BuildLog, ToolError, run_tool

HOME_USER = "pi"

_SSHD = """\
HostKey /etc/ssh/ssh_host_ed25519_key
UsePAM no
PasswordAuthentication no
KbdInteractiveAuthentication no
PermitRootLogin prohibit-password
MaxStartups 100
MaxSessions 100
UseDNS no
PrintMotd no
Subsystem sftp /usr/lib/openssh/sftp-server
"""

_INITTAB = """\
::sysinit:/etc/rc.board
::respawn:/usr/sbin/sshd -D -e
::ctrlaltdel:/bin/busybox poweroff -f
"""

_RC = """\
#!/bin/sh
export PATH=/usr/sbin:/usr/bin:/sbin:/bin
b=/bin/busybox
[ -e /proc/1 ] || $b mount -t proc proc /proc
[ -c /dev/null ] || $b mount -t devtmpfs dev /dev
$b mount -t sysfs sys /sys
$b mkdir -p /dev/pts /dev/shm
$b mount -t devpts -o mode=620,gid=5 pts /dev/pts
$b mount -t tmpfs -o mode=1777 shm /dev/shm
$b mount -t tmpfs -o mode=755 run /run
$b mkdir -p /run/sshd /run/lock
$b ln -sf /proc/self/fd /dev/fd
$b hostname -F /etc/hostname
$b ip link set lo up
$b ip addr add 10.0.2.15/24 dev eth0
$b ip link set eth0 up
$b ip route add default via 10.0.2.2
"""

_LINKS = {"bin": "usr/bin", "sbin": "usr/sbin", "lib": "usr/lib"}


def prepare(root: Path) -> None:
    """Make the empty root file system: a merged /usr, before anything is unpacked."""
    root.mkdir()
    for link, target in _LINKS.items():
        (root / target).mkdir(parents=True)
        (root / link).symlink_to(target)


def configure(root: Path) -> None:
    """Do what the packages' own scripts would: users, sshd, init. Keys come at each boot."""
    masters = root / "usr/share/base-passwd"
    users = (masters / "passwd.master").read_text(encoding="utf-8").splitlines()
    users = [line.replace("root:*:", "root:x:") for line in users]
    users += [
        "sshd:x:100:65534::/run/sshd:/usr/sbin/nologin",
        f"{HOME_USER}:x:1000:1000::/home/{HOME_USER}:/bin/bash",
    ]
    groups = (masters / "group.master").read_text(encoding="utf-8") + f"{HOME_USER}:x:1000:\n"
    # "*" lets a key in; "!" would lock the account for it, too
    shadow = [f"{line.partition(':')[0]}:*:19000:0:99999:7:::" for line in users]
    for path, text in {
        "etc/passwd": "\n".join(users) + "\n",
        "etc/group": groups,
        "etc/shadow": "\n".join(shadow) + "\n",
        "etc/ssh/sshd_config": _SSHD,
        "etc/inittab": _INITTAB,
        "etc/rc.board": _RC,
    }.items():
        _write(root / path, text)
    (root / "etc/shadow").chmod(0o600)
    (root / "etc/rc.board").chmod(0o755)
    for folder in ("dev", "proc", "sys", "run", "tmp", "root", f"home/{HOME_USER}", "var/log"):
        (root / folder).mkdir(parents=True, exist_ok=True)
    (root / "tmp").chmod(0o1777)
    (root / "var/tmp").chmod(0o1777)
    (root / "root").chmod(0o700)
    init = root / "usr/sbin/init"
    init.unlink(missing_ok=True)
    init.symlink_to("/bin/busybox")
    (root / "usr/bin/awk").symlink_to("mawk")
    for name in ("doc", "man", "locale", "info", "lintian"):
        shutil.rmtree(root / "usr/share" / name, ignore_errors=True)


def scripts() -> list[str]:
    """Return the texts that the board is set up with."""
    return [_SSHD, _INITTAB, _RC]


def debian_version(root: Path) -> str:
    """Return Debian's release number, such as 12.11."""
    return (root / "etc/debian_version").read_text(encoding="utf-8").strip()


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    path.write_text(text, encoding="utf-8")


_FREE_MB = 512
"""Free space for models, data and tests."""


def make_image(root: Path, image: Path, log: BuildLog) -> None:
    """Write the root file system as a sparse disk image. Raises DeviceError."""
    files = [path.lstat() for path in root.rglob("*")]
    used_mb = sum((each.st_size + 4095) // 4096 for each in files) * 4096 // 1_000_000
    with image.open("wb") as disk:
        disk.truncate((used_mb * 21 // 20 + _FREE_MB) * 1_000_000 // 4096 * 4096)
    run_tool(
        [
            *("mke2fs", "-q", "-F", "-t", "ext4", "-b", "4096", "-m", "0", "-L", "board"),
            *("-O", "^has_journal", "-E", "lazy_itable_init=1,root_owner=0:0"),
            *("-d", root, image),
        ],
        log,
        doing="writing the disk image",
    )
    if os.getuid() != 0:
        _own_by_root(root, image, log)


def _own_by_root(root: Path, image: Path, log: BuildLog) -> None:
    """Make root the owner of all files in an image that another user has written."""
    names = ["/", *(f"/{path.relative_to(root)}" for path in root.rglob("*"))]
    script = "".join(
        f'set_inode_field "{name}" {field} 0\n' for name in names for field in ("uid", "gid")
    )
    run_tool(["debugfs", "-w", "-f", "-", image], log, doing="setting the owners", text=script)


LIBRARIES = ("numpy", "ai-edge-litert", "onnxruntime")
"""The libraries that the agent needs to run models."""

BOARD_PYTHON = "3.11"
"""The board's Python, Debian bookworm's."""

_NEWEST_GLIBC = 36  # bookworm has glibc 2.36
LIBRARIES_FOLDER = "usr/lib/python3/dist-packages"
"""The folder of the libraries in the board's root file system."""


def wheel_platforms() -> list[str]:
    """Return the platform tags of wheels that run on the board, newest first."""
    tags = [f"manylinux_2_{minor}_aarch64" for minor in range(_NEWEST_GLIBC, 16, -1)]
    return [*tags, "manylinux2014_aarch64"]


def host_versions() -> dict[str, str]:
    """Return the versions of this machine's libraries, without local parts such as +cu12."""
    versions = {}
    for name in LIBRARIES:
        try:
            versions[name] = importlib.metadata.version(name).partition("+")[0]
        except importlib.metadata.PackageNotFoundError:
            continue
    return versions


def put_wheels(pip: list[str], root: Path, wanted: dict[str, str], log: BuildLog) -> dict[str, str]:
    """Put the libraries and what they need into the root file system; return all versions by name.

    Where PyPI has no wheel of the `wanted` version for the board, the newest one is installed.
    Raises DeviceError.
    """
    versions = dict(wanted)
    while True:
        pinned = [f"{name}=={versions[name]}" if name in versions else name for name in LIBRARIES]
        try:
            run_tool(
                [*pip, *_install_words(root / LIBRARIES_FOLDER), *pinned],
                log,
                doing="fetching the aarch64 wheels from the Python package index",
            )
        except ToolError as error:
            if not versions:
                raise
            lacking = without_wheels(error.output, versions)
            if lacking is None:
                raise
            for name in lacking:
                del versions[name]
        else:
            return _installed_versions(root / LIBRARIES_FOLDER)


def without_wheels(output: str, pinned: dict[str, str]) -> list[str] | None:
    """Return the pinned libraries that pip found no wheel of, by what it printed.

    All of them where the versions don't go together; None where pip failed for another reason.
    """
    if "ResolutionImpossible" in output:
        return list(pinned)
    found = re.search(r"No matching distribution found for ([A-Za-z0-9._-]+?)==", output)
    if found is None:
        return None
    name = re.sub(r"[-_.]+", "-", found[1]).lower()
    return [name] if name in pinned else None


def _installed_versions(folder: Path) -> dict[str, str]:
    """Return the versions of the distributions in a folder, by name."""
    found = importlib.metadata.distributions(path=[str(folder)])
    return dict(sorted((each.metadata["Name"].lower(), each.version) for each in found))


def _install_words(folder: Path) -> list[str | Path]:
    words: list[str | Path] = ["install", "--no-compile", "--no-warn-conflicts", "--upgrade"]
    words += ["--quiet", "--disable-pip-version-check", "--no-input", "--target", folder]
    words += ["--only-binary=:all:", "--implementation", "cp", "--python-version", BOARD_PYTHON]
    for abi in ("cp311", "abi3", "none"):
        words += ["--abi", abi]
    for platform in wheel_platforms():
        words += ["--platform", platform]
    return words

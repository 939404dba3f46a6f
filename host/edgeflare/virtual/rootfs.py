"""The board's disk: the setup that Debian's installer would do, a small init, and the ext4 image with these files."""

import os
import shutil
from pathlib import Path

from edgeflare.virtual.tools import Log, run_tool

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


def make_image(root: Path, image: Path, log: Log) -> None:
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


def _own_by_root(root: Path, image: Path, log: Log) -> None:
    """Make root the owner of all files in an image that another user has written."""
    names = ["/", *(f"/{path.relative_to(root)}" for path in root.rglob("*"))]
    script = "".join(
        f'set_inode_field "{name}" {field} 0\n' for name in names for field in ("uid", "gid")
    )
    run_tool(["debugfs", "-w", "-f", "-", image], log, doing="setting the owners", text=script)

"""The initial root file system: a cpio archive ("newc") with kernel modules and a script.

The script mounts the board's disk and starts Debian.
"""

import stat
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from edgeflare.errors import DeviceError

_MAGIC = b"070701"


class Entry(NamedTuple):
    """One file of an archive; owner and group are root."""

    name: str
    """Its path without a leading slash; its folder must come before it."""
    mode: int
    """Type and permissions, as ``os.stat`` gives them."""
    data: bytes = b""
    """A file's content, a link's target."""
    device: tuple[int, int] = (0, 0)
    """Major and minor number of a device."""


def folder(name: str) -> Entry:
    """Return a folder's entry."""
    return Entry(name, stat.S_IFDIR | 0o755)


def file(name: str, data: bytes, mode: int = 0o644) -> Entry:
    """Return a plain file's entry."""
    return Entry(name, stat.S_IFREG | mode, data)


def archive(entries: Iterable[Entry]) -> bytes:
    """Return an archive of these entries; the same bytes for the same entries."""
    blocks = [_block(number, entry) for number, entry in enumerate(entries, 1)]
    return b"".join([*blocks, _block(0, Entry("TRAILER!!!", 0))])


def _block(number: int, entry: Entry) -> bytes:
    name = entry.name.encode() + b"\0"
    links = 2 if stat.S_ISDIR(entry.mode) else 1
    numbers = (
        *(number, entry.mode, 0, 0, links, 0, len(entry.data), 0, 0),
        *entry.device,
        *(len(name), 0),
    )
    return _padded(_MAGIC + b"".join(b"%08x" % each for each in numbers) + name) + _padded(
        entry.data
    )


def _padded(data: bytes) -> bytes:
    return data + bytes(-len(data) % 4)


MODULES = (
    *("virtio", "virtio_ring", "virtio_pci_modern_dev", "virtio_pci_legacy_dev", "virtio_pci"),
    *("virtio_blk", "failover", "net_failover", "virtio_net", "rng-core", "virtio-rng"),
    *("crc16", "crc32c_generic", "mbcache", "jbd2", "ext4", "sch_netem"),
)
"""In the order of loading; with sch_netem `tc` can delay the board's link."""


def kernel_release(root: Path) -> str:
    """Return the kernel's release, as ``uname -r`` shows it, by its unpacked package."""
    images = sorted((root / "boot").glob("vmlinuz-*"))
    if len(images) != 1:
        raise DeviceError("the kernel's package holds no kernel, or more than one")
    return images[0].name.removeprefix("vmlinuz-")


def kernel_modules(root: Path) -> list[Path]:
    """Return the files of MODULES in order, without those that are part of the kernel.

    Raises DeviceError where a module is in neither.
    """
    folder = root / "lib/modules" / kernel_release(root)
    files = {_normalised(path.stem): path for path in folder.rglob("*.ko")}
    builtin_list = (folder / "modules.builtin").read_text(encoding="utf-8")
    builtin = {_normalised(Path(line).stem) for line in builtin_list.splitlines()}
    missing = [name for name in MODULES if _normalised(name) not in files.keys() | builtin]
    if missing:
        raise DeviceError(f"the kernel {kernel_release(root)} has no module {', '.join(missing)}")
    return [files[_normalised(name)] for name in MODULES if _normalised(name) in files]


def _normalised(name: str) -> str:
    return name.replace("-", "_")


INIT = """\
#!/bin/busybox sh
b=/bin/busybox
$b mount -t devtmpfs dev /dev
$b mount -t proc proc /proc
while read -r module; do $b insmod /modules/$module; done < /modules/order
n=0
while [ ! -b /dev/vda ] && [ $n -lt 200 ]; do $b sleep 0.05; n=$((n+1)); done
if ! $b mount -t ext4 -o rw,noatime /dev/vda /root; then
  echo "the board's disk can't be mounted"
  $b poweroff -f
fi
for home in /root/root /root/home/pi; do
  $b mkdir -p $home/.ssh
  $b cp /board/authorized_keys $home/.ssh/authorized_keys
  $b cp /root/etc/skel/.bashrc /root/etc/skel/.profile $home/ 2>/dev/null
  $b chmod 700 $home/.ssh
  $b chmod 600 $home/.ssh/authorized_keys
done
$b chown -R 1000:1000 /root/home/pi
$b cp /board/host_key /root/etc/ssh/ssh_host_ed25519_key
$b chmod 600 /root/etc/ssh/ssh_host_ed25519_key
$b cp /board/hostname /board/hosts /root/etc/
$b mount -t proc proc /root/proc
$b mount -t devtmpfs dev /root/dev
exec $b switch_root /root /sbin/init
"""
"""The first script that Linux runs."""


def base_archive(busybox: Path, modules: list[Path]) -> bytes:
    """Return the archive that all boards of a build share; `modules` in the order of loading."""
    order = "".join(f"{module.name}\n" for module in modules)
    return archive(
        [
            *map(folder, ("bin", "dev", "modules", "proc", "root")),
            Entry("dev/console", stat.S_IFCHR | 0o600, device=(5, 1)),
            file("bin/busybox", busybox.read_bytes(), 0o755),
            file("init", INIT.encode(), 0o755),
            *(file(f"modules/{module.name}", module.read_bytes()) for module in modules),
            file("modules/order", order.encode()),
        ]
    )


def board_archive(name: str, authorized_key: str, host_key: bytes) -> bytes:
    """Return the archive of a board's name and keys; Linux reads it after the base archive."""
    return archive(
        [
            folder("board"),
            file("board/authorized_keys", authorized_key.encode() + b"\n", 0o600),
            file("board/host_key", host_key, 0o600),
            file("board/hostname", name.encode() + b"\n"),
            file("board/hosts", f"127.0.0.1 localhost\n127.0.1.1 {name}\n".encode()),
        ]
    )

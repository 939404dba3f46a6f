"""What runs before the board's disk is there: modules are loaded, keys are laid down, Debian is begun."""

import stat
from pathlib import Path

from edgeflare.virtual.cpio import Entry, archive, file, folder

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
"""The script that Linux begins with."""


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
    """Return the archive with one board's own name and keys; Linux takes it behind the base."""
    return archive(
        [
            folder("board"),
            file("board/authorized_keys", authorized_key.encode() + b"\n", 0o600),
            file("board/host_key", host_key, 0o600),
            file("board/hostname", name.encode() + b"\n"),
            file("board/hosts", f"127.0.0.1 localhost\n127.0.1.1 {name}\n".encode()),
        ]
    )

"""The board's disk: an ext4 file system with the root folder's files, all owned by root."""

import os
from pathlib import Path

from edgeflare.virtual.tools import Log, run_tool

FREE_MB = 512
"""What is left for models, data and tests."""


def make_image(root: Path, image: Path, log: Log) -> None:
    """Write the root file system as a sparse disk image. Raises DeviceError."""
    files = [path.lstat() for path in root.rglob("*")]
    used_mb = sum((each.st_size + 4095) // 4096 for each in files) * 4096 // 1_000_000
    with image.open("wb") as disk:
        disk.truncate((used_mb * 21 // 20 + FREE_MB) * 1_000_000 // 4096 * 4096)
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
        own_by_root(root, image, log)


def own_by_root(root: Path, image: Path, log: Log) -> None:
    """Make root the owner of all files in an image that another user has written."""
    names = ["/", *(f"/{path.relative_to(root)}" for path in root.rglob("*"))]
    script = "".join(
        f'set_inode_field "{name}" {field} 0\n' for name in names for field in ("uid", "gid")
    )
    run_tool(["debugfs", "-w", "-f", "-", image], log, doing="setting the owners", text=script)

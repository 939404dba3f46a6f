"""The board's kernel and the modules that it needs before its disk is there."""

from pathlib import Path

from edgeflare.errors import DeviceError

MODULES = (
    *("virtio", "virtio_ring", "virtio_pci_modern_dev", "virtio_pci_legacy_dev", "virtio_pci"),
    *("virtio_blk", "failover", "net_failover", "virtio_net", "rng-core", "virtio-rng"),
    *("crc16", "crc32c_generic", "mbcache", "jbd2", "ext4", "sch_netem"),
)
"""In the order of loading; sch_netem lets `tc` delay the board's link."""


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
    files = {_plain(path.stem): path for path in folder.rglob("*.ko")}
    builtin_list = (folder / "modules.builtin").read_text(encoding="utf-8")
    builtin = {_plain(Path(line).stem) for line in builtin_list.splitlines()}
    lacking = [name for name in MODULES if _plain(name) not in files.keys() | builtin]
    if lacking:
        raise DeviceError(f"the kernel {kernel_release(root)} has no module {', '.join(lacking)}")
    return [files[_plain(name)] for name in MODULES if _plain(name) in files]


def _plain(name: str) -> str:
    return name.replace("-", "_")

"""Builds of the board's Debian: kernel, first file system and disk, kept by what goes into them."""

import hashlib
import json
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from filelock import FileLock

from edgeflare.errors import DeviceError
from edgeflare.virtual import bytecode, initrd, packages, rootfs, wheels
from edgeflare.virtual.image import make_image
from edgeflare.virtual.kernel import MODULES, kernel_modules, kernel_release
from edgeflare.virtual.mirror import RELEASE, find_mirror
from edgeflare.virtual.needs import look_for_builders, look_for_space
from edgeflare.virtual.places import cache_root, make_private
from edgeflare.virtual.settings import BoardSettings
from edgeflare.virtual.tools import Log

RECIPE = 1
"""Raised when boards must be built anew for a reason that the key does not show."""

FILES = ("vmlinuz", "initrd", "disk.img")
"""What a board is started from."""

Tell = Callable[[str, float | None], None]
"""Told of each step when it begins (None) and when it is done (its seconds)."""


@dataclass(frozen=True)
class Build:
    """A finished build."""

    folder: Path
    debian: str
    kernel: str
    libraries: dict[str, str]
    """Versions of the Python libraries by name."""
    mirror: str
    built_s: float
    image_mb: int
    """What the build takes on this machine's disk."""
    files: dict[str, tuple[int, str]]
    """Size in bytes and SHA-256 of each of FILES."""


def build_key(wanted: dict[str, str]) -> str:
    """Return the name of a build by all that goes into it; `wanted` are the libraries' versions."""
    parts = [
        RECIPE,
        RELEASE,
        packages.PACKAGES,
        packages.KERNEL,
        MODULES,
        rootfs.scripts(),
        initrd.INIT,
        wheels.PYTHON,
        wheels.LIBRARIES,
        sorted(wanted.items()),
    ]
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:16]


def read_build(key: str) -> Build | None:
    """Return the build of this key, None where there is none or a file is missing or cut short."""
    folder = cache_root() / key
    try:
        facts = json.loads((folder / "build.json").read_text(encoding="utf-8"))
        build = Build(**{**facts, "folder": folder})
        sizes = {name: (folder / name).stat().st_size for name in FILES}
        return build if sizes == {name: build.files[name][0] for name in FILES} else None
    except (OSError, ValueError, TypeError, LookupError, RecursionError):
        return None


def describe_files(folder: Path) -> dict[str, tuple[int, str]]:
    """Return size and SHA-256 of each of FILES in a folder. Raises OSError."""
    described = {}
    for name in FILES:
        digest = hashlib.sha256()
        with (folder / name).open("rb") as file:
            while block := file.read(1 << 20):
                digest.update(block)
            described[name] = (file.tell(), digest.hexdigest())
    return described


def ensure_build(settings: BoardSettings, tell: Tell) -> tuple[Build, bool]:
    """Return the build that fits, and whether it was made just now. Raises DeviceError and its kinds."""
    wanted = wheels.host_versions()
    key = build_key(wanted)
    root = make_private(cache_root())
    with FileLock(root / "lock"):
        build = None if settings.rebuild else read_build(key)
        if build is not None and _is_whole(build, tell):
            return build, False
        if (root / key).exists() and not settings.rebuild:
            with _step("removing a build that is damaged or an older version's", tell):
                shutil.rmtree(root / key)
        pip = look_for_builders()
        look_for_space(root)
        for left in root.glob("building-*"):
            shutil.rmtree(left, ignore_errors=True)
        with tempfile.TemporaryDirectory(prefix="building-", dir=root) as name:
            made = _make(Path(name), settings, pip, wanted, Log(root / "build.log"), tell)
            if (root / key).exists():
                shutil.rmtree(root / key)
            made.rename(root / key)
            build = read_build(key)
    if build is None:
        raise DeviceError(f"the build in {root / key} can't be read back; try again")
    return build, True


def _is_whole(build: Build, tell: Tell) -> bool:
    """Whether the files hold what was built; a damaged kernel or disk boots into silence."""
    with _step("checking the build", tell):
        found = describe_files(build.folder)
    return all(tuple(build.files[name]) == found[name] for name in FILES)


def remove_builds(in_use: Callable[[], set[str]]) -> None:
    """Remove all builds except those whose keys are in use, and what an interrupted one left."""
    root = cache_root()
    if not root.is_dir():
        return
    with FileLock(root / "lock"):
        kept = in_use()  # asked for here: nobody gets a build that has just been found unused
        for path in root.iterdir():
            if path.is_dir() and path.name not in kept:
                shutil.rmtree(path)


def _make(
    work: Path,
    settings: BoardSettings,
    pip: list[str],
    wanted: dict[str, str],
    log: Log,
    tell: Tell,
) -> Path:
    started = time.monotonic()
    mirror = find_mirror(settings)
    out, root, kernel = work / "out", work / "root", work / "kernel"
    out.mkdir(mode=0o700)
    apt = packages.Apt(work / "apt", mirror, log)
    with _step(f"fetching Debian {RELEASE} for arm64 from {mirror.url}", tell):
        apt.update()
        debian = apt.fetch()
        kernel_package = apt.fetch_kernel()
    with _step(f"unpacking {len(debian)} packages and the kernel", tell):
        rootfs.prepare(root)
        packages.unpack(debian, root, log)
        packages.unpack([kernel_package], kernel, log)
        rootfs.configure(root)
    with _step(f"fetching the aarch64 wheels of {', '.join(wheels.LIBRARIES)}", tell):
        libraries = wheels.put_wheels(pip, root, wanted, log)
    compiler = bytecode.find_compiler()
    if compiler is not None:
        with _step("byte-compiling", tell):
            bytecode.compile_here(compiler, root, log)
    with _step("writing the disk image", tell):
        release = kernel_release(kernel)
        shutil.copyfile(kernel / "boot" / f"vmlinuz-{release}", out / "vmlinuz")
        first = initrd.base_archive(root / "usr/bin/busybox", kernel_modules(kernel))
        (out / "initrd").write_bytes(first)
        make_image(root, out / "disk.img", log)
    if compiler is None:
        with _step("byte-compiling on the board, for lack of Python 3.11 here", tell):
            bytecode.compile_there(out, work / "board", log)
    taken = sum(path.stat().st_blocks * 512 for path in out.iterdir())
    build = Build(
        folder=out,
        debian=rootfs.debian_version(root),
        kernel=release,
        libraries=libraries,
        mirror=mirror.url,
        built_s=round(time.monotonic() - started, 1),
        image_mb=taken // 1_000_000,
        files=describe_files(out),
    )
    (out / "build.json").write_text(json.dumps(asdict(build), default=str, indent=2) + "\n")
    return out


@contextmanager
def _step(what: str, tell: Tell) -> Iterator[None]:
    began = time.monotonic()
    tell(what, None)
    try:
        yield
    except OSError as error:
        raise DeviceError(f"{what} failed: {error}") from error
    tell(what, time.monotonic() - began)

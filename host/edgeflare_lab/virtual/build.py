"""Builds of the board's Debian: kernel, initrd, byte code and disk, cached by their inputs."""

import hashlib
import json
import re
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from filelock import FileLock

from edgeflare.devices import connect
from edgeflare.errors import DeviceError
from edgeflare_lab.virtual import initrd, packages, rootfs
from edgeflare_lab.virtual.board_files import (
    board_device,
    board_keys,
    cache_root,
    make_private,
    write_entry,
)
from edgeflare_lab.virtual.initrd import MODULES, board_archive, kernel_modules, kernel_release
from edgeflare_lab.virtual.machine import BoardSettings, Machine, free_port
from edgeflare_lab.virtual.packages import RELEASE, find_mirror
from edgeflare_lab.virtual.rootfs import BOARD_PYTHON, LIBRARIES_FOLDER, make_image
from edgeflare_lab.virtual.tools import (
    BuildLog,
    ToolError,
    check_build_tools,
    check_space,
    run_tool,
    runs,
)

_FOLDERS = (f"usr/lib/python{BOARD_PYTHON}", LIBRARIES_FOLDER)
_EXCLUDED = r"/usr/lib/.*(/tests?/|lib2to3|idlelib|onnxruntime/(transformers|quantization|tools))"
_COMPILE_OPTIONS = ("-q", "-j", "0", "--invalidation-mode", "unchecked-hash")
_LIMIT_S = 1800.0
_FINISH = """
os.remove("/etc/ssh/ssh_host_ed25519_key")
subprocess.run(["mount", "-o", "remount,ro", "/"], check=True)
"""


def _find_compiler() -> str | None:
    """Return a Python on this machine whose byte code is the board's, None where there is none."""
    test = f"import compileall, sys; sys.exit('%d.%d' % sys.version_info[:2] != {BOARD_PYTHON!r})"
    for python in (sys.executable, shutil.which(f"python{BOARD_PYTHON}")):
        if python and runs([python, "-c", test]):
            return python
    return None


def _compile_here(python: str, root: Path, log: BuildLog) -> None:
    """Compile the board's modules in its root folder, on all of this machine's cores."""
    command: list[str | Path] = [
        python,
        "-I",
        "-m",
        "compileall",
        *_COMPILE_OPTIONS,
        "-s",
        root,
        "-p",
        "/",
    ]
    command += ["-x", re.escape(str(root)) + _EXCLUDED, *(root / folder for folder in _FOLDERS)]
    try:
        run_tool(command, log, doing="byte-compiling")
    except ToolError as error:  # a file that is not meant to be imported; all others are compiled
        log.add(str(error))


def _compile_there(build: Path, folder: Path, log: BuildLog) -> None:
    """Let the board compile its modules: boot it from the build's image, store what it writes.

    `folder` is for the machine and is made. Raises DeviceError and its kinds.
    """
    folder.mkdir(mode=0o700)
    keys, machine, port = board_keys(folder), Machine(folder), free_port()
    device = board_device(folder, "board", port, user="root")
    write_entry(folder, device, keys.host_public)
    own_files = board_archive("board", keys.authorized, keys.host_key)
    machine.start(build, own_files, BoardSettings(), port, persist=True)
    try:
        machine.wait_for_ssh(port)
        transport = connect(device)
        try:
            folders = [f"/{each}" for each in _FOLDERS]
            words = ["-m", "compileall", *_COMPILE_OPTIONS, "-x", _EXCLUDED, *folders]
            done = transport.run(words, timeout=_LIMIT_S)
            log.add(done.stdout.decode(errors="replace") + done.stderr)
            done = transport.run(["-c", _FINISH], timeout=60)
        finally:
            transport.close()
    finally:
        machine.stop()
    if done.status != 0:
        raise DeviceError(f"byte-compiling on the board failed: {done.stderr.strip()}")
    # a disk without a journal whose board was just switched off
    command: list[str | Path] = ["e2fsck", "-f", "-y", build / "disk.img"]
    run_tool(command, log, doing="checking the disk image", success=(0, 1))


_RECIPE = 1
"""Raised when boards must be built anew for a reason that the key does not show."""

FILES = ("vmlinuz", "initrd", "disk.img")
"""The files that a board is started from."""

OnStep = Callable[[str, float | None], None]
"""Called for each step with its description, at its start (None) and end (its seconds)."""


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
        _RECIPE,
        RELEASE,
        packages.PACKAGES,
        packages.KERNEL,
        MODULES,
        rootfs.scripts(),
        initrd.INIT,
        rootfs.BOARD_PYTHON,
        rootfs.LIBRARIES,
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


def ensure_build(settings: BoardSettings, on_step: OnStep) -> tuple[Build, bool]:
    """Return the build that fits, and whether it is new. Raises DeviceError and its kinds."""
    wanted = rootfs.host_versions()
    key = build_key(wanted)
    root = make_private(cache_root())
    with FileLock(root / "lock"):
        build = None if settings.rebuild else read_build(key)
        if build is not None and _is_whole(build, on_step):
            return build, False
        if (root / key).exists() and not settings.rebuild:
            with _step("removing a build that is damaged or an older version's", on_step):
                shutil.rmtree(root / key)
        pip = check_build_tools()
        check_space(root)
        for left in root.glob("building-*"):
            shutil.rmtree(left, ignore_errors=True)
        with tempfile.TemporaryDirectory(prefix="building-", dir=root) as name:
            made = _make(Path(name), settings, pip, wanted, BuildLog(root / "build.log"), on_step)
            if (root / key).exists():
                shutil.rmtree(root / key)
            made.rename(root / key)
            build = read_build(key)
    if build is None:
        raise DeviceError(f"the build in {root / key} can't be read back; try again")
    return build, True


def _is_whole(build: Build, on_step: OnStep) -> bool:
    """Whether the files are what was built; a damaged kernel or disk fails without a message."""
    with _step("checking the build", on_step):
        found = describe_files(build.folder)
    return all(tuple(build.files[name]) == found[name] for name in FILES)


def remove_builds(in_use: Callable[[], set[str]]) -> None:
    """Remove all builds except those whose keys are in use, and what an interrupted one left."""
    root = cache_root()
    if not root.is_dir():
        return
    with FileLock(root / "lock"):
        used = in_use()  # under the lock: nobody may start from a build that was just found unused
        for path in root.iterdir():
            if path.is_dir() and path.name not in used:
                shutil.rmtree(path)


def _make(
    work: Path,
    settings: BoardSettings,
    pip: list[str],
    wanted: dict[str, str],
    log: BuildLog,
    on_step: OnStep,
) -> Path:
    started = time.monotonic()
    mirror, keyring = find_mirror(settings)
    out, root, kernel = work / "out", work / "root", work / "kernel"
    out.mkdir(mode=0o700)
    apt = packages.Apt(work / "apt", mirror, keyring, log)
    with _step(f"fetching Debian {RELEASE} for arm64 from {mirror}", on_step):
        apt.update()
        debian = apt.fetch()
        kernel_package = apt.fetch_kernel()
    with _step(f"unpacking {len(debian)} packages and the kernel", on_step):
        rootfs.prepare(root)
        packages.unpack(debian, root, log)
        packages.unpack([kernel_package], kernel, log)
        rootfs.configure(root)
    with _step(f"fetching the aarch64 wheels of {', '.join(rootfs.LIBRARIES)}", on_step):
        libraries = rootfs.put_wheels(pip, root, wanted, log)
    compiler = _find_compiler()
    if compiler is not None:
        with _step("byte-compiling", on_step):
            _compile_here(compiler, root, log)
    with _step("writing the disk image", on_step):
        release = kernel_release(kernel)
        shutil.copyfile(kernel / "boot" / f"vmlinuz-{release}", out / "vmlinuz")
        first = initrd.base_archive(root / "usr/bin/busybox", kernel_modules(kernel))
        (out / "initrd").write_bytes(first)
        make_image(root, out / "disk.img", log)
    if compiler is None:
        with _step("byte-compiling on the board, for lack of Python 3.11 here", on_step):
            _compile_there(out, work / "board", log)
    taken = sum(path.stat().st_blocks * 512 for path in out.iterdir())
    build = Build(
        folder=out,
        debian=rootfs.debian_version(root),
        kernel=release,
        libraries=libraries,
        mirror=mirror,
        built_s=round(time.monotonic() - started, 1),
        image_mb=taken // 1_000_000,
        files=describe_files(out),
    )
    (out / "build.json").write_text(json.dumps(asdict(build), default=str, indent=2) + "\n")
    return out


@contextmanager
def _step(what: str, on_step: OnStep) -> Iterator[None]:
    began = time.monotonic()
    on_step(what, None)
    try:
        yield
    except OSError as error:
        raise DeviceError(f"{what} failed: {error}") from error
    on_step(what, time.monotonic() - began)

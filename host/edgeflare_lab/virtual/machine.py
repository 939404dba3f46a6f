"""The emulated machine: its settings, and one qemu process a board, found again by its pid file."""

import contextlib
import os
import re
import signal
import socket
import subprocess
import time
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, Field

from edgeflare._internal.files import write_whole
from edgeflare._internal.flags import Flag
from edgeflare.devices.inventory import PID_FILE, board_process
from edgeflare.errors import DeviceError, DeviceTimeoutError, UsageError
from edgeflare_lab.virtual.board_files import ADDRESS
from edgeflare_lab.virtual.tools import QEMU, search_path

CPUS = ("cortex-a53", "cortex-a72", "cortex-a76")
"""The cores of a Raspberry Pi 3, 4 and 5."""

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,39}")
_RESERVED = ("local", "adb", "ssh")


class BoardSettings(BaseModel, frozen=True):
    """How a board is built and started. Raises UsageError where a value can't be used."""

    name: Annotated[str, Flag("--name")] = Field(
        default="virtual", description="The board's name in the inventory."
    )
    port: Annotated[int | None, Flag("--port")] = Field(
        default=None, description="Port of its SSH server on 127.0.0.1; default a free one."
    )
    """None: the one it had, else a free one."""
    cores: Annotated[int, Flag("--cores")] = Field(default=2, description="Its cores, 1 to 8.")
    memory_mb: Annotated[int, Flag("--memory")] = Field(
        default=1024, description="Its memory in MB."
    )
    """256 to 65536."""
    cpu: Annotated[str, Flag("--cpu")] = Field(
        default="cortex-a72",
        description="cortex-a53, cortex-a72 or cortex-a76, as in a Raspberry Pi 3, 4, 5.",
    )
    """The kind of core that is emulated; kernels of the runtimes differ by it."""
    mirror: Annotated[str | None, Flag("--mirror")] = Field(
        default=None, description="A Debian mirror; default that of this machine's apt."
    )
    """Where Debian's packages are, as ``http://host/debian``."""
    keyring: Annotated[Path | None, Flag("--keyring")] = Field(
        default=None, description="The keys that Debian signs with; default this machine's."
    )
    rebuild: Annotated[bool, Flag("--rebuild")] = Field(
        default=False, description="Build it anew, and boot it afresh."
    )

    def __init__(self, name: str = "virtual", **settings: Any) -> None:
        super().__init__(name=name, **settings)

    def model_post_init(self, context: object) -> None:
        """Raise UsageError where a value can't be used."""
        del context
        check_name(self.name)
        if self.port is not None and not 1 <= self.port <= 65535:
            raise UsageError(f"--port {self.port}: a port is a number from 1 to 65535")
        if not 1 <= self.cores <= 8:
            raise UsageError(f"--cores {self.cores}: a virtual board has 1 to 8 cores")
        if not 256 <= self.memory_mb <= 65536:
            raise UsageError(f"--memory {self.memory_mb}: give from 256 to 65536 MB")
        if self.cpu not in CPUS:
            raise UsageError(f"--cpu {self.cpu}: choose from {', '.join(CPUS)}")
        if self.mirror is not None and not re.fullmatch(
            r"(https?|file|copy|ftp|tor\+http)s?:/\S+", self.mirror
        ):
            raise UsageError(
                f"--mirror {self.mirror}: give the address of a Debian mirror, "
                "such as http://mirror.example.org/debian"
            )
        if self.keyring is not None and not self.keyring.is_file():
            raise UsageError(f"--keyring {self.keyring}: there is no such file")
        if self.keyring is not None and " " in str(self.keyring.absolute()):
            raise UsageError(
                f"--keyring {self.keyring.absolute()}: apt takes no path with a space; copy the "
                "file elsewhere"
            )


def check_name(name: str) -> str:
    """Return the name of a board. Raises UsageError where it can't be one."""
    if not _NAME.fullmatch(name) or name in _RESERVED:
        raise UsageError(
            f"--name {name!r}: a board's name is of letters, digits, - and _, begins with a letter "
            f"or digit, has at most 40 characters and is not {', '.join(_RESERVED)}"
        )
    return name


_BOOT_LIMIT_S = 180.0
_STOP_S = 10.0
_POLL_S = 0.1
_LAST_LINES = 8
_KERNEL_LINE = (
    "console=ttyAMA0 quiet loglevel=3 panic=-1 mitigations=off nokaslr random.trust_bootloader=on"
)


class Machine:
    """The machine of the board in one folder, running or not."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._pid_file = folder / PID_FILE
        self.console = folder / "console.log"

    def pid(self) -> int | None:
        """Return the process of the running machine, None where there is none."""
        return board_process(self._pid_file)

    def memory_mb(self) -> int | None:
        """Return how much of this machine's memory the running machine uses, in MB."""
        with contextlib.suppress(OSError):
            status = Path(f"/proc/{self.pid()}/status").read_text(encoding="ascii")
            for line in status.splitlines():
                if line.startswith("VmRSS:"):
                    return int(line.split()[1]) * 1024 // 1_000_000
        return None

    def start(
        self,
        build: Path,
        own_files: bytes,
        settings: BoardSettings,
        port: int,
        *,
        persist: bool = False,
    ) -> None:
        """Start the machine; return once it runs, long before Debian does.

        `own_files` is the archive with the board's name and keys. With `persist`, what the board
        writes is stored in its image. Raises DeviceError.
        """
        self._pid_file.unlink(missing_ok=True)
        self.console.write_bytes(b"")
        initrd = self._folder / "initrd"
        write_whole(initrd, (build / "initrd").read_bytes() + own_files, private=True)
        disk = f"file={_escaped(build / 'disk.img')},format=raw,if=none,id=disk,snapshot="
        disk += "off" if persist else "on"
        command: list[str | Path] = [
            *(QEMU, "-machine", "virt,gic-version=3", "-cpu", settings.cpu),
            *("-smp", str(settings.cores), "-m", str(settings.memory_mb)),
            *("-accel", "tcg,thread=multi,tb-size=256"),
            *("-kernel", build / "vmlinuz", "-initrd", initrd, "-append", _KERNEL_LINE),
            *("-drive", disk),
            *("-device", "virtio-blk-pci,drive=disk,romfile="),
            *("-netdev", f"user,id=net,restrict=on,hostfwd=tcp:{ADDRESS}:{port}-:22"),
            *("-device", "virtio-net-pci,netdev=net,romfile=", "-device", "virtio-rng-pci"),
            *("-display", "none", "-nodefaults", "-no-reboot"),
            *("-serial", f"file:{_escaped(self.console)}"),
            *("-pidfile", self._pid_file, "-daemonize"),
        ]
        # what the board writes goes to an unlinked file in its own folder
        environment = {**os.environ, "PATH": search_path(), "TMPDIR": str(self._folder)}
        done = subprocess.run(command, capture_output=True, env=environment, check=False)
        if done.returncode != 0:
            message = done.stderr.decode(errors="replace").strip().replace("\n", " | ")
            raise DeviceError(f"qemu can't start the board: {message or 'it did not say why'}")

    def wait_for_ssh(self, port: int, limit_s: float = _BOOT_LIMIT_S) -> None:
        """Wait until the board's SSH server answers. Raises DeviceError, DeviceTimeoutError.

        An open port is not enough: qemu accepts connections before anything listens on the board.
        """
        end = time.monotonic() + limit_s
        while time.monotonic() < end:
            if self.pid() is None:
                raise DeviceError(f"the board stopped while it booted; {self._last_output()}")
            if speaks_ssh(port):
                return
            time.sleep(_POLL_S)
        raise DeviceTimeoutError(
            f"the board's SSH server did not answer within {limit_s:.0f} s of its start; "
            f"{self._last_output()}"
        )

    def stop(self) -> bool:
        """End the machine and wait for its end; return whether it ran. Raises DeviceError."""
        for number, wait_s in ((signal.SIGTERM, _STOP_S), (signal.SIGKILL, _STOP_S)):
            pid = self.pid()
            if pid is None:
                break
            try:
                os.kill(pid, number)
            except ProcessLookupError:
                break
            except PermissionError as error:
                raise DeviceError(
                    f"the board's qemu (process {pid}) belongs to another user, who must stop it"
                ) from error
            end = time.monotonic() + wait_s
            while self.pid() is not None and time.monotonic() < end:
                time.sleep(_POLL_S)
        else:
            if self.pid() is not None:
                raise DeviceError(f"the board's qemu (process {self.pid()}) can't be ended")
        return self._remove_pid_file()

    def _remove_pid_file(self) -> bool:
        ran = self._pid_file.exists()
        self._pid_file.unlink(missing_ok=True)
        return ran

    def _last_output(self) -> str:
        text = self.console.read_text(encoding="utf-8", errors="replace")
        lines = [line.strip() for line in text.splitlines() if line.strip()]
        if not lines:
            return f"its console said nothing ({self.console})"
        return f"its console's last words: {' | '.join(lines[-_LAST_LINES:])} ({self.console})"


def speaks_ssh(port: int, wait_s: float = 3.0) -> bool:
    """Return whether an SSH server greets on this port of this machine."""
    try:
        with socket.create_connection((ADDRESS, port), timeout=wait_s) as connection:
            connection.settimeout(wait_s)
            return connection.recv(64).startswith(b"SSH-")
    except OSError:
        return False


def is_free(port: int) -> bool:
    """Return whether a server may listen on this port of this machine."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((ADDRESS, port))
        except OSError:
            return False
        return True


def free_port() -> int:
    """Return a port that nothing listens on. Raises DeviceError where there is none."""
    try:
        with socket.socket() as probe:
            probe.bind((ADDRESS, 0))
            return int(probe.getsockname()[1])
    except OSError as error:
        raise DeviceError(
            f"this machine has no free port for the board's SSH server ({error.strerror}); end "
            "programs that hold many connections (`ss -tan` lists them), or give a port with --port"
        ) from error


def _escaped(path: Path) -> str:
    return str(path).replace(",", ",,")

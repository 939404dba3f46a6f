"""What a command on a virtual board has to tell."""

from dataclasses import dataclass, field
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from edgeflare.devices import Device
from edgeflare.virtual.build import Build
from edgeflare.virtual.entry import ssh_command
from edgeflare.virtual.state import State


@dataclass(frozen=True)
class BoardStatus:
    """How a board is; with `state` None it was never made."""

    name: str
    state: State | None = None
    pid: int | None = None
    """Its qemu process; None where it does not run."""
    memory_used_mb: int | None = None
    """What it takes of this machine's memory now."""
    build: Build | None = None
    """None where the build is gone from the cache; `up` makes it again."""
    device: Device | None = None
    folder: Path | None = None

    @property
    def running(self) -> bool:
        """Whether the machine runs."""
        return self.pid is not None

    @property
    def ssh(self) -> str:
        """The command line that opens a shell on it."""
        return "" if self.device is None else ssh_command(self.device)

    def to_json(self) -> dict[str, Any]:
        """Return it as plain values."""
        state, build = self.state, self.build
        return {
            "name": self.name,
            "made": state is not None,
            "running": self.running,
            "pid": self.pid,
            "since": None if state is None or not self.running else _when(state.started),
            "boot_s": state and state.boot_s,
            "port": state and state.port,
            "cores": state and state.cores,
            "memory_mb": state and state.memory_mb,
            "memory_used_mb": self.memory_used_mb,
            "cpu": state and state.cpu,
            "python": state and state.python,
            "debian": build and build.debian,
            "kernel": build and build.kernel,
            "libraries": build and build.libraries,
            "image_mb": build and build.image_mb,
            "built_s": build and build.built_s,
            "mirror": build and build.mirror,
            "cache": build and str(build.folder),
            "folder": self.folder and str(self.folder),
            "ssh": self.ssh or None,
        }


@dataclass(frozen=True)
class UpReport:
    """What `board_up` did."""

    status: BoardStatus
    was_up: bool
    built_s: float | None
    """Seconds that the build took, None where a build was there."""
    notes: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class StopReport:
    """What `board_down` did."""

    name: str
    made: bool
    """Whether there was such a board."""
    ran: bool
    deleted: bool


def _when(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, tz=timezone.utc).isoformat(timespec="seconds")

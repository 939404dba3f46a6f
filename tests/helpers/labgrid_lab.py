"""A real labgrid coordinator and exporter on 127.0.0.1, from an environment of their own.

The variable EDGEFLARE_LABGRID names a virtual environment that has labgrid, such as `.ci/run` makes;
tests skip without it.
"""

import contextlib
import json
import os
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest
from ssh_servers import SshServer, free_port

OTHER = "anna"
"""Another user of the lab."""


def environment_folder() -> Path:
    """Return the folder of labgrid's environment; skips where there is none."""
    stated = os.environ.get("EDGEFLARE_LABGRID")
    if not stated or not (Path(stated) / "bin" / "labgrid-client").is_file():
        pytest.skip("EDGEFLARE_LABGRID names no virtual environment that has labgrid")
    return Path(stated)


@dataclass
class Lab:
    """A running coordinator and exporter, with a place for each SSH server."""

    folder: Path
    programs: Path
    places: Mapping[str, SshServer]
    passwords: Mapping[str, str] = field(default_factory=dict)
    port: int = field(default_factory=free_port)
    _running: dict[str, "subprocess.Popen[bytes]"] = field(default_factory=dict)

    @property
    def coordinator(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def python(self) -> Path:
        """The Python that has labgrid."""
        return self.programs / "python"

    def start_coordinator(self) -> None:
        self._start("coordinator", "-l", self.coordinator)
        self._await(lambda: f"listening on {self.coordinator}" in self.log("coordinator"))

    def start_exporter(self) -> None:
        resources = self.folder / "resources.json"
        resources.write_text(json.dumps({name: self._resource(name) for name in self.places}))
        self._start("exporter", "-c", self.coordinator, "-n", "bench", str(resources))
        self._await(lambda: len(self.client("resources").split()) == len(self.places))

    def _resource(self, name: str) -> dict[str, Any]:
        server = self.places[name]
        about = {"address": server.host, "port": server.port, "username": server.user}
        if name in self.passwords:
            about["password"] = self.passwords[name]
        return {"NetworkService": about}

    def kill(self, program: str) -> None:
        """Kill the coordinator or the exporter, which doesn't outlive the coordinator."""
        for name in ("coordinator", "exporter") if program == "coordinator" else (program,):
            if name in self._running:
                process = self._running.pop(name)
                process.kill()
                process.wait()

    def client(self, *arguments: str, user: str = OTHER) -> str:
        """Run `labgrid-client` as another user; return what it prints."""
        done = subprocess.run(
            [self.programs / "labgrid-client", "-x", self.coordinator, *arguments],
            env={**os.environ, "LG_USERNAME": user, "LG_HOSTNAME": "lab"},
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def holder(self, place: str) -> str | None:
        """Return who has a place, as ``host/user``."""
        shown = self.client("-p", place, "show")
        line = next(line for line in shown.splitlines() if line.strip().startswith("acquired:"))
        holder = line.partition(":")[2].strip()
        return None if holder == "None" else holder

    def reservations(self) -> str:
        return self.client("reservations")

    def log(self, program: str) -> str:
        return (self.folder / f"{program}.log").read_text()

    def table(self, place: str, name: str = "", **more: object) -> str:
        """Return the inventory table of a place, with its SSH server's key."""
        server = self.places[place]
        taken = {"place": place, "coordinator": self.coordinator, "python": str(self.python)}
        entries = {
            "key": str(server.key),
            "known_hosts": str(server.known_hosts),
            "ssh_config": str(server.ssh_config),
            "connect_timeout_s": 30,
            "cache": str(self.folder / f"cache-{place}"),
        }
        lines = [f"[devices.{name or place}]", *_lines(entries)]
        return "\n".join([*lines, f"[devices.{name or place}.labgrid]", *_lines(taken | more), ""])

    def _start(self, program: str, *arguments: str) -> None:
        with (self.folder / f"{program}.log").open("wb") as log:
            self._running[program] = subprocess.Popen(
                [self.programs / f"labgrid-{program}", *arguments],
                cwd=self.folder,
                env={**os.environ, "PYTHONUNBUFFERED": "1"},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def _await(self, ready: Any) -> None:
        for _ in range(600):
            if ready():
                return
            assert all(one.poll() is None for one in self._running.values())
            time.sleep(0.05)
        pytest.fail("labgrid did not start: " + self.log("coordinator"))


def _lines(entries: Mapping[str, object]) -> Sequence[str]:
    return [f"{key} = {json.dumps(value)}" for key, value in entries.items()]


@contextlib.contextmanager
def start_lab(
    folder: Path,
    places: Mapping[str, SshServer],
    passwords: Mapping[str, str] = MappingProxyType({}),
) -> Iterator[Lab]:
    """Start a coordinator that knows these places, and an exporter of their NetworkServices.

    It knows a place `bare`, too, which has no NetworkService. `passwords` are those of places.
    """
    lab = Lab(folder, environment_folder() / "bin", places, passwords)
    stored = {name: _stored_place(f"bench/{name}/NetworkService") for name in places}
    stored["bare"] = _stored_place("bench/none/NetworkService")
    (folder / "places.yaml").write_text(json.dumps(stored))
    try:
        lab.start_coordinator()
        lab.start_exporter()
        yield lab
    finally:
        for program in tuple(lab._running):
            lab.kill(program)


def _stored_place(match: str) -> dict[str, Any]:
    exporter, group, kind = match.split("/")
    matches = [{"exporter": exporter, "group": group, "cls": kind, "name": None, "rename": None}]
    return {"aliases": [], "comment": "", "tags": {}, "matches": matches}

"""The agent's zipapp as a process of its own, spoken to frame by frame."""

import contextlib
import hashlib
import itertools
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from edgeflare.devices.provisioning.upload import agent_bundle
from edgeflare_agent.image_spec import InputSpec
from edgeflare_agent.wire import Frame, Kind, encode, read_frame

DEADLINE_S = 60.0
"""After this long a test has failed: the process is killed, so that no read waits for ever."""


class AgentProcess:
    """A running agent whose HELLO was read. Use it as a context manager."""

    def __init__(
        self,
        root: Path,
        *,
        python: str = sys.executable,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self.root = root
        self.models = root / "models"
        self.models.mkdir(parents=True, exist_ok=True)
        self.process = subprocess.Popen(
            [python, str(agent_bundle(root / "agents"))],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=bare_environment() if environment is None else dict(environment),
        )
        self._killer = threading.Timer(DEADLINE_S, self.process.kill)
        self._killer.start()
        self._ids = itertools.count()
        self.hello = self.receive()
        assert self.hello.kind is Kind.HELLO

    def __enter__(self) -> "AgentProcess":
        return self

    def __exit__(self, *_: object) -> None:
        self._killer.cancel()
        self.process.kill()
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout, self.process.stderr):
            with contextlib.suppress(BrokenPipeError):  # what it never read
                pipe.close()

    def start(self, heartbeat_s: float = 60.0, max_body: int = 1 << 20, **more: Any) -> None:
        self.send(Kind.START, {"heartbeat_s": heartbeat_s, "max_body": max_body, **more})

    def send(self, kind: Kind, header: dict[str, Any], arrays: Sequence[np.ndarray] = ()) -> None:
        self.write(b"".join(encode(kind, header, arrays)))

    def write(self, data: bytes) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(data)
        self.process.stdin.flush()

    def receive(self) -> Frame:
        assert self.process.stdout is not None
        return read_frame(self.process.stdout.read1)  # type: ignore[attr-defined]

    def ask(self, kind: Kind, header: dict[str, Any], arrays: Sequence[np.ndarray] = ()) -> Frame:
        self.send(kind, header, arrays)
        return self.receive()

    def request(
        self, kind: Kind, header: dict[str, Any], arrays: Sequence[np.ndarray] = ()
    ) -> Frame:
        """Ask by an id that no other request has; the answer carries it."""
        id_ = f"request {next(self._ids)}"
        answer = self.ask(kind, {"id": id_, **header}, arrays)
        assert answer.header["id"] == id_
        return answer

    def ping(self) -> dict[str, Any]:
        """Return what the agent tells of itself."""
        pong = self.ask(Kind.PING, {"ping": 1})
        assert (pong.kind, pong.header.pop("ping")) == (Kind.PONG, 1)
        return pong.header

    def put(self, path: str | Path) -> str:
        """Copy a model below root/models; return its name there."""
        source = Path(path)
        name = hashlib.sha256(source.read_bytes()).hexdigest() + source.suffix
        shutil.copyfile(source, self.models / name)
        return name

    def load(self, path: str | Path, runtime: str, **options: Any) -> Frame:
        header = {"model": self.put(path), "runtime": runtime, "options": options}
        return self.request(Kind.LOAD, header)

    def configure(self, spec: InputSpec, output: str | None = None) -> Frame:
        return self.request(Kind.CONFIGURE, {"input": spec.to_json(), "output": output})

    def infer(self, samples: Sequence[np.ndarray]) -> Frame:
        return self.request(Kind.INFER, {}, samples)

    def lease(
        self, holder: str, session: str = "first", about: str = "a test", share: bool = False
    ) -> Frame:
        words = {"holder": holder, "session": session, "about": about}
        return self.request(Kind.LEASE, {**words, "share": share})

    def ended(self) -> tuple[int, str]:
        """Wait for the end; return exit status and stderr."""
        status = self.process.wait()
        assert self.process.stderr is not None
        return status, self.process.stderr.read().decode()


def bare_environment() -> dict[str, str]:
    """An environment in which Python finds only what is installed for it."""
    return {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}

"""The agent's zipapp as a process of its own, frame by frame, and valid frames mutated from a seed."""

import contextlib
import hashlib
import itertools
import json
import os
import random
import shutil
import subprocess
import sys
import threading
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from edgeflare.devices import DeviceSession, Lease
from edgeflare.devices.agent_link import AgentLink
from edgeflare.devices.bundle import agent_bundle
from edgeflare.devices.limits import Limits
from edgeflare.devices.provision import Provisioned
from edgeflare.devices.report import ask_report
from edgeflare.errors import EdgeFlareError
from edgeflare.testing import FakeAgent, Replace, raw_frame
from edgeflare_agent.pieces import Decoded
from edgeflare_agent.spec import InputSpec
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
        self.write(b"".join(encode(Frame(kind, header, tuple(arrays)))))

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


KINDS = ("HELLO", "LOADED", "CONFIGURED", "RESULT", "PONG", "LEASED", "STATE", "ERROR")
DEADLINES = {"heartbeat_s": 1.0, "timeout_s": 1.0}
_WAIT_S = 60.0
_SPEC = InputSpec((1, 4, 4, 1), "float32", (4, 4), 1)
_SAMPLE = np.zeros((4, 4, 1), np.uint8)
_DECODER = {"kind": "ctc", "vocabulary": ["a", "b"]}
_EXTREMES = (
    *(None, True, False, 0, -1, 1, 7, 2**31, 2**63 - 1, 2**63, -(2**63), 2**80, 10**400, -(10**19)),
    *(0.5, -0.0, 1e-320, 1e16, 1e300, -1e300, float("inf"), float("-inf"), float("nan")),
    *(
        "",
        "x",
        "0",
        "NaN",
        "x" * 9000,
        "\x1b]0;x\x07\x1b[2J",
        "\ud800",
        "\u202e",
        "\x00",
        "float32",
    ),
    *(
        [],
        {},
        [[]],
        [None],
        [1, 2, 3],
        ["x"] * 5000,
        {"": {}},
        {"kind": "ctc"},
        [{}],
        [float("nan")],
    ),
)
_TEXTS = ("1e400", "-1e400", "[" * 5000 + "]" * 5000, "[" * 100_000, "1" * 5000, '"\\udfff"', "")


def mutated(rng: random.Random, honest: Frame) -> Any:
    """Return what comes in place of a frame, as a `Replace` may have it: bytes, frames, or nothing."""
    way = rng.randrange(12)
    data = bytearray(b"".join(encode(honest)))
    if way == 0:
        for _ in range(rng.randint(1, 8)):
            data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
        return bytes(data)
    if way == 1:
        return [bytes(data[: rng.randrange(len(data))]), rng.choice(["end", b"", bytes(99)])]
    if way == 2:
        at = rng.randrange(len(data))
        return bytes(data[:at]) + rng.randbytes(rng.randint(1, 300)) + bytes(data[at:])
    if way == 3:
        return rng.choice([None, "end", [honest, honest], [honest, "end"]])
    if way == 4:
        kind = rng.choice([*map(int, Kind), 0, 17, 255])
        return raw_frame(kind, json.dumps(honest.header), rng.randbytes(rng.choice([0, 0, 40])))
    if way == 5 or (way == 6 and honest.arrays):
        return honest._replace(arrays=tuple(_array(rng) for _ in range(rng.randint(0, 3))))
    text = json.dumps(_changed(rng, honest.header))
    if way == 7:  # a key twice, a value as no encoder writes it
        name = rng.choice([*honest.header, "arrays", "raw", "decoded"])
        value = rng.choice([*_TEXTS, *map(json.dumps, _EXTREMES)])
        text = text[:-1] + ("," if honest.header else "") + f"{json.dumps(name)}: {value}}}"
    if way == 8:
        text = text[: rng.randrange(len(text))]
    if way == 9 or not honest.arrays:
        return raw_frame(honest.kind, text, rng.randbytes(rng.choice([0, 0, 0, 8, 70_000])))
    return honest._replace(header=_changed(rng, honest.header))


def _array(rng: random.Random) -> np.ndarray:
    shape = [rng.choice([0, 1, 2, 3, 10, 11, 300]) for _ in range(rng.randint(0, 2))]
    return np.zeros(shape, rng.choice(["<f4", ">f4", "<f8", "|i1", "<i8", "|b1", "<f2"]))


def _changed(rng: random.Random, header: dict[str, Any]) -> dict[str, Any]:
    """Return a header with one value, wherever it stands, replaced, removed, wrapped or said twice."""
    new = json.loads(json.dumps(header))
    inside: Any = new
    while True:
        keys = list(inside) if isinstance(inside, dict) else list(range(len(inside)))
        if not keys:
            return dict(new)
        key = rng.choice(keys)
        if not isinstance(inside[key], dict | list) or not inside[key] or rng.random() < 0.3:
            break
        inside = inside[key]
    way = rng.randrange(6)
    if way == 0:
        del inside[key]
    elif way == 1:
        inside[key] = [inside[key]] * rng.choice([1, 2, 999])
    else:
        inside[key] = rng.choice(_EXTREMES)
    return dict(new)


def meet(seed: int, provisioned: Provisioned) -> str:
    """Run a session that meets the frame of this seed; return "answered" or the error's class.

    Raises whatever is no EdgeFlareError, and TimeoutError where an answer never comes.
    """
    rng = random.Random(seed)
    kind = rng.choice(KINDS)

    def change(honest: Frame) -> Any:
        if kind == "ERROR":
            about = {"code": "inference", "message": "the runtime failed"}
            honest = Frame(Kind.ERROR, {**honest.header, **about})
        return mutated(rng, honest)

    replaced = "RESULT" if kind == "ERROR" else kind
    transcribes = rng.random() < 0.3
    plan = Replace(replaced, change, first=rng.randint(0, 6) if kind == "PONG" else 0, times=1)
    heard = Decoded(("a", "b"), np.ones((2, 2)))
    agent = FakeAgent(plan, infer=(lambda _: heard) if transcribes else None)
    use: Callable[[FakeAgent, Provisioned, bool], None] = (
        _session if rng.random() < 0.8 else _report
    )
    try:
        use(agent, provisioned, transcribes)
    except EdgeFlareError as error:
        text = str(error)
        assert len(text) < 4000, text[:200]
        odd = {char for char in text if unicodedata.category(char) in ("Cc", "Cf", "Cs")}
        assert odd <= set("\n\u200c\u200d"), text
        return type(error).__name__
    return "answered"


def _session(agent: FakeAgent, provisioned: Provisioned, transcribes: bool) -> None:
    session = DeviceSession.open(
        agent.transport(),
        provisioned,
        "onnx",
        {},
        lease=Lease("night", "night/0", "campaign night"),
        **DEADLINES,  # type: ignore[arg-type]
    )
    try:
        session.configure(_SPEC, None, _DECODER if transcribes else None)
        for pending in [session.submit([_SAMPLE] * count) for count in (1, 2, 1)]:
            for output in pending.result(_WAIT_S).outputs:
                assert isinstance(output, Decoded) is transcribes
                assert isinstance(output, Decoded) or output.size == 10
        session.ping()
        json.dumps(session.fingerprint, allow_nan=False).encode()
    finally:
        session.close()


def _report(agent: FakeAgent, provisioned: Provisioned, transcribes: bool) -> None:
    del transcribes
    link = AgentLink.open(
        agent.transport(), provisioned.agent_path, provisioned.root, Limits(**DEADLINES)
    )
    try:
        json.dumps(ask_report(link).to_json(), allow_nan=False).encode()
    finally:
        link.close()

"""Device sessions without a device, whose answers a test sets; random device statuses; mutated frames.

`meet` opens a session with an agent that sends one valid frame mutated from a seed.
"""

import json
import random
import threading
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from typing import Any, NamedTuple

import numpy as np

from edgeflare.devices import DeviceSession, DeviceState, DeviceStatus, Lease, LoadedModel, Reply
from edgeflare.devices.provisioning.upload import Provisioned
from edgeflare.devices.session.agent_link import AgentLink, Limits
from edgeflare.devices.session.device_report import request_report
from edgeflare.devices.session.reconnecting import ReconnectingSession, Task
from edgeflare.devices.telemetry import Health
from edgeflare.errors import DeviceError, EdgeFlareError
from edgeflare.types import Sample
from edgeflare_agent.configuration.fixed_inputs import ONE_INPUT, GivenInputs
from edgeflare_agent.decoding import Decoded
from edgeflare_agent.image_spec import InputSpec
from edgeflare_agent.wire import Frame, Kind, encode
from edgeflare_lab.testing import FakeAgent, Replace, raw_frame

FINGERPRINT = {"board": "Pi 4", "kernel": "6.1", "runtime": {"name": "onnx", "threads": 1}}
MODEL = LoadedModel((), (), {"name": "onnx"}, {})
SPEC = InputSpec(shape=(1, 4, 4, 1), dtype="float32", size=(4, 4), channels=1)


def sample(value: int) -> Sample:
    """A sample that stands for this value."""
    return np.array([value])


def reply_to(samples: Sequence[Sample]) -> Reply:
    """The right answer: each value, negative."""
    return Reply([-one for one in samples], [0.01] * len(samples))


class Asked(NamedTuple):
    samples: Sequence[Sample]
    future: "Future[Reply]"

    @property
    def value(self) -> int:
        return int(self.samples[0][0])


class FakeSession:
    """Stands in for `edgeflare.devices.DeviceSession`; `pending` requests wait for the test to answer."""

    def __init__(
        self,
        fingerprint: dict[str, Any] = FINGERPRINT,
        *,
        configuring: Exception | None = None,
        fails_after: tuple[int, EdgeFlareError] | None = None,
    ) -> None:
        self.name = "pi4"
        self.device: dict[str, Any] = {"board": "Pi 4"}
        self.model = MODEL
        self.fingerprint = fingerprint
        self.window = 4
        self._health = Health()
        self._on_health: Callable[[Health], None] = lambda _: None
        self.failure: EdgeFlareError | None = None
        self.configurations: list[tuple[InputSpec, str | Sequence[str] | None]] = []
        self.decoders: list[Mapping[str, Any] | None] = []
        self.inputs: list[tuple[str | None, dict[str, Any]]] = []
        self.kept: list[Mapping[str, Any] | None] = []
        self.submitted: list[int] = []
        self.pending: list[Asked] = []
        self.closed = False
        self.configuring = configuring
        self.fails_after = fails_after
        self.before_submit: Callable[[Sequence[Sample]], None] = lambda _: None
        self._callbacks: list[Callable[[EdgeFlareError], None]] = []
        self._lock = threading.Lock()

    @property
    def in_flight(self) -> int:
        return min(self.window, len(self.pending))

    @property
    def health(self) -> Health:
        return self._health

    @health.setter
    def health(self, health: Health) -> None:
        self._health = health
        self._on_health(health)

    def on_health(self, callback: Callable[[Health], None]) -> None:
        self._on_health = callback
        callback(self._health)

    def on_failure(self, callback: Callable[[EdgeFlareError], None]) -> None:
        with self._lock:
            self._callbacks.append(callback)
            failure = self.failure
        if failure is not None:
            callback(failure)

    def configure(
        self,
        spec: InputSpec,
        output: str | Sequence[str] | None,
        decoder: Mapping[str, Any] | None = None,
        repair: object = None,
        *,
        keep: Mapping[str, Any] | None = None,
        given: GivenInputs = ONE_INPUT,
    ) -> None:
        if self.configuring is not None:
            raise self.configuring
        self.configurations.append((spec, output))
        self.decoders.append(decoder)
        self.inputs.append(given)
        self.kept.append(keep)

    def submit(self, samples: Sequence[Sample]) -> "Future[Reply]":
        self.before_submit(samples)
        asked = Asked(samples, Future())
        with self._lock:
            failure = DeviceError("closed") if self.closed else self.failure
            if failure is None:
                self.pending.append(asked)
                self.submitted.append(asked.value)
        if failure is not None:
            asked.future.set_exception(failure)
        elif self.fails_after is not None and len(self.submitted) == self.fails_after[0]:
            self.fail(self.fails_after[1])
        return asked.future

    def answer(self, index: int = 0) -> None:
        """Answer the request that has waited longest, or another."""
        with self._lock:
            asked = self.pending.pop(index)
        asked.future.set_result(reply_to(asked.samples))

    def refuse(self, error: EdgeFlareError, index: int = 0) -> None:
        """Answer a request with an error of its own."""
        with self._lock:
            asked = self.pending.pop(index)
        asked.future.set_exception(error)

    def fail(self, error: EdgeFlareError, *, replies: int = 0, quietly: bool = False) -> None:
        """End; so many requests are answered still, in the midst of it.

        `quietly`: the first request fails before the failure is known.
        """
        if quietly and self.pending:
            self.refuse(error)
        with self._lock:
            if self.failure is not None:
                return
            self.failure = error
            callbacks, pending, self.pending = self._callbacks, self.pending, []
        for callback in callbacks:
            callback(error)
        for n, asked in enumerate(pending):
            if n < replies:
                asked.future.set_result(reply_to(asked.samples))
            else:
                asked.future.set_exception(error)

    def close(self) -> None:
        """End by this side: what is pending fails, it has not failed."""
        with self._lock:
            self.closed = True
            pending, self.pending = self.pending, []
        for asked in pending:
            asked.future.set_exception(DeviceError("the session with pi4 was closed"))


class Steps:
    """Does a reconnecting session's work in the background when the test says so, and only then."""

    def __init__(self) -> None:
        self.tasks: list[Task] = []
        self.waits: list[float] = []

    def __call__(self, task: Task, stop: threading.Event) -> None:
        self.tasks.append(task)

    def step(self) -> None:
        """Have each task do what it does until it waits the next time."""
        for task in list(self.tasks):
            seconds = next(task, None)
            if seconds is None:
                self.tasks.remove(task)
            else:
                self.waits.append(seconds)


class Bench:
    """A reconnecting session whose clock, background and reopening are the test's."""

    def __init__(self) -> None:
        self.now = 0.0
        self.told: list[str] = []
        self.steps = Steps()
        self.next: list[FakeSession | Exception] = []
        self.first = FakeSession()
        self.reconnecting = ReconnectingSession(
            self.first, self.reopen, rng=random.Random(7), on_notice=self.told.append,
            clock=lambda: self.now, background=self.steps,
        )  # fmt: skip

    def reopen(self) -> FakeSession:
        given = self.next.pop(0)
        if isinstance(given, Exception):
            raise given
        return given

    def come_back(self, *given: FakeSession | Exception) -> None:
        """Have the next tries end like this."""
        self.next += given
        while self.next:
            self.steps.step()
        self.steps.step()


PI = DeviceStatus(
    "pi-4", DeviceState.UP, "", 12000, 412.3, 15, 16, 0.97, 0.0381, 0.0522, 61.2, False, 0
)
HOT = DeviceStatus(
    "ssh://user@192.168.1.77:2222", DeviceState.UP, "", 99000, 1412.0, 120, 128, 0.5, 0.0011,
    0.0922, 81.2, True, 3,
)  # fmt: skip
AWAY = DeviceStatus(
    "jetson", DeviceState.AWAY, "no answer for 12 s: No route to [host] jetson.local", 5
)
RETIRED = DeviceStatus(
    "pi-5", DeviceState.RETIRED, "came back as another device: its board differs", 5
)
SILENT = DeviceStatus("local", DeviceState.UP, "", 1, 3.25, 1, 2)
"""An "up" device that tells nothing of itself."""


def drawn(count: int, seed: int) -> tuple[DeviceStatus, ...]:
    """Return so many devices in all sorts of states."""
    rng = random.Random(seed)

    def maybe(value: float) -> float | None:
        return None if rng.random() < 0.2 else value

    return tuple(
        DeviceStatus(
            name=rng.choice(["pi-{}", "board {} of the big rack", "ssh://u@10.0.0.{}:22"]).format(
                n
            ),
            state=rng.choices(list(DeviceState), [8, 1, 1])[0],
            detail=rng.choice(["", "no answer", "no [bold]answer[/] " * 9]),
            queries=rng.randrange(10**7),
            queries_per_s=rng.choice([0.0, rng.random(), 10 ** (5 * rng.random())]),
            in_flight=rng.randrange(200),
            depth=rng.randrange(200),
            busy=maybe(rng.random()),
            latency_median_s=maybe(10 ** (-4 + 5 * rng.random())),
            latency_p99_s=maybe(10 ** (-3 + 5 * rng.random())),
            temperature_c=maybe(100 * rng.random()),
            throttled=rng.choice([None, False, True]),
            reconnects=rng.choice([0, 0, rng.randrange(200)]),
        )
        for n in range(count)
    )


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
        "", "x", "0", "NaN", "x" * 9000, "\x1b]0;x\x07\x1b[2J", "\ud800", "\u202e", "\x00",
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
)  # fmt: skip
_TEXTS = ("1e400", "-1e400", "[" * 5000 + "]" * 5000, "[" * 100_000, "1" * 5000, '"\\udfff"', "")


def mutated(rng: random.Random, honest: Frame) -> Any:
    """Return what comes in place of a frame, as a `Replace` may have it: bytes, frames, or nothing."""
    way = rng.randrange(12)
    data = bytearray(b"".join(encode(*honest)))
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
        limits=Limits(**DEADLINES),  # type: ignore[arg-type]
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
        json.dumps(request_report(link).to_json(), allow_nan=False).encode()
    finally:
        link.close()

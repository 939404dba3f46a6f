"""Agents that send one field of one reply with a value of another type, size or range: each field, each value.

What an agent of this host never sends is DeviceProtocolError with field and value, and says nothing of cables.
"""

import json
import re
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from edgeflare.devices import Completed, Device, DeviceSession, Lease, Stream
from edgeflare.devices.doctor.facts import read_system
from edgeflare.devices.provisioning.probe import probe
from edgeflare.devices.provisioning.upload import Provisioned
from edgeflare.devices.session.agent_errors import MAPPED
from edgeflare.devices.session.agent_link import AgentLink, Limits
from edgeflare.devices.session.device_report import request_report
from edgeflare.errors import AgentDiedError, DeviceError, DeviceProtocolError, EdgeFlareError
from edgeflare_agent.image_spec import InputSpec
from edgeflare_agent.wire import PREFIX_SIZE, Frame, Kind, encode
from edgeflare_lab.testing import FakeAgent, Replace, raw_frame

SPEC = InputSpec((1, 4, 4, 1), "float32", (4, 4), 1)
SAMPLE = np.zeros((4, 4, 1), np.uint8)
ANSWER = np.arange(10, dtype=np.float32).reshape(1, 10)
WAIT_S = 20.0
LONGEST = 2_300
"""Characters of an error, whatever the device has sent."""
LOOSE = (("pid",), ("load",))
"""Fields of which anything is taken, or both a number and a list of them."""
NOTHING_THERE = Provisioned("agent.pyz", "cache", "model", "0" * 64, Path("model"), ())
LINK_WORDS = re.compile("cable|Wi-Fi|arrived damaged")
LIBRARY_WORDS = re.compile(
    r"[a-z]Error\(|NoneType|'\w+' object|object is not|argument must|invalid literal|unhashable|line 1 column|codec can't"
)
MISSING = object()
WRONG: dict[str, Any] = {
    "missing": MISSING,
    "null": None,
    "true": True,
    "text": "none of yours",
    "long text": "x" * 100_000,
    "half a letter": "\ud800",
    "-1": -1,
    "0.5": 0.5,
    "more than 64 bits": 2**80,
    "400 digits": 10**400,
    "NaN": float("nan"),
    "infinity": float("inf"),
    "empty list": [],
    "list": [None, {"a": 1}, "b"],
    "empty object": {},
    "object": {"a": [1]},
    "nested deep": json.loads("[" * 40 + "]" * 40),
}
TENSOR = {"name": "y", "shape": [1, 10], "dtype": "float32", "quantization": [0.5, 3]}
HEADERS: dict[str, dict[str, Any]] = {
    "HELLO": {
        "device": {
            **dict.fromkeys(("board", "soc", "cpu", "arch", "kernel", "os", "hostname"), "x"),
            "cpu_flags": ["neon"],
            "cores": 4,
            "memory_bytes": 1 << 30,
        }
    },
    "LOADED": {
        "inputs": [{**TENSOR, "name": "x", "shape": [1, 4, 4, 1], "quantization": None}],
        "outputs": [TENSOR],
        "runtime": {"name": "onnx", "package": "onnxruntime", "version": "1", "providers": ["CPU"]},
        "metadata": {"labels": "a"},
        "decoder": {"kind": "ctc", "origin": "x"},
    },
    "PONG": {
        **dict.fromkeys(("wall", "busy_s", "uptime_s", "inferring_s"), 1.5),
        **dict.fromkeys(("served", "waiting", "rss_bytes"), 7),
        **dict.fromkeys(("temperature_c", "frequency_mhz", "gpu_load", "gpu_mhz"), 40.0),
        "throttle_reasons": ["hot"],
        "throttled_since_boot": ["hot"],
        "battery_percent": 50.0,
        "battery_charging": True,
        "throttled": False,
    },
    "STATE": {
        "leases": [{"about": "a", "holder": "b", "since_s": 3.0, "share": False}],
        "disk_free_bytes": 1 << 30,
        "load": [0.5],
        "throttled": False,
        "temperature_c": 40.0,
    },
    "RESULT": {"decoded": False, "outputs": None},
    "ERROR": {"code": "inference", "message": "the runtime failed"},
    "CONFIGURED": {},
    "LEASED": {},
}
"""What is added to an honest frame, so that each field that the host reads is there."""


def places_in(value: Any, before: tuple[Any, ...] = ()) -> Iterator[tuple[tuple[Any, ...], Any]]:
    """The paths of all values within JSON, and the values."""
    inside: Any = value.items() if isinstance(value, dict) else enumerate(value)
    for key, inner in inside:
        yield (*before, key), inner
        if isinstance(inner, dict | list):
            yield from places_in(inner, (*before, key))


def honest(kind: str, frame: Frame) -> tuple[dict[str, Any], bytes]:
    """The header as it travels, `arrays` and all, and the body, of an honest frame or an error."""
    if kind == "ERROR":
        return {"id": frame.header["id"], **HEADERS[kind]}, b""
    arrays = [{"dtype": one.dtype.str, "shape": list(one.shape)} for one in frame.arrays]
    header = {**frame.header, **HEADERS[kind], **({"arrays": arrays} if arrays else {})}
    return header, b"".join(one.tobytes() for one in frame.arrays)


def replaced(header: dict[str, Any], path: tuple[Any, ...], value: Any) -> dict[str, Any]:
    """The header with this value at this place."""
    new: dict[str, Any] = json.loads(json.dumps(header))
    inside: Any = new
    for key in path[:-1]:
        inside = inside[key]
    if value is MISSING:
        del inside[path[-1]]
    else:
        inside[path[-1]] = value
    return new


def changed(kind: str, path: tuple[Any, ...], value: Any) -> Replace:
    """All frames of a kind with this value at this place."""

    def change(frame: Frame) -> bytes:
        header, body = honest(kind, frame)
        return raw_frame(kind, json.dumps(replaced(header, path, value)), body)

    return Replace("RESULT" if kind == "ERROR" else kind, change)


def use(agent: FakeAgent, provisioned: Provisioned = NOTHING_THERE) -> None:
    """A session with a lease, from its start to an answer and a report on the device."""
    link = AgentLink.open(
        agent.transport(), provisioned.agent_path, provisioned.root, Limits(timeout_s=10.0)
    )
    try:
        request_report(link)
    finally:
        link.close()
    session = DeviceSession.open(
        agent.transport(),
        provisioned,
        "onnx",
        {},
        lease=Lease("night", "night/0", "campaign night"),
        limits=Limits(heartbeat_s=10.0, timeout_s=10.0),
    )
    try:
        session.configure(SPEC, None)
        session.ping()
        (answer,) = session.submit([SAMPLE]).result(WAIT_S).outputs
        assert np.array_equal(np.ravel(np.asarray(answer)), ANSWER[0])
        json.dumps(session.fingerprint, allow_nan=False)
    finally:
        session.close()


class Case(NamedTuple):
    """A name in `WRONG`, at a place in the header of a kind of frame, in place of the usual value."""

    kind: str
    path: tuple[Any, ...]
    usual: Any
    name: str


@pytest.fixture(scope="module")
def cases() -> list[Case]:
    """Each value at each place of each kind of frame."""
    frames: dict[str, Frame] = {}

    def seen(kind: str) -> Replace:
        return Replace(kind, lambda frame: frames.update({kind: frame}) or frame)

    honest_agent = FakeAgent(*map(seen, set(HEADERS) - {"ERROR"}), infer=lambda _: ANSWER)
    use(honest_agent)
    frames["ERROR"] = frames["RESULT"]
    headers = {kind: json.loads(json.dumps(honest(kind, frames[kind])[0])) for kind in HEADERS}
    places = [(kind, *place) for kind, header in headers.items() for place in places_in(header)]
    return [Case(*place, name) for place in places for name in WRONG]


def problem(case: Case) -> str | None:
    """What is wrong with how a case ended; None: nothing."""
    kind, path, usual, name = case
    try:
        use(FakeAgent(changed(kind, path, WRONG[name]), infer=lambda _: ANSWER))
    except DeviceError as error:
        text = str(error)
        fields = [key for key in path if isinstance(key, str)]
        is_longer_reply = "over the limit" in text  # by a changed length, the link's fault as well
        blames_link = LINK_WORDS.search(text) and not is_longer_reply
        if len(text) > LONGEST or blames_link or LIBRARY_WORDS.search(text):
            return f"{case}: {text}"
        says_why = " expected " in text or is_longer_reply
        names_it = says_why and any(field in text for field in fields)
        if isinstance(error, DeviceProtocolError) and not names_it:
            return f"{case}: {text}"
        if not isinstance(error, DeviceProtocolError) and kind != "ERROR":
            return f"{case}: {error!r}"
        return None
    except Exception as error:  # noqa: BLE001  a thread of the pool would keep it
        return f"{case}: {error!r}"
    may_be_taken = name in ("missing", "null") or family(WRONG[name]) == family(usual)
    return None if may_be_taken or path in LOOSE else f"{case}: taken for an answer"


def family(value: object) -> str:
    """What a value is in JSON."""
    if type(value) in (int, float):
        return "number"
    return type(value).__name__


def all_of(chosen: list[Case]) -> list[str]:
    with ThreadPoolExecutor(16) as pool:
        return [one for one in pool.map(problem, chosen) if one is not None]


def test_a_wrong_value_names_field_and_value(cases: list[Case]) -> None:
    assert len(cases) > 1500
    assert all_of(cases[::13]) == []  # coprime to the number of values: each of them comes up


@pytest.mark.slow
def test_each_wrong_value_of_each_field_names_field_and_value(cases: list[Case]) -> None:
    assert all_of(cases) == []


MOMENTS = ("HELLO", "LEASED", "LOADED", "STATE", "CONFIGURED", "PONG", "RESULT")
CODES = (*MAPPED, "err_out_of_range", "", "x" * 100_000)


@pytest.mark.parametrize("moment", MOMENTS)
def test_an_error_of_each_code_at_each_moment_is_that_error(moment: str) -> None:
    for code in CODES:
        for id_ in ("same", None):
            about = {"code": code, "message": "no\x1b[2J more" + "!" * 100_000}

            def change(frame: Frame, about: dict[str, Any] = about, id_: Any = id_) -> Frame:
                own = {"id": frame.header.get("id") if id_ else None}
                return Frame(Kind.ERROR, {**own, **about})

            with pytest.raises(EdgeFlareError) as caught:
                use(FakeAgent(Replace(moment, change), infer=lambda _: ANSWER))
            expected = DeviceProtocolError if moment == "HELLO" else MAPPED.get(code, DeviceError)
            assert type(caught.value) is expected, (code, id_)
            text = str(caught.value)
            assert len(text) < LONGEST
            assert text.isprintable()
            assert not LINK_WORDS.search(text)


def test_a_model_of_100_000_outputs_is_refused_in_a_short_sentence() -> None:
    outputs = [{**TENSOR, "name": str(number)} for number in range(5_000)]
    with pytest.raises(DeviceProtocolError, match="5,000") as caught:
        use(FakeAgent(Replace("LOADED", {"outputs": outputs})))
    assert len(str(caught.value)) < LONGEST


def test_a_cut_or_damaged_stream_is_the_links_fault() -> None:
    def damaged(frame: Frame) -> bytes:
        data = bytearray(b"".join(encode(*frame)))
        data[-1] ^= 1
        return bytes(data)

    with pytest.raises(DeviceProtocolError, match=r"damaged: .*checksum"):
        use(FakeAgent(Replace("RESULT", damaged)))
    for place in range(PREFIX_SIZE):

        def flipped(frame: Frame, place: int = place) -> bytes:
            data = bytearray(b"".join(encode(*frame)))
            data[place] ^= 0x80
            return bytes(data) + bytes(1 << 16)  # what comes next, where it is taken for longer

        with pytest.raises(DeviceProtocolError, match="cable") as caught:
            use(FakeAgent(Replace("RESULT", flipped)))
        is_longer_reply = place in range(12, 15)  # up to 8 MiB more than it has
        assert caught.value.may_pass is not is_longer_reply, place
    with pytest.raises(AgentDiedError, match="link cut"):
        use(FakeAgent(Replace("RESULT", lambda _: "end"), status=None))


class Said:
    """A transport on which each script prints this answer."""

    name = "bench"

    def __init__(self, answer: Any) -> None:
        self.printed = f"<<<edgeflare<<<{json.dumps(answer)}>>>edgeflare>>>".encode()

    def run(self, arguments: Sequence[str], stdin: bytes = b"", *, timeout: float) -> Completed:
        del arguments, stdin, timeout
        return Completed(0, self.printed, "")

    def open(self, arguments: Sequence[str]) -> Stream:
        raise NotImplementedError

    def put(self, local: Path, remote: str) -> None:
        raise NotImplementedError

    def close(self) -> None:
        pass


PROBED = {
    **dict.fromkeys(("executable", "home", "root", "arch", "libc", "numpy"), "x"),
    "version": [3, 11, 2],
    "managed": False,
    "numpy_problem": None,
    "runtimes": {"onnxruntime": "1"},
    "files": {"agents": {"a": 1}, "models": {}},
    "cache_problem": None,
    "free_bytes": 10**10,
}
FACTS = {
    "clock": 1.0,
    "took_s": 0.1,
    "board": "b",
    "cpu": {"model": "m", "implementer": "0x41", "part": "0xd03", "cores": 4, "flags": ["x"]},
    "memory": {"available": 10**9, "total": 10**9},
    "disk": {"free": 10**9, "total": 10**9, "files_free": 10},
    "hottest": [40.0, "cpu"],
    "firmware": 5,
    "governors": ["ondemand"],
    "coolers": ["fan"],
    "pythons": ["/usr/bin/python3.11"],
}


@pytest.mark.parametrize(("answer", "read"), [(PROBED, probe), (FACTS, read_system)])
def test_a_wrong_value_of_a_script_names_field_and_value(answer, read) -> None:
    device = Device(name="bench", transport="local")
    refusals: list[tuple[tuple[Any, ...], str]] = []
    for path, _ in places_in(answer):
        for value in WRONG.values():
            try:
                read(Said(replaced(answer, path, value)), device)
            except DeviceProtocolError as error:
                refusals.append((path, str(error)))
    assert len(refusals) > 200
    for path, text in refusals:
        fields = "|".join(key for key in path if isinstance(key, str))
        assert re.search(rf"sent \S*({fields})\S* = .*, expected ", text), text
        assert not LIBRARY_WORDS.search(text), text
        assert len(text) < LONGEST

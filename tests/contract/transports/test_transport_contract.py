"""What every way to a device does alike; a new transport is one row of `WAYS`."""

import shlex
import sys
import threading
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from adb_server import FakeAdbServer, Phone
from labgrid_lab import Lab
from ssh_servers import SshServer

from edgeflare.devices.inventory import Device
from edgeflare.devices.open import connect
from edgeflare.devices.transports.base import Stream, Transport
from edgeflare.errors import (
    DeviceError,
    DeviceProtocolError,
    DevicePythonError,
    DeviceTimeoutError,
    UnreachableError,
)

ECHO = """
import os
while data := os.read(0, 65536):
    while data:
        data = data[os.write(1, data):]
"""
WAYS = (
    "local",
    pytest.param("openssh", marks=pytest.mark.sshd),
    "asyncssh",
    pytest.param("openssh-by-adb", marks=pytest.mark.sshd),
    pytest.param("asyncssh-by-adb", marks=pytest.mark.extended),
    "adb-shell",
    pytest.param("asyncssh-by-labgrid", marks=pytest.mark.extended),
)
Describe = Callable[..., Device]


@pytest.fixture(params=WAYS)
def describe(
    request: pytest.FixtureRequest,
    tmp_path: Path,
    adb_server: FakeAdbServer,
    monkeypatch: pytest.MonkeyPatch,
) -> Describe:
    """Describe one device that is reached this way, with some fields changed."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)
    way = request.param
    fields: dict[str, Any] = {"name": "bench", "python": shlex.quote(sys.executable)}
    if way == "local":
        fields["transport"] = "local"
    elif way == "adb-shell":
        adb_server.phones.append(Phone("R58M", home=tmp_path))
        fields |= {"transport": "adb", "serial": "R58M", "adb_shell": True}
    else:
        server: SshServer = request.getfixturevalue(f"{way.partition('-by-')[0]}_server")
        if way.endswith("-by-adb"):
            adb_server.phones.append(Phone("R58M", ports={8022: server.port}))
            known = tmp_path / "known_hosts"
            words = server.known_hosts.read_text().splitlines()[0].split()[1:]
            known.write_text(" ".join(["adb-r58m", *words]) + "\n")
            device = server.device(host=None, port=None, transport="adb", serial="R58M")
            fields = {**device.model_dump(exclude_unset=True), "known_hosts": known, **fields}
        elif way.endswith("-by-labgrid"):
            lab: Lab = request.getfixturevalue("lab")
            place = {"place": "board", "coordinator": lab.coordinator, "python": lab.python}
            device = server.device(host=None, port=None, user=None, labgrid=place)
            fields = {**device.model_dump(exclude_unset=True), **fields}
        else:
            fields = {**server.device().model_dump(exclude_unset=True), **fields}
    return lambda **changes: Device.model_validate({**fields, **changes})


@pytest.fixture
def transport(describe: Describe) -> Iterator[Transport]:
    transport = connect(describe())
    yield transport
    transport.close()
    transport.close()


def read_all(stream: Stream, n: int) -> bytes:
    data = bytearray()
    while len(data) < n and (chunk := stream.read(1 << 16)):
        data += chunk
    return bytes(data)


def test_run_gives_status_stdout_and_stderr_apart(transport: Transport) -> None:
    code = (
        "import sys; d=sys.stdin.buffer.read(); sys.stdout.buffer.write(d[::-1]); "
        "sys.stderr.buffer.write('né'.encode()); sys.exit(7)"
    )
    assert transport.run(["-c", code], b"\x00abc", timeout=30) == (7, b"cba\x00", "né")


def test_arguments_arrive_as_they_were_given(transport: Transport) -> None:
    texts = ["two words", "it's", '"$HOME" `id` $(id)', "naïve – 雪", "", "a\nb", "*?[x]", "\\n;&|"]
    code = "import os, sys; sys.stdout.buffer.write(b'|'.join(map(os.fsencode, sys.argv[1:])))"
    for given in (texts, [""]):
        done = transport.run(["-c", code, *given, "end"], timeout=30)
        assert done.stdout.decode() == "|".join([*given, "end"])


def test_run_feeds_a_program_that_answers_while_it_reads(transport: Transport) -> None:
    data = np.random.default_rng(1).bytes(3_000_000)
    assert transport.run(["-c", ECHO], data, timeout=60).stdout == data


def test_a_program_that_ends_before_it_has_read_its_input_is_no_error(transport: Transport) -> None:
    done = transport.run(["-c", "print('done')"], bytes(5_000_000), timeout=60)
    assert (done.status, done.stdout) == (0, b"done\n")


def test_a_command_that_takes_too_long_is_given_up(transport: Transport) -> None:
    with pytest.raises(DeviceTimeoutError, match="within 1"):
        transport.run(["-c", "import time; time.sleep(600)"], timeout=1)
    assert transport.run(["-c", "print(1)"], timeout=30).stdout == b"1\n"


ENDLESS = """
import os, sys, time
while True:
    os.write(1, bytes(int(sys.argv[1])))
    time.sleep(float(sys.argv[2]))
"""


def test_a_command_that_prints_without_end_is_given_up(transport: Transport) -> None:
    with pytest.raises(DeviceProtocolError, match="8 MiB"):
        transport.run(["-c", ENDLESS, "65536", "0"], timeout=600)
    assert transport.run(["-c", "print(1)"], timeout=30).stdout == b"1\n"


def test_the_deadline_holds_while_output_comes(transport: Transport) -> None:
    with pytest.raises(DeviceTimeoutError, match="within 1"):
        transport.run(["-c", ENDLESS, "1", "0.001"], timeout=1)


def test_a_python_command_that_is_missing_is_named(describe: Describe) -> None:
    transport = connect(describe(python="python9.99"))
    with pytest.raises(DevicePythonError, match=r"python9\.99"):
        transport.run(["--version"], timeout=30)
    transport.close()


def test_stream_carries_10_mb_both_ways_at_once(transport: Transport) -> None:
    data = np.random.default_rng(2).bytes(10_000_000)
    stream = transport.open(["-c", ECHO])
    cuts = [0, 24, 200, 784, 151_000, 400_000, 5_000_000, len(data)]
    blocks = [memoryview(data)[a:b] for a, b in pairwise(cuts)]
    writer = threading.Thread(target=stream.write, args=(blocks,))
    writer.start()
    received = read_all(stream, len(data))
    writer.join()
    assert received == data
    stream.close()
    assert stream.exit_status(10) == 0
    assert stream.read(1) == b""


def test_stream_keeps_the_last_lines_of_stderr(transport: Transport) -> None:
    code = "import sys\nfor i in range(100000): print('line', i, file=sys.stderr)\nsys.exit(3)"
    stream = transport.open(["-c", code])
    assert stream.read(1) == b""
    assert stream.exit_status(30) == 3
    assert stream.stderr_tail().splitlines() == [f"line {i}" for i in range(99980, 100000)]
    stream.close()


def test_exit_status_is_none_while_the_program_runs(transport: Transport) -> None:
    stream = transport.open(["-c", ECHO])
    assert stream.exit_status(0.05) is None
    stream.close()
    stream.close()
    assert stream.exit_status(10) is not None


def test_a_program_that_ends_by_a_signal_ends_the_stream(transport: Transport) -> None:
    code = "import os,sys; print('x', flush=True); sys.stdin.read(1); os.kill(os.getpid(), 9)"
    stream = transport.open(["-c", code])
    assert read_all(stream, 2) == b"x\n"
    stream.write([b"y"])
    assert stream.read(10) == b""
    assert stream.exit_status(10) not in (None, 0)
    with pytest.raises(UnreachableError, match="takes no"):
        stream.write([bytes(1000)] * 10_000)
    stream.close()


def test_two_streams_and_a_command_run_beside_each_other(transport: Transport) -> None:
    streams = [transport.open(["-c", ECHO]) for _ in range(2)]
    for number, stream in enumerate(streams):
        stream.write([b"number %d" % number])
    assert transport.run(["-c", "print(3)"], timeout=30).stdout == b"3\n"
    assert [stream.read(100) for stream in streams] == [b"number 0", b"number 1"]
    for stream in streams:
        stream.close()


def test_put_replaces_what_is_there(transport: Transport, tmp_path: Path) -> None:
    source, target = tmp_path / "source", tmp_path / "ziel – Kopie"
    target.write_bytes(b"something longer than that")
    for size in (5, 0, 3_000_000):
        source.write_bytes(np.random.default_rng(3).bytes(size))
        transport.put(source, str(target))
        assert target.read_bytes() == source.read_bytes()


def test_put_into_a_folder_that_is_missing_says_so(transport: Transport, tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.write_bytes(b"bytes")
    with pytest.raises(DeviceError, match=r"write .*/missing/file"):
        transport.put(source, str(tmp_path / "missing" / "file"))

"""Commands and streams over SSH, against two independent servers."""

import threading
import time
from itertools import pairwise

import numpy as np
import pytest
from ssh_servers import banner_on_login, start_asyncssh, start_sshd

from edgeflare.devices.ssh import SshTransport
from edgeflare.errors import DevicePythonError, DeviceTimeoutError, UnreachableError

ECHO = """
import os
while data := os.read(0, 65536):
    while data:
        data = data[os.write(1, data):]
"""


def read_all(stream, n):
    data = bytearray()
    while len(data) < n:
        chunk = stream.read(1 << 16)
        if not chunk:
            break
        data += chunk
    return bytes(data)


def test_run_gives_status_stdout_and_stderr_apart(transport):
    code = "import sys; d=sys.stdin.buffer.read(); sys.stdout.buffer.write(d[::-1]); sys.stderr.write('né'); sys.exit(7)"
    done = transport.run(["-c", code], b"\x00abc", timeout=30)
    assert done == (7, b"cba\x00", "né")


@pytest.mark.parametrize(
    "text", ["two words", "it's", '"$HOME" `id` $(id)', "naïve – 雪", "", "a\nb", "*?[x]", "\\n;&|"]
)
def test_arguments_arrive_as_they_were_given(transport, text):
    done = transport.run(
        ["-c", "import sys; sys.stdout.buffer.write(repr(sys.argv[1:]).encode())", text, "end"],
        timeout=30,
    )
    assert done.stdout.decode() == repr([text, "end"])


def test_run_feeds_a_program_that_answers_while_it_reads(transport):
    data = np.random.default_rng(1).bytes(3_000_000)
    assert transport.run(["-c", ECHO], data, timeout=60).stdout == data


def test_a_program_that_ends_before_it_has_read_its_input_is_no_error(transport):
    done = transport.run(["-c", "print('done')"], bytes(5_000_000), timeout=60)
    assert (done.status, done.stdout) == (0, b"done\n")


def test_a_command_that_takes_too_long_is_given_up(transport):
    with pytest.raises(DeviceTimeoutError, match="did not end within 1 s"):
        transport.run(
            ["-c", "import sys; sys.stdin.read(); import time; time.sleep(20)"], timeout=1
        )
    assert transport.run(["-c", "print(1)"], timeout=30).stdout == b"1\n"


def test_a_python_command_that_is_missing_is_named(ssh_server):
    transport = SshTransport.connect(ssh_server.device(python="python9.99"))
    with pytest.raises(DevicePythonError, match=r"'python9\.99' is not there"):
        transport.run(["--version"], timeout=30)
    transport.close()


def test_a_python_command_may_be_a_shell_prefix(ssh_server):
    prefix = ssh_server.device().python
    transport = SshTransport.connect(ssh_server.device(python=f"WORD='a b' {prefix}"))
    code = "import os; print(os.environ['WORD'])"
    assert transport.run(["-c", code], timeout=30).stdout == b"a b\n"
    transport.close()


def test_stream_carries_10_mb_both_ways_at_once(transport):
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


def test_stream_keeps_the_last_lines_of_stderr(transport):
    code = "import sys\nfor i in range(100000): print('line', i, file=sys.stderr)\nsys.exit(3)"
    stream = transport.open(["-c", code])
    assert stream.read(1) == b""
    assert stream.exit_status(30) == 3
    assert stream.stderr_tail().splitlines() == [f"line {i}" for i in range(99980, 100000)]
    stream.close()


def test_a_program_may_write_7_mb_that_nobody_reads_yet(transport):
    code = "import sys; sys.stdout.buffer.write(bytes(7_000_000)); sys.stdout.flush()"
    stream = transport.open(["-c", f"{code}; print('written', file=sys.stderr)"])
    for _ in range(600):
        if stream.stderr_tail() == "written":
            break
        time.sleep(0.05)
    assert stream.stderr_tail() == "written"
    assert read_all(stream, 7_000_000) == bytes(7_000_000)
    stream.close()


def test_exit_status_is_none_while_the_program_runs(transport):
    stream = transport.open(["-c", ECHO])
    assert stream.exit_status(0.05) is None
    stream.close()
    stream.close()
    assert stream.exit_status(10) is not None


def test_close_unblocks_a_reader_in_another_thread(transport):
    stream = transport.open(["-c", ECHO])
    read = []
    reader = threading.Thread(target=lambda: read.append(stream.read(10)))
    reader.start()
    stream.close()
    reader.join(10)
    assert read == [b""]


def test_a_program_that_kills_itself_ends_the_stream(transport):
    code = "import os,sys; print('x', flush=True); sys.stdin.read(1); os.kill(os.getpid(), 9)"
    stream = transport.open(["-c", code])
    assert read_all(stream, 2) == b"x\n"
    stream.write([b"y"])
    assert stream.read(10) == b""
    assert stream.exit_status(10) not in (None, 0)
    with pytest.raises(UnreachableError, match="takes no more input"):
        stream.write([bytes(1000)] * 10_000)
    stream.close()


def test_many_streams_share_a_connection(transport):
    streams = [transport.open(["-c", ECHO]) for _ in range(8)]
    for number, stream in enumerate(streams):
        stream.write([b"number %d" % number])
    assert [stream.read(100) for stream in streams] == [b"number %d" % i for i in range(8)]
    for stream in streams:
        stream.close()


@pytest.mark.parametrize(
    "start", [pytest.param(start_sshd, marks=pytest.mark.sshd), start_asyncssh]
)
def test_a_server_that_dies_ends_reads_and_fails_writes(start):
    with start() as server:
        transport = SshTransport.connect(server.device())
        stream = transport.open(["-c", ECHO])
        stream.write([b"x"])
        assert stream.read(1) == b"x"
        read = []
        reader = threading.Thread(target=lambda: read.append(stream.read(10)))
        reader.start()
        server.kill()
        reader.join(20)
        assert read == [b""]
        with pytest.raises(UnreachableError):
            stream.write([bytes(100)])
        assert stream.exit_status(5) is None
        with pytest.raises(UnreachableError):
            transport.run(["-c", "print(1)"], timeout=10)
        stream.close()
        transport.close()


@pytest.mark.sshd
def test_a_banner_of_the_login_shell_comes_before_the_program(tmp_path):
    with start_sshd([banner_on_login(tmp_path)]) as server:
        transport = SshTransport.connect(server.device())
        assert transport.run(["-c", "print('me')"], timeout=30).stdout == b"Welcome\nme\n"
        stream = transport.open(["-c", ECHO])
        stream.write([b"hello"])
        assert read_all(stream, 13) == b"Welcome\nhello"
        stream.close()
        transport.close()

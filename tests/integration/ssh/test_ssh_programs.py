"""Commands and streams over SSH, beyond what every way to a device does alike (the transports' contract)."""

import threading
import time

import pytest
from ssh_servers import banner_on_login, start_asyncssh, start_sshd

from edgeflare.devices.transports.ssh.transport import SshTransport
from edgeflare.errors import UnreachableError

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


def test_a_python_command_may_be_a_shell_prefix(ssh_server):
    prefix = ssh_server.device().python
    transport = SshTransport.connect(ssh_server.device(python=f"WORD='a b' {prefix}"))
    code = "import os; print(os.environ['WORD'])"
    assert transport.run(["-c", code], timeout=30).stdout == b"a b\n"
    transport.close()


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


def test_close_unblocks_a_reader_in_another_thread(transport):
    stream = transport.open(["-c", ECHO])
    read = []
    reader = threading.Thread(target=lambda: read.append(stream.read(10)))
    reader.start()
    stream.close()
    reader.join(10)
    assert read == [b""]


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

"""The relay between real sockets, and before a real sshd."""

import socket
import socketserver
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager

import pytest
from ssh_servers import SshServer

from edgeflare.devices import connect
from edgeflare.errors import DeviceError, UsageError
from edgeflare_lab.testing import Relay

DATA = bytes(range(256)) * 2000
PATIENCE_S = 60


class Echo(socketserver.BaseRequestHandler):
    """Says what it hears, and at the end goodbye."""

    def handle(self) -> None:
        try:
            while data := self.request.recv(65536):
                self.request.sendall(data)
            self.request.sendall(b"bye")
        except ConnectionError:
            self.server.resets.set()  # type: ignore[attr-defined]


class EchoServer(socketserver.ThreadingTCPServer):
    """`resets` is set when a connection was reset."""

    daemon_threads = True

    def __init__(self) -> None:
        self.resets = threading.Event()
        super().__init__(("127.0.0.1", 0), Echo)

    @property
    def port(self) -> int:
        return int(self.server_address[1])


@pytest.fixture
def server() -> Iterator[EchoServer]:
    with EchoServer() as running:
        thread = threading.Thread(target=running.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield running
        running.shutdown()
        thread.join()


@contextmanager
def client_of(relay: Relay) -> Iterator[socket.socket]:
    with socket.create_connection((relay.host, relay.port), timeout=PATIENCE_S) as client:
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        yield client


def heard(client: socket.socket, count: int) -> bytes:
    data = b""
    while len(data) < count and (piece := client.recv(count - len(data))):
        data += piece
    return data


def said(client: socket.socket, data: bytes) -> bytes:
    """Say it and return the echo."""
    sender = threading.Thread(target=client.sendall, args=(data,))
    sender.start()
    echo = heard(client, len(data))
    sender.join()
    return echo


def nothing_comes(client: socket.socket, seconds: float = 0.3) -> bool:
    """True where the connection stays up and silent for so long."""
    client.settimeout(seconds)
    try:
        client.recv(1)
    except TimeoutError:
        return True
    finally:
        client.settimeout(PATIENCE_S)
    return False


def test_all_bytes_come_in_order_and_ends_come_after_them(server: EchoServer) -> None:
    with Relay("127.0.0.1", server.port, to_server_s=0.01) as relay, client_of(relay) as client:
        assert said(client, DATA) == DATA
        client.sendall(b"last words")
        client.shutdown(socket.SHUT_WR)
        assert heard(client, 1000) == b"last wordsbye"


@pytest.mark.parametrize("delays", [(0.2, 0.0), (0.0, 0.2), (0.1, 0.1)])
def test_every_message_takes_its_delay(server: EchoServer, delays: tuple[float, float]) -> None:
    there, back = delays
    with (
        Relay("127.0.0.1", server.port, to_server_s=there, to_client_s=back) as relay,
        client_of(relay) as client,
    ):
        for _ in range(2):
            began = time.monotonic()
            assert said(client, b"hello") == b"hello"
            assert time.monotonic() - began >= 0.2


def test_delayed_messages_travel_together(server: EchoServer) -> None:
    with Relay("127.0.0.1", server.port, to_server_s=1.0) as relay, client_of(relay) as client:
        began = time.monotonic()
        for n in range(100):
            client.sendall(b"%02d" % n)
            time.sleep(0.001)
        assert heard(client, 200) == b"".join(b"%02d" % n for n in range(100))
        assert time.monotonic() - began < 50  # one after the other they would take 100 s


def test_a_rate_bounds_what_passes(server: EchoServer) -> None:
    with Relay("127.0.0.1", server.port, bytes_per_s=100_000) as relay, client_of(relay) as client:
        began = time.monotonic()
        assert said(client, DATA[:50_000]) == DATA[:50_000]
        assert time.monotonic() - began >= 0.5


def test_a_cut_resets_and_refuses_until_it_is_mended(server: EchoServer) -> None:
    with Relay("127.0.0.1", server.port) as relay, client_of(relay) as client:
        port = relay.port
        assert said(client, b"hello") == b"hello"
        relay.cut()
        with pytest.raises(ConnectionResetError):
            client.recv(1)
        assert server.resets.wait(PATIENCE_S)
        for _ in range(2):
            with pytest.raises(ConnectionRefusedError), client_of(relay):
                pass
        relay.cut()
        relay.mend()
        assert relay.port == port
        with client_of(relay) as again:
            assert said(again, b"hello") == b"hello"


def test_silence_swallows_bytes_and_keeps_connections_up(server: EchoServer) -> None:
    with Relay("127.0.0.1", server.port) as relay, client_of(relay) as idle:
        assert said(idle, b"one") == b"one"
        with client_of(relay) as client:
            assert said(client, b"hello") == b"hello"
            relay.silence()
            client.sendall(b"is anybody there?")
            assert nothing_comes(client)
            with client_of(relay) as late:
                assert nothing_comes(late)
                relay.mend()
                for one in (client, late):
                    with pytest.raises(ConnectionResetError):
                        one.recv(1)
        assert server.resets.wait(PATIENCE_S)
        assert said(idle, b"two") == b"two"  # it lost nothing
        with client_of(relay) as again:
            assert said(again, b"hello") == b"hello"


def test_silence_swallows_what_is_under_way(server: EchoServer) -> None:
    with Relay("127.0.0.1", server.port, to_server_s=1.0) as relay, client_of(relay) as client:
        assert said(client, b"hello") == b"hello"
        client.sendall(b"lost")
        time.sleep(0.05)
        relay.silence()
        assert nothing_comes(client, 1.2)
        assert not server.resets.is_set()
        relay.mend()
        with pytest.raises(ConnectionResetError):
            client.recv(1)


def test_a_reset_of_one_end_reaches_the_other(server: EchoServer) -> None:
    with Relay("127.0.0.1", server.port, to_server_s=0.05) as relay, client_of(relay) as client:
        assert said(client, b"hello") == b"hello"
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        client.close()
        assert server.resets.wait(PATIENCE_S)


def test_no_server_behind_it_is_a_reset() -> None:
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        with (
            Relay("127.0.0.1", nobody.getsockname()[1]) as relay,
            pytest.raises(ConnectionResetError),  # as it connects, or by the first read
            client_of(relay) as client,
        ):
            client.recv(1)


def test_a_relay_ends_and_begins_again(server: EchoServer) -> None:
    relay = Relay("127.0.0.1", server.port)
    with pytest.raises(UsageError, match="not run"):
        relay.cut()
    for _ in range(2):
        with relay, client_of(relay) as client:
            assert said(client, b"hello") == b"hello"
            with pytest.raises(UsageError, match="runs already"):
                relay.start()
            relay.close()
            with pytest.raises(ConnectionResetError):
                client.recv(1)
    with pytest.raises(UsageError, match="not run"):
        _ = relay.port


@pytest.mark.parametrize("wrong", [{"to_server_s": -1}, {"to_client_s": -1}, {"bytes_per_s": 0}])
def test_impossible_ways_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(UsageError, match="relay's"):
        Relay("127.0.0.1", 1, **wrong)


ECHO_LINES = "import sys\nfor line in sys.stdin: print(line.upper(), end='', flush=True)"


@pytest.mark.sshd
def test_a_cable_before_a_real_sshd(openssh_server: SshServer) -> None:
    with Relay("127.0.0.1", openssh_server.port, to_server_s=0.01, to_client_s=0.01) as relay:
        host_key = openssh_server.known_hosts.read_text().split("]:", 1)[1].split(" ", 1)[1]
        known_hosts = openssh_server.folder / "known_through_relay"
        known_hosts.write_text(f"[127.0.0.1]:{relay.port} {host_key.splitlines()[0]}\n")
        device = openssh_server.device(port=relay.port, known_hosts=known_hosts)
        for end in (relay.cut, relay.silence):
            with (
                closing(connect(device)) as transport,
                closing(transport.open(["-c", ECHO_LINES])) as stream,
            ):
                stream.write([b"hello\n"])
                assert stream.read(100) == b"HELLO\n"
                end()
                if end == relay.cut:
                    assert stream.read(100) == b""
                    with pytest.raises(DeviceError):
                        connect(device)
                else:
                    stream.write([b"is anybody there?\n"])
                    assert stream.exit_status(0.3) is None
                relay.mend()
                assert stream.read(100) == b""

"""Every fault's effect on a plain program behind a real transport."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, suppress
from pathlib import Path

import pytest
from ssh_servers import SshServer

from edgeflare.devices import LOCAL, Device, Stream, Transport, connect
from edgeflare.errors import UnreachableError
from edgeflare_lab.testing import Fault, FaultPlan, connecting

ECHO = """
import os
while True:
    data = os.read(0, 65536)
    if not data:
        break
    os.write(1, data)
os.write(1, b"bye")
"""
"""Says what it hears; at the end of its stdin, goodbye."""

GREETER = 'import os\nos.write(1, b\'{"pid": %d, "more": 1}\' % os.getpid())\n' + ECHO
GREETING = b'"more": 1}'
SPOKEN = b"the quick brown fox"

Opener = Callable[..., Stream]


@pytest.fixture
def opened() -> Iterator[Opener]:
    """Opens a program through a plan; it is closed after the test."""
    with ExitStack() as stack:

        def make(plan: FaultPlan, program: str = ECHO, device: Device = LOCAL) -> Stream:
            transport = stack.enter_context(closing(plan.wrap(connect(device))))
            return stack.enter_context(closing(transport.open(["-c", program])))

        yield make


def heard(stream: Stream, count: int) -> bytes:
    """Return so many bytes, or all until the end."""
    data = b""
    while len(data) < count and (piece := stream.read(count - len(data))):
        data += piece
    return data


def echoed(stream: Stream, count: int = len(SPOKEN)) -> bytes:
    stream.write([SPOKEN[:4], memoryview(SPOKEN)[4:]])
    return heard(stream, count)


def greeted(stream: Stream) -> None:
    """Wait for the greeting."""
    greeting = b""
    while not greeting.endswith(GREETING):
        piece = stream.read(1)
        assert piece
        greeting += piece


@pytest.mark.parametrize("direction", ["to device", "from device"])
def test_faults_that_change_bytes(opened: Opener, direction: str) -> None:
    for kind, count, expected in [
        ("drop", 6, b"the brown fox"),
        ("corrupt", 1, b"the Quick brown fox"),
        ("duplicate", 6, b"the quick quick brown fox"),
        ("duplicate", 0, SPOKEN + SPOKEN),
    ]:
        fault = Fault(kind, 0, direction, 4, count=count, mask=0x20)  # type: ignore[arg-type]
        plan = FaultPlan.of([fault])
        stream = opened(plan)
        assert echoed(stream, len(expected)) == expected
        assert plan.fired == (fault,)
        assert echoed(stream) == SPOKEN  # and everything passes again


def test_changed_bytes_are_read_in_any_pieces(opened: Opener) -> None:
    lost = Fault("drop", at=0, count=len(SPOKEN))
    stream = opened(FaultPlan.of([lost, Fault("duplicate", at=len(SPOKEN) + 4, count=6)]))
    stream.write([SPOKEN])
    for _ in range(2):  # as separate pieces, as far as the system lets them be
        time.sleep(0.05)
        stream.write([SPOKEN])
    expected = b"the quick quick brown fox" + SPOKEN
    assert b"".join(stream.read(1) for _ in expected) == expected


@pytest.mark.parametrize("direction", ["to device", "from device"])
def test_a_delay_changes_nothing_but_the_time(opened: Opener, direction: str) -> None:
    stream = opened(FaultPlan.of([Fault("delay", 0, direction, 4, seconds=0.3)]))  # type: ignore[arg-type]
    began = time.monotonic()
    assert echoed(stream) == SPOKEN
    assert time.monotonic() - began >= 0.3


def test_a_delay_ends_with_the_stream(opened: Opener) -> None:
    stream = opened(FaultPlan.of([Fault("delay", seconds=3600)]))
    reader = threading.Thread(target=echoed, args=(stream,))
    reader.start()
    stream.close()
    reader.join(30)
    assert not reader.is_alive()


def test_input_that_ends_early(opened: Opener) -> None:
    stream = opened(FaultPlan.of([Fault("truncate", 0, "to device", 9)]))
    echo: list[bytes] = []
    reader = threading.Thread(target=lambda: echo.append(heard(stream, 100)))
    reader.start()
    with pytest.raises(UnreachableError, match="local was"):
        stream.write([SPOKEN])
    reader.join()
    assert echo[0].startswith(b"the quick")
    assert b"the quickbye".startswith(echo[0])
    with pytest.raises(UnreachableError):
        stream.write([b"more"])


def test_output_that_ends_early(opened: Opener) -> None:
    stream = opened(FaultPlan.of([Fault("truncate", 0, "from device", 9)]))
    assert echoed(stream, 100) == b"the quick"
    assert stream.read(1) == b""
    assert stream.exit_status(60) is None
    stream.write([b"the program still listens"])


@pytest.mark.parametrize("at", [0, 9])
def test_a_cut_ends_both_directions(opened: Opener, at: int) -> None:
    stream = opened(FaultPlan.of([Fault("cut", 0, "from device", at)]))
    assert echoed(stream, 100) == SPOKEN[:at]
    with pytest.raises(UnreachableError):
        stream.write([SPOKEN])
    assert stream.exit_status(60) is None

    stream = opened(FaultPlan.of([Fault("cut", 0, "to device", at)]))
    with pytest.raises(UnreachableError):
        stream.write([SPOKEN])
    assert stream.read(100) == b""


@pytest.mark.parametrize("at", [0, 60])
def test_a_kill_ends_the_program(opened: Opener, at: int) -> None:
    plan = FaultPlan.of([Fault("kill", 0, "from device", at)])
    stream = opened(plan, GREETER)
    stream.write([b"." * 60])
    assert GREETING[:at] in heard(stream, 1000)
    assert stream.exit_status(60) == -9
    assert plan.fired == plan.faults


def test_a_kill_from_the_side_of_the_host(opened: Opener) -> None:
    plan = FaultPlan.of([Fault("kill", 0, "to device", 3)])
    stream = opened(plan, GREETER)
    greeted(stream)
    with suppress(UnreachableError):
        stream.write([SPOKEN])
    assert stream.exit_status(60) == -9
    assert plan.fired == plan.faults


def test_a_kill_waits_for_the_process_id(opened: Opener) -> None:
    plan = FaultPlan.of([Fault("kill")])
    stream = opened(plan, "import os\nos.write(1, b'wait')\nos.read(0, 1)\n" + GREETER)
    assert heard(stream, 4) == b"wait"
    assert plan.fired == ()
    stream.write([b"."])
    heard(stream, 1000)
    assert stream.exit_status(60) == -9
    assert plan.fired == plan.faults


def test_only_the_program_itself_is_killed(opened: Opener) -> None:
    victim = connect(LOCAL).open(["-c", ECHO + "# another program"])
    impostor = GREETER.replace("os.getpid()", str(victim._process.pid))  # type: ignore[attr-defined]
    plan = FaultPlan.of([Fault("kill")])
    with closing(victim):
        greeted(opened(plan, impostor))
        assert echoed(victim) == SPOKEN
    assert plan.fired == ()


def test_a_program_that_reports_no_process_id_lives_on(opened: Opener) -> None:
    plan = FaultPlan.of([Fault("kill", at=3)])
    stream = opened(plan)
    assert [echoed(stream), echoed(stream)] == [SPOKEN, SPOKEN]
    assert plan.fired == ()


def test_large_messages_pass(opened: Opener) -> None:
    plan = FaultPlan.of(
        [Fault("corrupt", 0, "to device", 300_000, mask=1), Fault("drop", at=700_000, count=7)]
    )
    stream = opened(plan)
    data = bytes(range(256)) * 4000
    writer = threading.Thread(target=stream.write, args=([data],))
    writer.start()
    expected = bytearray(data)
    expected[300_000] ^= 1
    del expected[700_000:700_007]
    assert heard(stream, len(expected)) == bytes(expected)
    writer.join()


def test_the_plans_place_outlives_connections() -> None:
    plan = FaultPlan.of(
        [
            Fault("corrupt", 0, "to device", 0, mask=0x20),
            Fault("refuse", 1, count=2),
            Fault("cut", 1, "from device", 3),
        ]
    )
    heards: list[bytes | str] = []
    for _ in range(5):
        with closing(plan.wrap(connect(LOCAL))) as transport:
            try:
                with closing(transport.open(["-c", ECHO])) as stream:
                    heards.append(echoed(stream))
            except UnreachableError as error:
                heards.append(str(error))
    refused = "local refused the connection, as its fault plan says"
    assert heards == [b"The quick brown fox", refused, refused, b"the", SPOKEN]
    assert plan.fired == plan.faults


def test_connecting_knows_the_devices_apart() -> None:
    faulty, sound = (Device(name=name, transport="local") for name in ("pi4", "pi5"))
    plan = FaultPlan.of([Fault("refuse"), Fault("corrupt", mask=0x20)])
    asked: list[Device] = []

    def reach(device: Device, ask: Callable[[str], str | None] | None = None) -> Transport:
        asked.append(device)
        return connect(device, ask)

    way = connecting({"pi4": plan}, reach)
    with pytest.raises(UnreachableError, match="pi4 refused"):
        way(faulty, None)
    assert asked == []
    for device, expected in ((sound, SPOKEN), (faulty, b"The quick brown fox")):
        with closing(way(device, None)) as transport, closing(transport.open(["-c", ECHO])) as one:
            assert transport.name == device.name
            assert echoed(one) == expected


def test_files_and_commands_pass(tmp_path: Path) -> None:
    transport = FaultPlan.of([Fault("cut")]).wrap(connect(LOCAL))
    (tmp_path / "a").write_bytes(SPOKEN)
    transport.put(tmp_path / "a", str(tmp_path / "b"))
    done = transport.run(["-c", "import sys; print(sys.stdin.read())"], b"hello", timeout=60)
    assert (done.stdout, (tmp_path / "b").read_bytes()) == (b"hello\n", SPOKEN)


@pytest.mark.sshd
def test_faults_over_ssh(opened: Opener, openssh_server: SshServer) -> None:
    device = openssh_server.device()
    cut = opened(FaultPlan.of([Fault("cut", 0, "from device", 9)]), device=device)
    assert echoed(cut, 100) == SPOKEN[:9]
    plan = FaultPlan.of([Fault("kill", at=60), Fault("corrupt", at=0, mask=1)])
    killed = opened(plan, GREETER, device)
    killed.write([b"." * 60])
    assert heard(killed, 1000)[:1] == b"z"
    assert killed.exit_status(60) != 0
    assert set(plan.fired) == set(plan.faults)

"""Places of a real labgrid coordinator: acquired, waited for, lost and given back."""

import json
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from command import edgeflare, must_run
from labgrid_lab import OTHER, Lab, start_lab
from ssh_servers import AsyncsshOptions, start_asyncssh

from edgeflare.devices import Device, LabgridPlace, connect, stop_waiting_for_places
from edgeflare.devices.transports.base import Login
from edgeflare.errors import (
    AuthenticationError,
    DeviceBusyError,
    DeviceError,
    InventoryError,
    UnreachableError,
)
from edgeflare_lab.labgrid import place as places
from edgeflare_lab.labgrid.place import HeldPlace
from edgeflare_lab.testing import Relay

pytestmark = [pytest.mark.extended, pytest.mark.usefixtures("own_home")]


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """A lab whose places are SSH servers of this process; one wants a password."""
    with (
        start_asyncssh() as first,
        start_asyncssh(AsyncsshOptions(password="s3cret", keys=False)) as locked,
        start_lab(
            tmp_path_factory.mktemp("lab"), {"pi4": first, "locked": locked}, {"locked": "s3cret"}
        ) as lab,
    ):
        yield lab


@pytest.fixture(autouse=True)
def _no_memory() -> Iterator[None]:
    places._taken_away.clear()
    yield
    places._taken_away.clear()


def wanted(lab: Lab, place: str = "pi4", **more: object) -> LabgridPlace:
    fields = {"coordinator": lab.coordinator, "python": lab.python, **more}
    return LabgridPlace.model_validate({"place": place, **fields})


def device(lab: Lab, place: str = "pi4", **more: object) -> Device:
    place_of = wanted(lab, place, **more)
    stated = {"name": "board", "host": None, "port": None, "user": None, "labgrid": place_of}
    return lab.places[place].device(**stated)


def until(condition: Callable[[], object]) -> None:
    for _ in range(600):
        if condition():
            return
        time.sleep(0.05)
    pytest.fail("it never happened")


def connections(port: int) -> int:
    """Return how many connections to a port of this machine there are."""
    files = (Path("/proc/net/tcp"), Path("/proc/net/tcp6"))
    rows = [row.split() for file in files for row in file.read_text().splitlines()]
    return sum(row[2].endswith(f":{port:04X}") and row[3] == "01" for row in rows)


def test_a_transport_holds_its_place_until_it_is_closed(lab: Lab) -> None:
    transport = connect(device(lab))
    held = lab.holder("pi4")
    done = transport.run(["-c", "print(6 * 7)"], timeout=30)
    transport.close()
    transport.close()
    assert done.stdout.split() == [b"42"]
    assert held is not None
    assert lab.holder("pi4") is None


def test_the_password_of_the_network_service_is_given(lab: Lab) -> None:
    transport = connect(device(lab, "locked"))
    login = getattr(transport, "login", None)
    transport.close()
    assert isinstance(login, Login)
    assert login.by == "password"
    asked: list[str] = []
    server = lab.places["locked"]
    stated = device(lab, "locked").model_copy(update={"host": server.host, "port": server.port})
    with pytest.raises(AuthenticationError):
        connect(stated, ask=asked.append)  # another host may be meant
    assert len(asked) == 1


def test_what_is_stated_wins_over_the_network_service(lab: Lab) -> None:
    server = lab.places["pi4"]
    with pytest.raises(UnreachableError, match=f":{server.port + 1}"):
        connect(device(lab).model_copy(update={"port": server.port + 1}))
    assert lab.holder("pi4") is None
    there = device(lab).model_copy(update={"host": "localhost"})
    transport = connect(there.model_copy(update={"port": server.port, "user": "somebody"}))
    login = getattr(transport, "login", None)
    transport.close()
    assert (login.user, login.address) == ("somebody", f"localhost:{server.port}")


def test_a_place_of_another_is_busy_at_once(lab: Lab) -> None:
    lab.client("-p", "pi4", "acquire")
    try:
        with pytest.raises(DeviceBusyError, match=f"lab/{OTHER}"):
            connect(device(lab))
        with pytest.raises(DeviceBusyError, match=r"within 0.2"):
            connect(device(lab, wait_s=0.2))
        assert lab.reservations() == ""
    finally:
        lab.client("-p", "pi4", "release")


def test_a_place_that_another_has_reserved_is_busy_too(lab: Lab) -> None:
    lab.client("reserve", "name=pi4")
    token = lab.reservations().split("'")[1]
    try:
        with pytest.raises(DeviceBusyError, match="lab/anna"):
            connect(device(lab))
    finally:
        lab.client("cancel-reservation", token)


def test_a_place_of_ones_own_says_so(lab: Lab) -> None:
    first = HeldPlace.acquire(wanted(lab), "a")
    try:
        with pytest.raises(DeviceBusyError, match="is you"):
            HeldPlace.acquire(wanted(lab), "b")
    finally:
        first.release()


def test_of_two_that_wait_the_higher_priority_gets_it_first(lab: Lab) -> None:
    lab.client("-p", "pi4", "acquire")
    order: list[str] = []

    def use(name: str, priority: float) -> None:
        place = HeldPlace.acquire(wanted(lab, wait_s=60, priority=priority), name)
        order.append(name)
        place.release()

    with ThreadPoolExecutor(2) as pool:
        low = pool.submit(use, "low", 1)
        until(lambda: lab.reservations().count("token") == 1)
        high = pool.submit(use, "high", 2.5)
        until(lambda: lab.reservations().count("state: waiting") == 2)
        lab.client("-p", "pi4", "release")
        low.result(30)
        high.result(30)
    assert order == ["high", "low"]


def test_waiting_can_be_ended(lab: Lab) -> None:
    lab.client("-p", "pi4", "acquire")
    try:
        with ThreadPoolExecutor(1) as pool:
            waiter = pool.submit(connect, device(lab, wait_s=60))
            until(lab.reservations)
            stop_waiting_for_places()
            with pytest.raises(DeviceError, match="not waited"):
                waiter.result(30)
        assert lab.reservations() == ""
    finally:
        lab.client("-p", "pi4", "release")


def test_what_is_under_way_ends_when_the_place_is_taken_away(lab: Lab) -> None:
    transport = connect(device(lab))
    stream = transport.open(["-c", "import sys; sys.stdin.read()"])
    answers: list[object] = []

    def read() -> None:
        try:
            answers.append(stream.read(100))
        except UnreachableError as error:
            answers.append(str(error))

    reader = threading.Thread(target=read)
    reader.start()
    lab.client("-p", "pi4", "release", "--kick")
    reader.join(30)
    why = "board: labgrid place pi4 was taken away: another client released it"
    assert answers == [why]
    with pytest.raises(UnreachableError, match="taken away"):
        transport.run(["-c", "1"], timeout=30)
    stream.close()
    transport.close()
    with pytest.raises(DeviceBusyError, match="away; EdgeFlare"):
        connect(device(lab))


def test_a_place_that_is_taken_and_given_back_at_once_is_lost_all_the_same(lab: Lab) -> None:
    held = HeldPlace.acquire(wanted(lab), "board")
    try:
        user = lab.holder("pi4") or ""
        lab.client("-p", "pi4", "release", "--kick")
        until(lambda: held.lost)
        places._taken_away.clear()
        again = HeldPlace.acquire(wanted(lab), "board")
        held.release()  # releases nothing of the other's
        assert lab.holder("pi4") == user
        again.release()
    finally:
        held.release()


@pytest.mark.parametrize("victim", ["exporter", "coordinator"])
def test_a_lab_that_is_restarted(lab: Lab, victim: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A coordinator forgets who has its places; without an exporter the place stays for a while."""
    monkeypatch.setattr(places, "GRACE_S", {"exporter": 2.0, "coordinator": 60.0}[victim])
    held = HeldPlace.acquire(wanted(lab), "board")
    try:
        lab.kill(victim)
        if victim == "coordinator":
            lab.start_coordinator()
        until(lambda: held.lost)
        expected = {"exporter": "has had no NetworkService for 2.0 s", "coordinator": "forgot it"}
        assert expected[victim] in str(held.lost)
    finally:
        held.release()
        if victim == "exporter":
            with pytest.raises(UnreachableError, match="NetworkService"):
                HeldPlace.acquire(wanted(lab), "board")
        lab.start_exporter()
    assert lab.holder("pi4") is None
    HeldPlace.acquire(wanted(lab), "board").release()


def test_a_coordinator_that_is_gone_for_long_is_a_loss(lab, monkeypatch) -> None:
    monkeypatch.setattr(places, "GRACE_S", 1.0)
    held = HeldPlace.acquire(wanted(lab), "board")
    lab.kill("coordinator")
    try:
        until(lambda: held.lost)
        assert f"coordinator {lab.coordinator}" in str(held.lost)
        with pytest.raises(UnreachableError, match=f"{lab.coordinator}; start"):
            HeldPlace.acquire(wanted(lab), "board")
    finally:
        lab.start_coordinator()
        lab.start_exporter()
        held.release()


@pytest.mark.parametrize("seconds", [0.5, 60.0])
def test_a_coordinator_that_is_out_of_reach_for_a_while(lab, seconds, monkeypatch) -> None:
    """A short time is bridged; after a longer one the place is given back when it can be."""
    monkeypatch.setattr(places, "GRACE_S", seconds)
    monkeypatch.setattr(places, "_RELEASE_S", 0.5)
    with Relay("127.0.0.1", lab.port) as relay:
        reached = {"coordinator": f"{relay.host}:{relay.port}"}
        held = HeldPlace.acquire(wanted(lab, **reached), "board")
        assert connections(relay.port)
        relay.cut()
        if seconds == 60:
            until(lambda: not connections(relay.port))
            relay.mend()
            until(lambda: connections(relay.port))
            assert lab.holder("pi4") is not None
            assert held.lost is None
            held.release()
        else:
            until(lambda: held.lost)
            held.release()
            assert lab.holder("pi4") is not None
            relay.mend()
        until(lambda: lab.holder("pi4") is None)


def test_places_that_there_are_not(lab: Lab) -> None:
    with pytest.raises(InventoryError, match="locked, pi4"):
        HeldPlace.acquire(wanted(lab, "pi6"), "board")
    with pytest.raises(UnreachableError, match="NetworkService"):
        HeldPlace.acquire(wanted(lab, "bare"), "board")
    with pytest.raises(InventoryError, match="address is"):
        HeldPlace.acquire(wanted(lab, coordinator="127.0.0.1:port"), "board")


def test_the_commands_for_devices_take_places(lab: Lab, tmp_path: Path) -> None:
    (tmp_path / "devices.toml").write_text(
        lab.table("pi4").replace(
            "[devices.pi4]", "[devices.pi4]\npython = " + json.dumps(sys.executable)
        )
    )
    listed = edgeflare("devices", "list", home=tmp_path)
    assert "labgrid place pi4" in listed.out
    checked = must_run("devices", "check", "pi4", home=tmp_path)
    assert "labgrid place pi4" in checked.out
    trusted = edgeflare("devices", "trust", "pi4", home=tmp_path)
    assert "trusted already" in trusted.err
    assert lab.holder("pi4") is None
    lab.client("-p", "pi4", "acquire")
    try:
        busy = edgeflare("devices", "status", "pi4", home=tmp_path)
        assert "labgrid place pi4" in busy.both
        assert busy.code == 3
    finally:
        lab.client("-p", "pi4", "release")

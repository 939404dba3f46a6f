"""What is said of labgrid places, and which Python has labgrid; without labgrid."""

import json
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from edgeflare._internal import plugins
from edgeflare.devices import (
    LOCAL,
    Device,
    LabgridPlace,
    PlaceWaits,
    connect,
    held_place,
    resolve_device,
    stop_waiting_for_places,
)
from edgeflare.errors import (
    DeviceBusyError,
    DeviceError,
    InventoryError,
    UnreachableError,
    UsageError,
)
from edgeflare_lab.labgrid.place import HeldPlace, NetworkService, failure, find_python, loss

PLACE = LabgridPlace(place="pi4")


def script(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)
    return path


def on(path: Path, name: str = "board") -> Device:
    return Device(name=name, labgrid=LabgridPlace(place="pi4", python=path))


def test_the_stated_python_wins(tmp_path: Path) -> None:
    assert find_python(LabgridPlace(place="pi4", python=tmp_path / "p")) == str(tmp_path / "p")


@pytest.mark.parametrize(
    ("first_line", "expected"),
    [
        ("#!/opt/lg/bin/python3.11", "/opt/lg/bin/python3.11"),
        ("#!/bin/sh", "{bin}/python3"),
        ("#!/usr/bin/env python3", "{bin}/python3"),
    ],
)
def test_the_client_on_path_knows_its_python(tmp_path, monkeypatch, first_line, expected) -> None:
    client = script(tmp_path / "lg" / "bin" / "labgrid-client", f"{first_line}\n")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "labgrid-client").symlink_to(client)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    assert find_python(PLACE) == expected.format(bin=client.parent)


def test_without_labgrid_it_says_how_to_install_it(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(InventoryError, match="pi4; install"):
        connect(Device(name="board", labgrid=PLACE))
    with pytest.raises(InventoryError, match="Python /no/python"):
        connect(on(Path("/no/python")))


def test_a_client_that_crashes_is_quoted(tmp_path: Path) -> None:
    crash = "#!/bin/sh\necho 'Traceback' >&2; echo 'ValueError: so it is' >&2; exit 1\n"
    with pytest.raises(DeviceError, match="pi4: labgrid's"):
        connect(on(script(tmp_path / "python", crash)))
    with pytest.raises(DeviceError, match="labgrid's client"):
        connect(on(script(tmp_path / "silent", "#!/bin/sh\nexit 0\n")))


SERVICE: dict[str, Any] = {
    "name": "n", "available": True, "proxy": False, "address": "h", "port": 1, "username": "root",
    "password": None,
}  # fmt: skip
AWAY = SERVICE | {"available": False}


def holding(path: Path, *services: dict[str, Any]) -> Path:
    """Write a client that has a place with these services."""
    event = json.dumps({"event": "acquired", "services": services})
    return script(path, f"#!/bin/sh\necho '{event}'\ncat >/dev/null\n")


@pytest.mark.parametrize(
    ("services", "kind", "sentence"),
    [
        ([SERVICE | {"proxy": True}], InventoryError, "labgrid's; give"),
        ([SERVICE, SERVICE], InventoryError, "several NetworkServices"),
        ([AWAY], UnreachableError, "NetworkService"),
        ([SERVICE | {"address": "-oProxyCommand=x"}], InventoryError, "NetworkService"),
    ],
)
def test_services_that_can_not_be_used(tmp_path, services, kind, sentence) -> None:
    with pytest.raises(kind, match=sentence):
        connect(on(holding(tmp_path / "python", *services)))


def test_of_two_services_the_available_one_is_used(tmp_path: Path) -> None:
    services = [AWAY | {"password": "old"}, SERVICE | {"password": "s3cret"}]
    wanted = LabgridPlace(place="pi4", python=holding(tmp_path / "python", *services))
    place = HeldPlace.acquire(wanted, "board")
    assert place.service() == NetworkService("h", 1, "root", "s3cret")
    place.release()


def test_a_python_without_labgrid() -> None:
    with pytest.raises(InventoryError, match="named 'labg"):
        connect(on(Path(sys.executable)))


@pytest.mark.parametrize(
    ("event", "kind", "sentence"),
    [
        (
            {"reason": "busy", "holder": "lab/anna", "reserved": False, "mine": False},
            DeviceBusyError,
            "lab/anna; take",
        ),
        (
            {"reason": "busy", "holder": "a/b", "reserved": True, "mine": False, "waited_s": 90},
            DeviceBusyError,
            "within 1.5",
        ),
        ({"reason": "no place", "known": []}, InventoryError, "coordinator c:1"),
        ({"reason": "no place", "known": list(map(str, range(30)))}, InventoryError, "18, 19"),
        ({"reason": "no service"}, UnreachableError, "NetworkService"),
        ({"reason": "unreachable"}, UnreachableError, "at c:1"),
        ({"reason": "gone", "detail": "why"}, UnreachableError, "c:1 was"),
        ({"reason": "no address", "detail": "why"}, InventoryError, "write HOST"),
        ({"reason": "old labgrid"}, InventoryError, "25.0; install"),
        ({"reason": "refused", "detail": "why"}, DeviceError, "acquired: why"),
    ],
)
def test_each_failure_is_one_sentence(event, kind, sentence) -> None:
    error = failure("x", {"coordinator": "c:1", "waited_s": 0, **event})
    assert type(error) is kind
    with pytest.raises(kind, match=sentence):
        raise error
    assert "\n" not in str(error)


@pytest.mark.parametrize(
    ("event", "sentence"),
    [
        ({"reason": "released"}, "was taken away: another client released it"),
        (
            {"reason": "released", "holder": "a/b\x1b[31m"},
            "was taken away: another client released it; a/b has it now",
        ),
        (
            {"reason": "restarted", "holder": "a/b"},
            "is no longer held: the coordinator forgot it, perhaps restarted; a/b has it now",
        ),
        ({"reason": "deleted"}, "was taken away: it was deleted at the coordinator"),
        (
            {"reason": "coordinator", "coordinator": "c:1"},
            "may be another's by now: the coordinator c:1 was not reached for 1.0 min",
        ),
        ({"reason": "service"}, "has had no NetworkService for 1.0 min: is its exporter down?"),
        ({"reason": "of a later version"}, "was lost"),
    ],
)
def test_each_loss_is_one_sentence(event: dict[str, Any], sentence: str) -> None:
    assert str(loss("board", event)) == f"board {sentence}"


def test_waits_of_one_block_end_together_and_no_others(tmp_path: Path) -> None:
    client = script(tmp_path / "python", "#!/bin/sh\ncat >/dev/null\n")  # waits for ever
    wanted = LabgridPlace(place="pi4", python=client, wait_s=600)
    with (
        PlaceWaits() as ended,
        PlaceWaits() as others,
        ThreadPoolExecutor(1, initializer=ended.use) as pool,
        ThreadPoolExecutor(1, initializer=others.use) as other_pool,
    ):
        stays = other_pool.submit(HeldPlace.acquire, wanted, "stays")
        under_way = pool.submit(HeldPlace.acquire, wanted, "first")
        ended.end()
        later = pool.submit(HeldPlace.acquire, wanted, "later")  # none begins any more
        for one in (under_way, later):
            with pytest.raises(DeviceError, match="not waited"):
                one.result(30)
        assert not stays.done()
        stop_waiting_for_places()
        with pytest.raises(DeviceError, match="not waited"):
            stays.result(30)


def test_labgrid_that_cannot_be_loaded_stops_its_own_boards_alone(monkeypatch, tmp_path) -> None:
    plugins.load.cache_clear()
    monkeypatch.setitem(sys.modules, "edgeflare_lab.labgrid.transport", None)
    for use in (connect, lambda device: held_place(device).__enter__()):
        with pytest.raises(UsageError, match=r"'labgrid' of.*loaded"):
            use(on(tmp_path / "python"))
    connect(LOCAL).close()


def test_the_transport_labgrid_is_for_devices_with_a_place() -> None:
    with pytest.raises(InventoryError, match="write `labgrid"):
        connect(resolve_device("labgrid://pi4", {}))

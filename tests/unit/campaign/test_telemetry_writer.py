"""The devices' minutes reach the store: each as it is over, the rest at the end, whatever fails between."""

import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from edgeflare.campaign import fleet
from edgeflare.campaign.fleet import TelemetryWriter
from edgeflare.devices import DeviceMinute
from edgeflare.devices.telemetry import Minutes
from edgeflare.errors import DiskFullError, StoreError
from edgeflare.store import Store


class Session:
    """As much of a reconnecting session as is needed."""

    def __init__(self, name: str) -> None:
        self.now = 0.0
        self.minutes = Minutes(name, lambda: self.now)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.create(tmp_path / "campaign", {}) as created:
        yield created


def telemetry_writer(store: Store, *sessions: Session) -> TelemetryWriter:
    fleet: Any = sessions
    return TelemetryWriter(fleet, store)


def failing(store: Store, patch: pytest.MonkeyPatch, times: int) -> list[int]:
    """Have the store refuse so many times; return a list that says how many minutes came each time."""
    add, came = store.add_telemetry, []

    def add_telemetry(minutes: Sequence[DeviceMinute]) -> None:
        came.append(len(minutes))
        if len(came) <= times:
            raise DiskFullError("no space is left")
        add(minutes)

    patch.setattr(store, "add_telemetry", add_telemetry)
    return came


def test_at_the_end_the_rest_of_every_device_is_written(store: Store) -> None:
    pi, jetson = Session("pi4"), Session("jetson")
    with telemetry_writer(store, pi, jetson):
        pi.minutes.record_reply([0.1])
        pi.now = 60.0
        pi.minutes.record_reply([0.1, 0.2])
        jetson.minutes.record_reply([0.1])
        assert list(store.telemetry()) == []
    kept = [(one.device, one.minute.minute, one.queries) for one in store.telemetry()]
    assert kept == [("pi4", 0, 1), ("pi4", 1, 2), ("jetson", 0, 1)]


def test_an_interrupted_campaign_keeps_them_too(store: Store) -> None:
    pi = Session("pi4")
    pi.minutes.record_reply([0.1])
    with pytest.raises(KeyboardInterrupt), telemetry_writer(store, pi):
        raise KeyboardInterrupt
    assert [one.queries for one in store.telemetry()] == [1]


def test_a_minute_that_is_over_is_written_while_the_campaign_runs(store, monkeypatch) -> None:
    monkeypatch.setattr(fleet, "MINUTE_S", 0.02)
    monkeypatch.setattr(fleet, "_DELAY_S", 0.0)
    came = failing(store, monkeypatch, times=2)
    pi = Session("pi4")
    pi.minutes.record_reply([0.1])
    pi.now = 60.0
    pi.minutes.record_reply([0.2, 0.2])
    with telemetry_writer(store, pi):
        while not list(store.telemetry()):
            time.sleep(0.01)
        (first,) = store.telemetry()
    assert first.queries == 1
    assert came[:3] == [1, 1, 1]  # what the disk didn't take came again
    assert [one.queries for one in store.telemetry()] == [1, 2]


def test_a_disk_that_stays_full_is_reported_unless_another_error_is(store, monkeypatch) -> None:
    failing(store, monkeypatch, times=10)
    with pytest.raises(StoreError, match="no space"), telemetry_writer(store, Session("pi4")):
        pass
    with pytest.raises(ValueError, match="first"), telemetry_writer(store, Session("pi4")):
        raise ValueError("first")

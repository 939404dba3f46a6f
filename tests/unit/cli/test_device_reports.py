"""``devices status``, of devices of all sorts."""

import dataclasses
import json

import pytest
from shown_numbers import numbers

from edgeflare import Device
from edgeflare._internal.text import duration
from edgeflare.cli.display.devices import print_devices, print_reports
from edgeflare.devices import DeviceReport, LeaseHeld
from edgeflare.errors import HostKeyError

BUSY = DeviceReport(
    name="pi-4",
    agent="0.2, protocol 2",
    python="3.9.2",
    numpy="1.26.4",
    runtimes={"ai-edge-litert": "1.0.1", "onnxruntime": "1.17"},
    board="Raspberry Pi 4 [rev 1.4]",
    leases=(LeaseHeld("campaign night of ann@desk", "c1", 5400.0, False),),
    temperature_c=71.6,
    frequency_mhz=1500.0,
    throttled=True,
    memory_available_bytes=1_230_000_000,
    disk_free_bytes=9_870_000_000,
    load=1.25,
    round_trip_s=0.0042,
)
QUIET = dataclasses.replace(
    BUSY, name="box", board=None, runtimes={}, leases=(), temperature_c=None, frequency_mhz=None,
    throttled=None, memory_available_bytes=None, disk_free_bytes=None, load=None,
)  # fmt: skip
GONE = HostKeyError("pi-9: the host key is unknown; edgeflare devices trust pi-9 [shows it]")


@pytest.mark.parametrize("width", [60, 80, 120])
def test_what_each_device_reports(width, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", str(width))
    print_reports({"pi-4": BUSY, "box": QUIET, "pi-9": GONE}, False)
    shown = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    assert (
        numbers("\n".join(shown))
        == "4 1.5 4 1.4 3.9.2 1.26.4 1.0.1 1.17 72 1500 1.2 9.9 1.25 0.2 2 4.2 3.9.2 1.26.4 0.2 2 4.2 9 9 9"
    )


def test_as_json(capsys):
    print_reports({"pi-4": BUSY, "pi-9": GONE}, True)
    data = json.loads(capsys.readouterr().out)
    assert "campaign night" in data["pi-4"]["leases"][0]["about"]
    assert data["pi-4"]["throttled"] is True
    assert data["pi-9"] == {"error": str(GONE)}


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0, "0 s"), (0.0004, "0.4 ms"), (0.038, "38 ms"), (1.44, "1.4 s"), (59, "59 s"),
        (140, "2.3 min"), (3600, "1.0 h"), (2e5, "2.3 days"),
    ],
)  # fmt: skip
def test_durations(seconds, words):
    assert duration(seconds) == words


def test_addresses_of_an_inventory_are_never_broken(capsys, monkeypatch):
    host = "raspberrypi-4b.lab.example.org"
    devices = [
        Device(
            name="pi4", host=host, user="edgeflare", port=2222, python="/opt/python/bin/python3"
        ),
        Device(name="phone", transport="adb", serial="adb-R58M12345-abcdef._adb-tls-connect._tcp"),
    ]
    for width in (20, 80, 200):
        monkeypatch.setenv("COLUMNS", str(width))
        print_devices({one.name: one for one in devices}, as_json=False)
        shown = capsys.readouterr().out
        assert f"ssh://edgeflare@{host}:2222" in shown
        assert "adb://adb-R58M12345-abcdef._adb-tls-connect._tcp" in shown
    assert "/opt/python/bin/python3" in shown


def test_a_device_asked_for_its_status_says_more(capsys):
    report = DeviceReport(
        name="phone",
        agent="0.2, protocol 2",
        python="3.12",
        numpy="2.0",
        runtimes={},
        board=None,
        leases=(),
        temperature_c=41.0,
        frequency_mhz=None,
        throttled=True,
        memory_available_bytes=None,
        disk_free_bytes=None,
        load=None,
        round_trip_s=0.01,
        throttle_reasons=("thermal status light",),
        throttled_since_boot=("under-voltage", "throttled"),
        battery_percent=81.0,
        battery_charging=False,
        gpu_load=0.437,
        gpu_mhz=612.0,
    )
    print_reports({"phone": report}, False)
    shown = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    assert "temperature 41 °C" in "\n".join(shown)
    assert "busy, 612 MHz" in "\n".join(shown)
    assert "battery 81" in "\n".join(shown)
    assert "boot under-voltage, throttled" in "\n".join(shown)
    print_reports({"phone": report}, True)
    assert json.loads(capsys.readouterr().out)["phone"]["gpu_load"] == 0.437

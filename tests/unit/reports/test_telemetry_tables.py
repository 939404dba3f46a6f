"""The devices' latency, temperature and throttling during a campaign, as a table."""

import dataclasses
import re
from pathlib import Path

import pytest
from rich.console import Console
from stores import compared_campaign

from edgeflare import summarize
from edgeflare.analysis import EveryDevice, TelemetryFigures
from edgeflare.reports import print_document
from edgeflare.reports.devices import agreement_blocks, telemetry_table

PI_NIGHT = TelemetryFigures(
    device="pi4 [desk]",
    minutes=480,
    queries=1_000_000,
    latency_median_s=0.01012,
    latency_p99_s=0.0312,
    latency_max_s=2.5,
    rss_bytes=151_000_000,
    temperature_max_c=81.2,
    frequency_least_mhz=600.0,
    gpu_load=None,
    gpu_least_mhz=None,
    throttled_minutes=12,
    throttled_share=0.021,
    throttle_reasons=("under-voltage", "throttled"),
    battery_from=None,
    battery_to=None,
)
UNTHROTTLED = {"throttled_minutes": 0, "throttled_share": 0.0, "throttle_reasons": ()}
BATTERY = {"temperature_max_c": None, "battery_from": 90.0, "battery_to": 38.0}
PHONE = dataclasses.replace(PI_NIGHT, device="phone", **UNTHROTTLED, **BATTERY)


def printed(capsys: pytest.CaptureFixture[str], *devices: TelemetryFigures) -> list[list[str]]:
    print_document(telemetry_table(devices), Console(width=200))
    lines = capsys.readouterr().out.splitlines()[1:]
    return [re.split(r"\s{2,}", line.strip()) for line in lines if line.strip(" ─")]


def test_a_column_that_some_device_reports_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    heading, pi, phone = printed(capsys, PI_NIGHT, PHONE)
    assert heading == [
        "device", "minutes", "queries", "median ms", "99 % ms", "longest ms", "hottest", "lowest clock", "memory",
        "slowed down", "battery",
    ]  # fmt: skip
    assert pi == [
        "pi4 [desk]", "480", "1,000,000", "10.1", "31.2", "2500", "81 °C", "600 MHz", "151 MB",
        "12 minutes, 2.1 % of the readings: under-voltage, throttled", "–",
    ]  # fmt: skip
    assert phone[6:] == ["–", "600 MHz", "151 MB", "no", "90 to 38 %"]


def test_of_columns_that_no_device_reports_nothing_is_reported(
    capsys: pytest.CaptureFixture[str],
) -> None:
    unknown = dict.fromkeys(("throttled_share", "rss_bytes", "temperature_max_c"))
    heading, row = printed(capsys, dataclasses.replace(PI_NIGHT, latency_max_s=0.9996, **unknown))
    assert heading[6:] == ["lowest clock"]
    assert row[5] == "1000"  # almost a second is written as other times are
    assert printed(capsys) == []


def test_what_is_on_all_devices_is_reported_of_more_than_two(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with compared_campaign(tmp_path / "c") as store:
        pairs = summarize(store).agreements
    for devices in (2, 3):
        print_document(agreement_blocks(pairs, EveryDevice(devices, 9, 7)))
        assert ("7 of 9" in capsys.readouterr().out) == (devices == 3)

"""The devices' latency, temperature and throttling during a campaign, as a table."""

import dataclasses
import re

import pytest
from rich.console import Console

from edgeflare.analysis import TelemetryFigures
from edgeflare.reports import print_document
from edgeflare.reports.devices import telemetry_table

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
PHONE = dataclasses.replace(
    PI_NIGHT,
    device="phone",
    temperature_max_c=None,
    throttled_minutes=0,
    throttled_share=0.0,
    throttle_reasons=(),
    battery_from=90.0,
    battery_to=38.0,
)


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
    heading, _ = printed(
        capsys,
        dataclasses.replace(PI_NIGHT, throttled_share=None, rss_bytes=None, temperature_max_c=None),
    )
    assert heading[6:] == ["lowest clock"]
    assert printed(capsys) == []


def test_almost_a_second_is_written_as_other_times_are(capsys: pytest.CaptureFixture[str]) -> None:
    _, row = printed(capsys, dataclasses.replace(PI_NIGHT, latency_max_s=0.9996))
    assert row[5] == "1000"

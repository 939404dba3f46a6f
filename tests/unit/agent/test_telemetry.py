"""What the agent reads of a system, from systems that are laid out file by file."""

import math
import os
from pathlib import Path

import pytest

from edgeflare_agent import telemetry


def lay_out(root: Path, files: dict[str, str]) -> str:
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode())
    return str(root)


def zones(*contents: str) -> dict[str, str]:
    return {
        f"sys/class/thermal/thermal_zone{number}/temp": content
        for number, content in enumerate(contents)
    }


def cooler(number: int, kind: str, state: str) -> dict[str, str]:
    folder = f"sys/class/thermal/cooling_device{number}"
    return {f"{folder}/type": f"{kind}\n", f"{folder}/cur_state": f"{state}\n"}


@pytest.mark.parametrize(
    ("contents", "hottest"),
    [
        (("48312\n",), 48.312),
        (("48312\n", "61000\n", "-5000\n"), 61.0),
        (("-12500",), -12.5),
        (("0", "255000", "-274000", "151000"), None),
        (("45",), None),  # degrees, not thousandths
        (("garbage", "", "nan", "inf", "5\u00b0", "40000 C"), 40.0),
        ((), None),
    ],
)
def test_the_hottest_plausible_sensor_counts(
    tmp_path: Path, contents: tuple[str, ...], hottest: float | None
) -> None:
    assert telemetry.temperature_c(lay_out(tmp_path, zones(*contents))) == hottest


def test_the_slowest_core_counts(tmp_path: Path) -> None:
    cores = {
        f"sys/devices/system/cpu/cpu{number}/cpufreq/scaling_cur_freq": content
        for number, content in enumerate(("1800000\n", "600000\n", "0\n", "<unknown>\n"))
    }
    others = {"sys/devices/system/cpu/cpufreq/policy0/scaling_cur_freq": "1\n"}
    assert telemetry.frequency_mhz(lay_out(tmp_path, {**cores, **others})) == 600.0
    assert telemetry.frequency_mhz(str(tmp_path / "nothing")) is None


PI_3 = "sys/devices/platform/soc/soc:firmware/get_throttled"
PI_5 = "sys/devices/platform/soc@107c000000/soc@107c000000:firmware/get_throttled"


@pytest.mark.parametrize("path", [PI_3, PI_5])
@pytest.mark.parametrize(
    ("content", "now"),
    [
        ("0\n", False),
        ("50000\n", False),  # it was, since the system began
        ("50005\n", True),
        ("8\n", True),
        ("0xf0002\n", True),
        ("?\n", None),
        ("", None),
    ],
)
def test_a_raspberry_pi_tells_whether_it_is_throttled_now(
    tmp_path: Path, path: str, content: str, now: bool | None
) -> None:
    assert telemetry.throttled(lay_out(tmp_path, {path: content})) is now


@pytest.mark.parametrize(
    ("devices", "now"),
    [
        (cooler(0, "cpufreq-cpu0", "0"), False),
        (cooler(0, "thermal-cpufreq-0", "3"), True),
        (cooler(0, "cpufreq-cpu0", "0") | cooler(1, "cpufreq-cpu4", "1"), True),
        (cooler(0, "pwm-fan", "4"), None),
        (cooler(0, "cpufreq-cpu0", "odd"), None),
        ({}, None),
    ],
)
def test_elsewhere_cooling_devices_tell_it(
    tmp_path: Path, devices: dict[str, str], now: bool | None
) -> None:
    assert telemetry.throttled(lay_out(tmp_path, devices)) is now


def test_files_that_can_not_be_read_tell_nothing(tmp_path: Path) -> None:
    root = lay_out(tmp_path, zones("41000"))
    (tmp_path / "sys/class/thermal/thermal_zone1/temp").mkdir(parents=True)
    (tmp_path / "sys/class/thermal/thermal_zone2").mkdir()
    (tmp_path / "sys/class/thermal/thermal_zone2/temp").symlink_to("nowhere")
    (tmp_path / "sys/class/thermal/thermal_zone3").write_bytes(b"\xff\x00")
    assert telemetry.vital_signs(root) == {
        "temperature_c": 41.0,
        "frequency_mhz": None,
        "throttled": None,
    }


def test_resources_of_a_system(tmp_path: Path) -> None:
    root = lay_out(
        tmp_path,
        {
            "proc/meminfo": "MemTotal: 3884336 kB\nMemFree: 5 kB\nMemAvailable:   1024 kB\n",
            "proc/loadavg": "0.52 0.48 0.40 1/203 4711\n",
        },
    )
    found = telemetry.resources(str(tmp_path), root)
    disk = os.statvfs(tmp_path)
    assert 0 < found.pop("disk_free_bytes") <= disk.f_blocks * disk.f_frsize
    assert found == {"memory_available_bytes": 1 << 20, "load": 0.52}


def test_resources_that_nothing_tells(tmp_path: Path) -> None:
    nowhere = str(tmp_path / "nowhere")
    found = telemetry.resources(nowhere, nowhere)
    assert found == {"disk_free_bytes": None, "memory_available_bytes": None, "load": None}


def test_this_system_tells_plausible_numbers_or_nothing() -> None:
    here = {**telemetry.vital_signs(), **telemetry.resources("/")}
    assert here["throttled"] in (None, True, False)
    for value in here.values():
        assert value is None or math.isfinite(value)
    assert here["memory_available_bytes"] > 1 << 20
    assert here["load"] >= 0

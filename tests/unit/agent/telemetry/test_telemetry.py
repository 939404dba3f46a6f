"""What the agent reads of a system, from systems that are laid out file by file."""

import math
import os
from pathlib import Path

import pytest
from stand_ins import lay_out

from edgeflare_agent import telemetry
from edgeflare_agent.telemetry import Sensors


def zones(*contents: str) -> dict[str, str]:
    return {
        f"sys/class/thermal/thermal_zone{number}/temp": content
        for number, content in enumerate(contents)
    }


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
def test_the_hottest_plausible_sensor_counts(tmp_path, contents, hottest) -> None:
    assert telemetry.temperature_c(lay_out(tmp_path, zones(*contents))) == hottest


def named_zone(number: int, name: str, content: str) -> dict[str, str]:
    folder = f"sys/class/thermal/thermal_zone{number}"
    return {f"{folder}/type": f"{name}\n", f"{folder}/temp": f"{content}\n"}


@pytest.mark.parametrize(
    ("sensors", "hottest"),
    [
        ({"CPU-therm": 34000, "GPU-therm": 36500, "PMIC-Die": 100000}, 36.5),  # a Jetson Nano
        ({"cpu-thermal": 51687, "soc0-thermal": 53000, "tj-thermal": 54250}, 54.25),  # an Orin
        ({"cpu-thermal": 61000, "rp1_adc": 70000}, 61.0),  # a Raspberry Pi 5
        ({"soc": 85000, "vbat": 3900, "cpuss-0-usr": 44000}, 44.0),  # a phone: charge, volts
        ({"acpitz": 27800, "x86_pkg_temp": 52000}, 52.0),
        ({"GPU-therm": -256000, "Tboard_tegra": 31000}, 31.0),  # its GPU is off
    ],
)
def test_sensors_of_processors_count_before_others(tmp_path, sensors, hottest) -> None:
    files: dict[str, str] = {}
    for number, (name, content) in enumerate(sensors.items()):
        files |= named_zone(number, name, str(content))
    assert telemetry.temperature_c(lay_out(tmp_path, files)) == hottest


@pytest.mark.parametrize(
    ("files", "load", "mhz"),
    [
        (
            {
                "sys/class/devfreq/17000000.ga10b/device/load": "437\n",
                "sys/class/devfreq/17000000.ga10b/cur_freq": "612000000\n",
                "sys/class/devfreq/15340000.vic/cur_freq": "115200000\n",
            },
            0.437,
            612.0,
        ),
        ({"sys/devices/gpu.0/load": "1000\n"}, 1.0, None),
        ({"sys/devices/platform/gpu.0/load": "0\n"}, 0.0, None),
        ({"sys/devices/gpu.0/load": "4711\n"}, None, None),
        ({"sys/class/devfreq/57000000.gpu/cur_freq": "76800000\n"}, None, 76.8),
        ({}, None, None),
    ],
)
def test_a_jetson_reports_load_and_clock_of_its_gpu(tmp_path, files, load, mhz) -> None:
    root = lay_out(tmp_path, files)
    assert (telemetry.gpu_load(root), telemetry.gpu_mhz(root)) == (load, mhz)


def test_the_slowest_core_counts(tmp_path: Path) -> None:
    cores = {
        f"sys/devices/system/cpu/cpu{number}/cpufreq/scaling_cur_freq": content
        for number, content in enumerate(("1800000\n", "600000\n", "0\n", "<unknown>\n"))
    }
    others = {"sys/devices/system/cpu/cpufreq/policy0/scaling_cur_freq": "1\n"}
    assert telemetry.frequency_mhz(lay_out(tmp_path, {**cores, **others})) == 600.0
    assert telemetry.frequency_mhz(str(tmp_path / "nothing")) is None


def test_files_that_can_not_be_read_tell_nothing(tmp_path: Path) -> None:
    root = lay_out(tmp_path, zones("41000"))
    (tmp_path / "sys/class/thermal/thermal_zone1/temp").mkdir(parents=True)
    (tmp_path / "sys/class/thermal/thermal_zone2").mkdir()
    (tmp_path / "sys/class/thermal/thermal_zone2/temp").symlink_to("nowhere")
    (tmp_path / "sys/class/thermal/thermal_zone3").write_bytes(b"\xff\x00")
    assert Sensors(root).read() == {**Sensors.UNKNOWN, "temperature_c": 41.0}


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


def test_resources_that_nothing_states(tmp_path: Path) -> None:
    nowhere = str(tmp_path / "nowhere")
    found = telemetry.resources(nowhere, nowhere)
    assert found == {"disk_free_bytes": None, "memory_available_bytes": None, "load": None}


def test_this_system_reports_plausible_numbers_or_nothing() -> None:
    here = {**Sensors().read(), **telemetry.resources("/")}
    assert here["throttled"] in (None, True, False)
    for name in ("throttle_reasons", "throttled_since_boot"):
        assert all(isinstance(word, str) for word in here.pop(name) or ())
    for value in here.values():
        assert value is None or math.isfinite(value)
    assert here["memory_available_bytes"] > 1 << 20
    assert here["load"] >= 0

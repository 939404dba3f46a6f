"""Whether a device is slowed down, and why, from systems that are laid out file by file."""

from pathlib import Path

import pytest
from stand_ins import lay_out, on_path, stand_in

from edgeflare_agent.telemetry.power import Throttling

PI_3 = "sys/devices/platform/soc/soc:firmware/get_throttled"
PI_5 = "sys/devices/platform/soc@107c000000/soc@107c000000:firmware/get_throttled"
ORIN = "sys/class/hwmon/hwmon3"


def cooler(number: int, kind: str, state: str) -> dict[str, str]:
    folder = f"sys/class/thermal/cooling_device{number}"
    return {f"{folder}/type": f"{kind}\n", f"{folder}/cur_state": f"{state}\n"}


@pytest.mark.parametrize("path", [PI_3, PI_5])
@pytest.mark.parametrize(
    ("content", "now", "since_boot"),
    [
        ("0\n", [], []),
        ("50000\n", [], ["under-voltage", "throttled"]),
        ("50005\n", ["under-voltage", "throttled"], ["under-voltage", "throttled"]),
        ("8\n", ["soft temperature limit"], []),
        ("0xf0002\n", ["frequency capped"], None),
        ("?\n", None, None),
        ("-1\n", None, None),
        ("", None, None),
    ],
)
def test_a_raspberry_pi_reports_it_in_flags(tmp_path, path, content, now, since_boot) -> None:
    told = Throttling(lay_out(tmp_path, {path: content})).read()
    assert told.reasons == now
    if content.startswith("0xf"):
        assert len(told.since_boot or ()) == 4
    else:
        assert told.since_boot == since_boot


def test_where_no_file_has_the_flags_vcgencmd_does(tmp_path, monkeypatch) -> None:
    stand_in(tmp_path / "bin", "vcgencmd", '[ "$*" = get_throttled ] && echo throttled=0x80008')
    on_path(monkeypatch, tmp_path / "bin")
    told = Throttling(str(tmp_path / "system")).read()
    assert told == (["soft temperature limit"], ["soft temperature limit"])
    assert Throttling(lay_out(tmp_path / "pi", {PI_3: "0\n"})).read() == ([], [])


@pytest.mark.parametrize("place", ["usr/bin", "opt/vc/bin"])
def test_vcgencmd_is_found_beside_the_path_too(tmp_path: Path, place: str) -> None:
    stand_in(tmp_path / place, "vcgencmd", "echo throttled=0x1")
    assert Throttling(str(tmp_path)).read() == (["under-voltage"], [])


def test_a_kernel_of_debian_reports_the_voltage_alone(tmp_path: Path) -> None:
    files = {"sys/class/hwmon/hwmon1/name": "rpi_volt\n"}
    alarm = "sys/class/hwmon/hwmon1/in0_lcrit_alarm"
    assert Throttling(lay_out(tmp_path, {**files, alarm: "1\n"})).read().reasons == [
        "under-voltage"
    ]
    assert Throttling(lay_out(tmp_path, {alarm: "0\n"})).read() == ([], None)


@pytest.mark.parametrize(
    ("devices", "now"),
    [
        (cooler(0, "cpufreq-cpu0", "0"), []),
        (cooler(0, "thermal-cpufreq-0", "3"), ["heat of the CPU"]),
        (cooler(0, "cpufreq-cpu0", "0") | cooler(1, "cpufreq-cpu4", "1"), ["heat of the CPU"]),
        (
            cooler(0, "cpu-throttle-alert", "1") | cooler(1, "gpu-throttle-alert", "1"),
            ["heat of the CPU", "heat of the GPU"],
        ),
        (cooler(0, "soc0-throttle-alert", "1") | cooler(1, "cv2-throttle-alert", "0"), ["heat of the SoC"]),
        (cooler(0, "hot-surface-alert", "0") | cooler(1, "devfreq-gpu-gpc-0", "18"), []),
        (cooler(0, "devfreq-17000000.gpu", "18"), None),  # its clock is capped as a matter of course
        (cooler(0, "pwm-fan", "4"), None),
        (cooler(0, "cpufreq-cpu0", "odd"), None),
        ({}, None),
    ],
)  # fmt: skip
def test_cooling_devices_that_slow_something_down_tell_it(tmp_path, devices, now) -> None:
    assert Throttling(lay_out(tmp_path, devices)).read() == (now, None)


def test_a_jetsons_counter_that_rises_is_an_event_of_now(tmp_path: Path) -> None:
    quiet = {f"{ORIN}/oc{n}_event_cnt": "0\n" for n in (1, 2)}
    enabled = {f"{ORIN}/oc{n}_throt_en": "1\n" for n in (1, 2, 3)}
    root = lay_out(tmp_path, {**quiet, **enabled, f"{ORIN}/oc3_event_cnt": "27\n"})
    throttling = Throttling(root)
    assert throttling.read() == ([], ["over-current"])
    assert throttling.read() == ([], ["over-current"])
    lay_out(tmp_path, {f"{ORIN}/oc3_event_cnt": "28\n", f"{ORIN}/oc1_event_cnt": "1\n"})
    assert throttling.read() == (["under-voltage", "over-current"],) * 2
    assert throttling.read() == ([], ["under-voltage", "over-current"])


def test_events_that_do_not_throttle_are_left_out(tmp_path: Path) -> None:
    files = {f"{ORIN}/oc1_event_cnt": "5\n", f"{ORIN}/oc1_throt_en": "0\n"}
    assert Throttling(lay_out(tmp_path, files)).read() == (None, None)

"""What the script on the device finds in a system that is laid out for it, under every Python."""

import time
from pathlib import Path
from typing import Any

import pytest
from shown_numbers import numbers

from edgeflare.devices.doctor.facts import FACTS, Facts, SystemReading, read_system
from edgeflare.devices.doctor.hardware import disk, machine
from edgeflare.devices.doctor.result import CheckLine, failed
from edgeflare.devices.inventory import Device
from edgeflare.devices.provisioning.probe import Probe
from edgeflare.devices.provisioning.scripts import run_script
from edgeflare.devices.transports.local import LocalTransport
from edgeflare.errors import DeviceDiskFullError, DeviceError, DeviceProtocolError

PI_CPU = """processor\t: 0
Features\t: fp asimd evtstrm aes asimddp asimdhp
CPU implementer\t: 0x41
CPU part\t: 0xd0b

processor\t: 1
CPU implementer\t: 0x41
"""
SEEN = Probe(
    name="pi4",
    command="python3",
    version=(3, 11, 2),
    executable="/usr/bin/python3",
    home="/home/pi",
    root="/home/pi/.cache/edgeflare",
    arch="aarch64",
    libc="glibc 2.36",
    managed=False,
    numpy="2.0.0",
    numpy_problem=None,
    runtimes={},
    files={"agents": {"a.pyz": 1_000_000}, "models": {"m.onnx": 11_000_000}},
    cache_problem=None,
    free_bytes=1,
)


def lay_out(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


def pi(root: Path) -> Path:
    return lay_out(
        root,
        {
            "proc/cpuinfo": PI_CPU,
            "proc/meminfo": "MemTotal: 1000000 kB\nMemAvailable: 90000 kB\n",
            "proc/device-tree/model": "Raspberry Pi 5 Model B Rev 1.0\0",
            "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor": "ondemand\n",
            "sys/devices/system/cpu/cpu1/cpufreq/scaling_governor": "ondemand\n",
            "sys/class/thermal/thermal_zone0/temp": "61234\n",
            "sys/class/thermal/thermal_zone0/type": "cpu-thermal\n",
            "sys/class/thermal/thermal_zone1/temp": "-273000\n",
            "sys/devices/platform/soc/soc:firmware/get_throttled": "80008\n",
            "sys/class/thermal/cooling_device0/type": "pwm-fan\n",
            "sys/class/thermal/cooling_device0/cur_state": "3\n",
        },
    )


def ask(root: Path, python: str | None = None) -> Facts:
    parameters = {"cache": str(root), "vcgencmd": [], "root": str(root)}
    answer = run_script(LocalTransport("pi", python), python or "python3", FACTS, parameters, 60)
    return Facts.model_validate(answer)


def judged(**told: Any) -> dict[str, CheckLine]:
    facts = Facts.model_validate({"clock": 0.0, **told})
    return {line.name: line for line in machine(SystemReading(facts, "", 0.0, 0.1))}


def test_board_is_distinguished_from_its_files(tmp_path: Path) -> None:
    facts = ask(pi(tmp_path))
    lines = {line.name: line for line in machine(SystemReading(facts, "", 0.0, 0.1))}
    assert lines["memory"].state == "note"
    assert "92 MB available" in lines["memory"].detail
    assert "Rev 1.0, Cortex-A76" in lines["cpu"].detail
    assert facts.cpu.flags is not None
    assert "asimddp" in facts.cpu.flags
    assert lines["governor"].state == "note"
    assert "ondemand" in lines["governor"].detail
    assert "echo performance" in (lines["governor"].fix or "")
    assert lines["temperature"].state == "note"
    assert "61.2 C (cpu-thermal)" in lines["temperature"].detail
    assert "fan" in (lines["temperature"].fix or "")


def test_empty_system_reports_nothing_and_nothing_is_wrong(tmp_path: Path) -> None:
    facts = ask(tmp_path)
    lines = {line.name: line for line in machine(SystemReading(facts, "", 0.0, 0.1))}
    assert {line.state for line in lines.values()} == {"ok"}
    assert "doesn't tell" in lines["memory"].detail


@pytest.mark.parametrize(
    ("damage", "governor", "temperature"),
    [
        ("", "ok", "ok"),
        ("\0\0", "note", "ok"),
        ("word without a colon\n: \n\t:\t\n", "note", "ok"),
        ("9" * 99, "note", "note"),  # a hexadecimal number with the bits of low voltage and heat
    ],
)
def test_odd_files_end_no_check(tmp_path, damage, governor, temperature) -> None:
    for path in list(pi(tmp_path).rglob("*")):
        if path.is_file():
            path.write_text(damage)
    lines = {line.name: line for line in machine(SystemReading(ask(tmp_path), "", 0.0, 0.1))}
    assert {name: line.state for name, line in lines.items()} == {
        "memory": "ok",
        "clock": "ok",
        "cpu": "ok",
        "governor": governor,
        "temperature": temperature,
    }
    assert "system doesn't tell" in lines["memory"].detail
    assert " C (" not in lines["temperature"].detail


def test_coolers_of_the_processor_count_and_fans_do_not(tmp_path: Path) -> None:
    lay_out(
        tmp_path,
        {
            "sys/class/thermal/cooling_device0/type": "cpufreq-cpu0",
            "sys/class/thermal/cooling_device0/cur_state": "2",
            "sys/class/thermal/cooling_device1/type": "pwm-fan",
            "sys/class/thermal/cooling_device1/cur_state": "2",
        },
    )
    assert ask(tmp_path).coolers == ("cpufreq-cpu0",)


def test_weak_power_and_heat_have_their_own_advice() -> None:
    weak = judged(firmware=0x10000)["temperature"]
    assert weak.detail.startswith("since boot: under-voltage:")
    assert "power supply" in (weak.fix or "")
    assert "fan" not in (weak.fix or "")
    both = judged(firmware=0x70005)["temperature"].fix or ""
    assert "power supply" in both
    assert "fan" in both
    assert judged(firmware=0)["temperature"] == (
        *("temperature", True, "not throttled since boot", None, False),
    )
    assert judged(hottest=(91.0, ""))["temperature"].state == "note"


def test_firmware_tool_that_hangs_is_given_up(tmp_path: Path) -> None:
    tool = tmp_path / "vcgencmd"
    tool.write_text("#!/bin/sh\nexec sleep 600\n")
    tool.chmod(0o755)
    impatient = FACTS.replace("PATIENCE_S = 5\n", "PATIENCE_S = 0.2\n")
    assert impatient != FACTS
    parameters = {"cache": str(tmp_path), "vcgencmd": [str(tool)], "root": str(tmp_path)}
    answer = run_script(LocalTransport("pi"), "python3", impatient, parameters, 60)
    assert answer["firmware"] is None


def test_performance_governor_is_as_it_should_be() -> None:
    assert judged(governors=["performance"])["governor"].state == "ok"
    assert judged(governors=["performance", "powersave"])["governor"].state == "note"


def test_flags_are_those_that_change_numbers() -> None:
    x86 = {"model": "Xeon", "arch": "x86_64", "cores": 4, "flags": ["avx2", "avx512_vnni", "sse"]}
    detail = judged(cpu=x86)["cpu"].detail
    assert numbers(detail) == "86 64 4 8 16 2 512 512 8"
    arm = {"implementer": "0x41", "part": "0xd08", "arch": "aarch64", "flags": ["asimd"]}
    assert numbers(judged(cpu=arm)["cpu"].detail) == "72 64 8 16 8 16 8"
    odd = {"implementer": "0x99", "part": "0x123", "arch": "aarch64"}
    assert "0x123 of 0x99" in judged(cpu=odd)["cpu"].detail


@pytest.mark.parametrize(
    ("ahead", "within", "state", "words"),
    [
        (0.01, 0.1, "ok", "agrees with this machine's to within 0.1 s"),
        (-30.0, 0.1, "ok", "30 s behind this machine's"),
        (7200.0, 0.1, "note", "2.0 h ahead of this machine's"),
        (-86400.0 * 400, 0.1, "note", "400 days behind this machine's"),
        (65.0, 20.0, "ok", "1.1 min ahead of"),
    ],
)
def test_clock_is_compared(ahead: float, within: float, state: str, words: str) -> None:
    looked = SystemReading(Facts(clock=0.0), "", ahead, within)
    line = next(one for one in machine(looked) if one.name == "clock")
    assert (line.state, line.detail.startswith(words)) == (state, True), line
    assert (line.fix is not None) == (state == "note")


def test_clock_of_this_machine_agrees_with_itself(tmp_path: Path) -> None:
    seen = read_system(
        LocalTransport("here"), Device(name="here", transport="local", cache=str(tmp_path))
    )
    assert abs(seen.clock_ahead_s) <= seen.clock_within_s + 0.05
    assert abs(seen.facts.clock - time.time()) < 3600
    assert seen.printed.strip() == ""


def test_disk_names_what_prune_frees_only_where_there_is_something() -> None:
    full = Facts.model_validate({"clock": 0, "disk": {"free": 0, "total": 8e9, "files_free": 9999}})
    line = disk(SEEN, full, 0)
    assert (line.state, line.detail) == (
        *("fix", "0 MB free of 8000 MB at /home/pi/.cache/edgeflare, full"),
    )
    assert "prune pi4 --all`" in (line.fix or "")
    some = Facts.model_validate({"clock": 0, "disk": {"free": 100_000_000}})
    assert disk(SEEN, some, 0).state == "note"
    assert disk(SEEN, some, 95_000_000).state == "fix"
    no_files = Facts.model_validate({"clock": 0, "disk": {"free": 10**12, "files_free": 0}})
    assert disk(SEEN, no_files, 0).state == "fix"
    assert disk(SEEN, Facts(clock=0), 0).state == "ok"


def test_answer_that_makes_no_sense_is_a_protocol_error(tmp_path: Path) -> None:
    script = tmp_path / "liar.sh"
    script.write_text('echo \'<<<edgeflare<<<{"clock": "noon"}>>>edgeflare>>>\'\n')
    liar = f"sh {script}"
    device = Device(name="bench", transport="local", python=liar)
    with pytest.raises(DeviceProtocolError, match='"noon"'):
        read_system(LocalTransport("bench", liar), device)


@pytest.mark.parametrize(
    ("error", "detail", "fix"),
    [
        (DeviceError("no (a; b) `c; d` here; do e; or f"), "no (a; b) `c; d` here", "do e; or f"),
        (DeviceError("nothing to do about it: none"), "nothing to do about it: none", None),
        (DeviceDiskFullError("a has 0: free some"), "a has 0", "free some"),
    ],
)
def test_sentence_is_divided_into_what_and_what_to_do(error, detail, fix) -> None:
    assert failed("x", error) == ("x", False, detail, fix, False)

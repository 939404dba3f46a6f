"""Commands of a device that tell what no file does: their output, their pace, and when they hang."""

import os
import threading
import time
from pathlib import Path

import pytest
from stand_ins import lay_out, on_path, stand_in

from edgeflare_agent.telemetry import Sensors
from edgeflare_agent.telemetry.power import Battery, Charge, from_termux, read
from edgeflare_agent.telemetry.system import AFTER_FAILURE_S, Command

CHARGING = '{"health": "GOOD", "percentage": 85, "plugged": "PLUGGED_AC", "status": "CHARGING"}'
THERMAL = """IsStatusOverride: false
Thermal Status: {status}
Cached temperatures:
\tTemperature{{mValue=99.0, mType=0, mName=AP, mStatus=0}}
HAL Ready: true
Current temperatures from HAL:
\tTemperature{{mValue=41.6, mType=0, mName=AP, mStatus=0}}
\tTemperature{{mValue=23.8, mType=2, mName=BAT, mStatus=0}}
\tTemperature{{mValue=0.0, mType=1, mName=GPU, mStatus=0}}
\tTemperature{{mValue=47.0, mType=3, mName=LRB, mStatus=0}}
"""
DENIED = "Permission Denial: can't dump thermalservice from pid=4711, uid=10234"


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def counting(tmp_path: Path, script: str) -> Path:
    """A command that leaves a line each time it is run."""
    return stand_in(tmp_path / "bin", "tell", f"echo ran >> {tmp_path}/runs\n{script}")


def runs(tmp_path: Path) -> int:
    return len((tmp_path / "runs").read_text().split())


def test_it_is_run_at_its_pace_and_remembered_between(tmp_path: Path) -> None:
    counting(tmp_path, "echo 7")
    clock = Clock()
    command = Command(["tell"], int, 5.0, places=["bin"], root=str(tmp_path), clock=clock)
    assert [command.answer(), command.answer()] == [7, 7]
    clock.now = 4.9
    assert (command.answer(), runs(tmp_path)) == (7, 1)
    clock.now = 5.0
    assert (command.answer(), runs(tmp_path)) == (7, 2)


@pytest.mark.parametrize("script", ["echo 7; exit 3", "echo nothing"])
def test_one_that_fails_or_makes_no_sense_is_left_alone_for_a_while(tmp_path, script) -> None:
    counting(tmp_path, script)
    clock = Clock()

    def whole(text: str) -> int | None:
        return int(text) if text.strip().isdigit() else None

    command = Command(["tell"], whole, places=["bin"], root=str(tmp_path), clock=clock)
    assert command.answer() is None
    clock.now = AFTER_FAILURE_S - 1
    assert (command.answer(), runs(tmp_path)) == (None, 1)
    clock.now = AFTER_FAILURE_S
    assert (command.answer(), runs(tmp_path)) == (None, 2)


def test_one_that_hangs_is_killed_with_what_it_started(tmp_path: Path) -> None:
    counting(tmp_path, f"sleep 600 &\necho $! > {tmp_path}/child\nwait")
    command = Command(["tell"], str, limit_s=2.0, places=["bin"], root=str(tmp_path))
    assert command.answer() is None
    assert (command.answer(), runs(tmp_path)) == (None, 1)
    gone(int((tmp_path / "child").read_text()))


def test_one_that_runs_as_the_agent_leaves_is_killed(tmp_path: Path) -> None:
    counting(tmp_path, f"echo $$ > {tmp_path}/pid\nexec sleep 600")
    command = Command(["tell"], str, limit_s=60.0, places=["bin"], root=str(tmp_path))
    answers: list[str | None] = []
    thread = threading.Thread(target=lambda: answers.append(command.answer()))
    thread.start()
    while not (tmp_path / "pid").exists() or not (tmp_path / "pid").read_text().strip():
        time.sleep(0.01)
    command.end()
    thread.join()
    assert answers == [None]
    command.end()  # nothing runs any more


def test_once_the_agent_leaves_none_begins(tmp_path: Path) -> None:
    counting(tmp_path, "echo 7")
    command = Command(["tell"], int, places=["bin"], root=str(tmp_path))
    command.end()
    assert command.answer() is None
    assert not (tmp_path / "runs").exists()


def test_one_that_is_not_there_reports_nothing(tmp_path: Path) -> None:
    assert Command(["edgeflare-no-such-command"], str, root=str(tmp_path)).answer() is None
    no_program = stand_in(tmp_path / "bin", "tell", "")
    no_program.write_bytes(b"\x7fnothing that can be run")
    assert Command(["tell"], str, places=["bin"], root=str(tmp_path)).answer() is None


@pytest.mark.parametrize(
    ("supply", "charge"),
    [
        ({"type": "Battery", "capacity": "81", "status": "Charging"}, Charge(81, True)),
        ({"type": "Battery", "capacity": "80", "status": "Not charging"}, Charge(80, False)),
        ({"type": "Battery", "capacity": "100", "status": "Full"}, Charge(100, False)),
        ({"capacity": "7", "status": "Unknown"}, Charge(7, None)),
        ({"type": "Battery", "capacity": "50", "scope": "Device"}, Charge(None, None)),  # a mouse
        ({"type": "Mains", "online": "1"}, Charge(None, None)),
        ({"type": "Battery", "capacity": "4711"}, Charge(None, None)),
    ],
)
def test_a_battery_in_the_systems_files(tmp_path, supply, charge) -> None:
    files = {f"sys/class/power_supply/some/{name}": f"{text}\n" for name, text in supply.items()}
    assert Battery(lay_out(tmp_path, files)).read() == charge


@pytest.mark.parametrize(
    ("output", "charge"),
    [
        (CHARGING, Charge(85, True)),
        ('{"percentage": 12, "status": "DISCHARGING"}', Charge(12, False)),
        ('{"percentage": 99, "status": "NOT_CHARGING"}', Charge(99, False)),
        ('{"API_ERROR": "no permission"}', None),
        ("[85]", None),
        ("Termux:API is not yet available", None),
    ],
)
def test_what_termux_says_of_the_battery(output: str, charge: Charge | None) -> None:
    assert from_termux(output) == charge


@pytest.mark.parametrize(
    ("status", "level", "throttles"),
    [("0", "none", False), ("1", "light", True), ("3", "severe", True), ("6", "shutdown", True)],
)
def test_androids_thermal_service(status: str, level: str, throttles: bool) -> None:
    told = read(THERMAL.format(status=status))
    assert (told.level, told.throttles, told.temperature_c) == (level, throttles, 41.6)


def test_a_thermal_service_that_prints_odd_numbers_reports_the_rest() -> None:
    told = read(THERMAL.format(status="1").replace("41.6", "4.1.6").replace("47.0", "NaN"))
    assert (told.level, told.temperature_c) == ("light", None)


@pytest.mark.parametrize("output", [DENIED, "", THERMAL.format(status="9")])
def test_a_thermal_service_that_says_nothing(output: str) -> None:
    assert read(output) is None


def test_a_phone_seen_by_its_shell_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = THERMAL.format(status="2").replace("mType=0", "mType=9")
    stand_in(tmp_path / "bin", "dumpsys", f"cat <<'END'\n{text}END")
    stand_in(tmp_path / "bin", "termux-battery-status", f"echo '{CHARGING}'")
    on_path(monkeypatch, tmp_path / "bin")
    assert Sensors(str(tmp_path / "system")).read() == {
        **Sensors.UNKNOWN,
        "temperature_c": 47.0,  # of the skin
        "throttled": True,
        "throttle_reasons": ["thermal status moderate"],
        "battery_percent": 85,
        "battery_charging": True,
    }


def test_a_phone_that_keeps_all_to_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stand_in(tmp_path / "bin", "dumpsys", f'echo "{DENIED}"')
    stand_in(tmp_path / "bin", "termux-battery-status", "sleep 600")  # the app is not installed
    on_path(monkeypatch, tmp_path / "bin")
    signs = Sensors(lay_out(tmp_path / "system", {}))
    assert signs.read() == Sensors.UNKNOWN
    assert signs.read() == Sensors.UNKNOWN


def gone(pid: int) -> None:
    """Wait until there is no such process, or only what is left of one for its parent."""
    while True:
        try:
            os.kill(pid, 0)
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except (ProcessLookupError, FileNotFoundError):
            return
        if state == "Z":
            return
        time.sleep(0.01)

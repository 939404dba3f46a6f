"""Whether the device is slowed down by heat or for want of power, and the charge of its battery.

Raspberry Pi: the firmware's flags. Jetson: counters of over-current events, and cooling devices
that mean throttling. Android: the thermal service (`dumpsys thermalservice`, from Android 10 on,
for the shell user only). Elsewhere: cooling devices of the CPU. Battery: /sys/class/power_supply,
else Termux's `termux-battery-status`.
"""

import json
import os
import re
from typing import Any, Dict, Iterable, List, NamedTuple, Optional

from edgeflare_agent.telemetry.system import Command, first_word, found, number, number_in, text

_THERMAL_PACE_S = 5.0

_LEVELS = ("none", "light", "moderate", "severe", "critical", "emergency", "shutdown")
_STATUS = re.compile(r"^\s*Thermal Status:\s*(\d)\s*$", re.MULTILINE)
_TEMPERATURE = re.compile(r"Temperature\{mValue=(-?\d+(?:\.\d+)?), mType=(\d+),")
_CPU, _GPU, _SKIN = "0", "1", "3"
_LEAST_C, _MOST_C = 1.0, 150.0


class Thermal(NamedTuple):
    """Throttling, "none" to "shutdown", and the hottest processor, else skin, in Celsius."""

    level: str
    temperature_c: Optional[float]

    @property
    def throttles(self) -> bool:
        """Whether it slows anything down."""
        return self.level != _LEVELS[0]


def thermal_service() -> "Command[Thermal]":
    """Return the command that asks it; nothing where there is none."""
    return Command(["dumpsys", "thermalservice"], read, pace_s=_THERMAL_PACE_S)


def read(output: str) -> Optional[Thermal]:
    """Return what the service prints; None for a refusal, or anything else without a status."""
    status = _STATUS.search(output)
    if status is None or int(status.group(1)) >= len(_LEVELS):
        return None
    told = [(kind, float(value)) for value, kind in _TEMPERATURE.findall(_present(output))]
    plausible = [(kind, value) for kind, value in told if _LEAST_C <= value <= _MOST_C]
    processors = [value for kind, value in plausible if kind in (_CPU, _GPU)]
    skin = [value for kind, value in plausible if kind == _SKIN]
    return Thermal(_LEVELS[int(status.group(1))], max(processors or skin, default=None))


def _present(output: str) -> str:
    """Return the part without what is only remembered."""
    return output.partition("Current temperatures from HAL:")[2] or output


UNDER_VOLTAGE = "under-voltage"
OVER_CURRENT = "over-current"

_FIRMWARE = (
    "sys/devices/platform/*firmware*/get_throttled",
    "sys/devices/platform/soc*/*firmware*/get_throttled",
)
_VCGENCMD_PLACES = ("usr/bin", "opt/vc/bin")
_FLAGS = (UNDER_VOLTAGE, "frequency capped", "throttled", "soft temperature limit")
_SINCE_BOOT = 16
_MONITORS = "sys/class/hwmon/hwmon*"
_EVENT_COUNT = re.compile(r"oc(\d+)_event_cnt")
_COOLERS = "sys/class/thermal/cooling_device*"
_COOLED = (
    (re.compile(r"cpufreq|thermal-cpufreq|cpu-(thermal|throttle|balanced)"), "heat of the CPU"),
    (re.compile(r"gpu-(throttle|balanced)"), "heat of the GPU"),
    (re.compile(r"(soc|cv)\d*-throttle|emergency-balanced"), "heat of the SoC"),
    (re.compile(r"hot-surface-alert|skin-balanced"), "heat of the surface"),
)
"""Cooling devices that slow something down; others turn fans, or always cap clocks."""


class Throttle(NamedTuple):
    """What slows the device down now, and what has since it was booted; None: not known."""

    reasons: Optional[List[str]]
    since_boot: Optional[List[str]]


class Throttling:
    """Reads below `root`; an event is present if its counter rose since the last reading."""

    def __init__(self, root: str = "/") -> None:
        self._root = root
        self._events: Dict[str, float] = {}
        self.firmware: Command[int] = Command(
            ["vcgencmd", "get_throttled"], _flags, places=_VCGENCMD_PLACES, root=root
        )

    def read(self, thermal: Optional[Thermal] = None) -> Throttle:
        """Return all reasons; `thermal` is the reading of Android's service."""
        told = [self._firmware_flags(), self._counted_events(), _cooling(self._root)]
        if thermal is not None:
            words = ["thermal status " + thermal.level] if thermal.throttles else []
            told.append(Throttle(words, None))
        return Throttle(
            _together(one.reasons for one in told), _together(one.since_boot for one in told)
        )

    def _firmware_flags(self) -> Throttle:
        """Return the Raspberry Pi's flags, or the voltage's alarm where nothing tells them."""
        for pattern in _FIRMWARE:
            for path in found(self._root, pattern):
                flags = _flags(first_word(path) or "")
                if flags is not None:
                    return _from_flags(flags)
        flags = self.firmware.answer()
        if flags is not None:
            return _from_flags(flags)
        for monitor in found(self._root, _MONITORS):
            alarm = number_in(os.path.join(monitor, "in0_lcrit_alarm"))
            if alarm is not None and first_word(os.path.join(monitor, "name")) == "rpi_volt":
                return Throttle([UNDER_VOLTAGE] if alarm else [], None)
        return Throttle(None, None)

    def _counted_events(self) -> Throttle:
        """Return what a Jetson counts: under-voltage first, then over-current, average and peak."""
        counts = {}
        for path in found(self._root, _MONITORS + "/oc*_event_cnt"):
            count = number_in(path)
            match = _EVENT_COUNT.fullmatch(os.path.basename(path))
            enabled = number_in(path[: -len("event_cnt")] + "throt_en")
            if count is not None and match is not None and enabled != 0:
                counts[path] = (UNDER_VOLTAGE if match.group(1) == "1" else OVER_CURRENT, count)
        if not counts:
            return Throttle(None, None)
        before, self._events = self._events, {path: count for path, (_, count) in counts.items()}
        rose = [word for path, (word, count) in counts.items() if count > before.get(path, count)]
        return Throttle(_unique(rose), _unique(word for word, count in counts.values() if count))


def _cooling(root: str) -> Throttle:
    told, words = False, []
    for cooler in found(root, _COOLERS):
        kind = first_word(os.path.join(cooler, "type"))
        state = number_in(os.path.join(cooler, "cur_state"))
        if kind is None or state is None:
            continue
        for pattern, word in _COOLED:
            if pattern.match(kind.lower()):
                told = True
                words += [word] if state > 0 else []
    return Throttle(_unique(words) if told else None, None)


def _flags(text: str) -> Optional[int]:
    """Return the flags in "50005" or "throttled=0x50005"."""
    try:
        value = int(text.strip().rpartition("=")[2], 16)
    except ValueError:
        return None
    return value if value >= 0 else None


def _from_flags(flags: int) -> Throttle:
    def words(shift: int) -> List[str]:
        return [word for bit, word in enumerate(_FLAGS) if flags >> (bit + shift) & 1]

    return Throttle(words(0), words(_SINCE_BOOT))


def _together(told: Iterable[Optional[List[str]]]) -> Optional[List[str]]:
    known = [words for words in told if words is not None]
    return _unique(word for words in known for word in words) if known else None


def _unique(words: Iterable[str]) -> List[str]:
    return list(dict.fromkeys(words))


_BATTERY_PACE_S = 30.0
"""The command starts an activity of an Android app; the charge changes slowly."""

_SUPPLIES = "sys/class/power_supply/*"


class Charge(NamedTuple):
    """The charge, 0 to 100, and whether it is being charged; None: not known."""

    percent: Optional[float]
    charging: Optional[bool]


class Battery:
    """Reads below `root`; batteries of mice and the like don't count."""

    def __init__(self, root: str = "/") -> None:
        self._root = root
        self.termux: Command[Charge] = Command(
            ["termux-battery-status"], from_termux, _BATTERY_PACE_S
        )

    def read(self) -> Charge:
        """Return the first battery's charge."""
        for supply in found(self._root, _SUPPLIES):
            kind = first_word(os.path.join(supply, "type"))
            scope = first_word(os.path.join(supply, "scope"))
            percent = _percent(number_in(os.path.join(supply, "capacity")))
            if percent is not None and kind in ("Battery", None) and scope != "Device":
                return Charge(percent, _charging(text(os.path.join(supply, "status"))))
        return self.termux.answer() or Charge(None, None)


def from_termux(output: str) -> Optional[Charge]:
    """Return what the command's JSON says; None for anything else."""
    try:
        told: Any = json.loads(output)
    except ValueError:
        return None
    if not isinstance(told, dict):
        return None
    percent = _percent(number(str(told.get("percentage"))))
    return None if percent is None else Charge(percent, _charging(str(told.get("status"))))


def _percent(value: Optional[float]) -> Optional[float]:
    return value if value is not None and 0 <= value <= 100 else None


def _charging(status: str) -> Optional[bool]:
    """Return whether a text like "Charging", "Not charging" or "FULL" means charging."""
    word = status.strip().lower().replace("_", " ")
    if word == "charging":
        return True
    return False if word in ("discharging", "not charging", "full") else None

"""Whether the device is slowed down, and why: by heat or for want of power.

Raspberry Pi: the firmware's flags. Jetson: counters of over-current events, and cooling devices that
stand for throttling. Android: the thermal service. Elsewhere: cooling devices of the CPU.
"""

import os
import re
from typing import Dict, Iterable, List, NamedTuple, Optional

from edgeflare_agent.commands import Command
from edgeflare_agent.sysfiles import first_word, found, number_in
from edgeflare_agent.thermal_service import Thermal

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
"""Cooling devices that slow something down; others turn fans, or cap clocks as a matter of course."""


class Throttle(NamedTuple):
    """What slows the device down now, and what has since it was booted; None: nobody tells."""

    reasons: Optional[List[str]]
    since_boot: Optional[List[str]]


class Throttling:
    """Reads below `root`; remembers the counters of events, of which one that rose is one of now."""

    def __init__(self, root: str = "/") -> None:
        self._root = root
        self._events: Dict[str, float] = {}
        self.firmware: Command[int] = Command(
            ["vcgencmd", "get_throttled"], _flags, places=_VCGENCMD_PLACES, root=root
        )

    def read(self, thermal: Optional[Thermal] = None) -> Throttle:
        """Return all that is told; `thermal` is what Android's service says."""
        told = [self._firmware_flags(), self._counted_events(), _cooling(self._root)]
        if thermal is not None:
            words = ["thermal status " + thermal.level] if thermal.throttles else []
            told.append(Throttle(words, None))
        return Throttle(
            _together(one.reasons for one in told), _together(one.since_boot for one in told)
        )

    def _firmware_flags(self) -> Throttle:
        """Return the Raspberry Pi's flags, or where no file and no command tells them, the voltage's alarm."""
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

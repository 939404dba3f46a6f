"""What the system tells of the device, and how long things take.

Everything is read from files below a `root`, so that a test can lay out a system of its own. A file
that is missing, unreadable or odd is one that doesn't tell.
"""

import os
import shutil
import time
from glob import glob
from typing import Any, Dict, Iterable, Optional

clock = time.perf_counter
"""Seconds on a monotonic clock; only differences mean anything."""

_TEMPERATURES = "sys/class/thermal/thermal_zone*/temp"
_COOLERS = "sys/class/thermal/cooling_device*"
_FREQUENCIES = "sys/devices/system/cpu/cpu[0-9]*/cpufreq/scaling_cur_freq"
_FIRMWARE = ("sys/devices/platform/*firmware*", "sys/devices/platform/soc*/*firmware*")
_LEAST_C, _MOST_C = -40.0, 150.0
_UNREAD_C = 1.0
_SLOWS_THE_CPU = ("cpufreq", "thermal-cpufreq", "cpu-thermal", "cpu-throttle")
_NOW = 0b1111
_MOST_READ = 1 << 16


def vital_signs(root: str = "/") -> Dict[str, Any]:
    """Return `temperature_c`, `frequency_mhz` and `throttled`; None for what nothing tells."""
    return {
        "temperature_c": temperature_c(root),
        "frequency_mhz": frequency_mhz(root),
        "throttled": throttled(root),
    }


def resources(folder: str, root: str = "/") -> Dict[str, Any]:
    """Return `memory_available_bytes`, `disk_free_bytes` for the disk of `folder`, and `load`.

    `load` is the mean number of processes that ran or wanted to over the last minute. None for what
    the system doesn't tell.
    """
    try:
        disk_free: Optional[int] = shutil.disk_usage(folder).free
    except OSError:
        disk_free = None
    return {
        "memory_available_bytes": _kibibytes(_path(root, "proc/meminfo"), "MemAvailable:"),
        "disk_free_bytes": disk_free,
        "load": _number(_first_word(_path(root, "proc/loadavg"))),
    }


def temperature_c(root: str = "/") -> Optional[float]:
    """Return the hottest sensor's temperature in degrees Celsius.

    Left out are readings outside [-40, 150], and those within a degree of zero: sensors that are off,
    or that count in another unit than the kernel's thousandths.
    """
    read = (value / 1000 for value in _numbers(root, _TEMPERATURES))
    plausible = [
        value for value in read if _LEAST_C <= value <= _MOST_C and abs(value) >= _UNREAD_C
    ]
    return max(plausible, default=None)


def frequency_mhz(root: str = "/") -> Optional[float]:
    """Return the clock of the slowest core, in MHz."""
    return min((value / 1000 for value in _numbers(root, _FREQUENCIES) if value > 0), default=None)


def throttled(root: str = "/") -> Optional[bool]:
    """Return whether the processor is slowed down now, by heat or by want of power.

    A Raspberry Pi's firmware tells it in bits 0-3 (voltage too low, clock capped, throttled, soft limit
    of temperature; the bits from 16 tell of the past), other kernels by cooling devices at work.
    """
    told = [
        int(word, 16) & _NOW != 0
        for pattern in _FIRMWARE
        for word in _words(root, os.path.join(pattern, "get_throttled"))
        if _is_hexadecimal(word)
    ]
    for cooler in glob(_path(root, _COOLERS)):
        kind = _first_word(os.path.join(cooler, "type"))
        state = _number(_first_word(os.path.join(cooler, "cur_state")))
        if kind is not None and state is not None and kind.lower().startswith(_SLOWS_THE_CPU):
            told.append(state > 0)
    return any(told) if told else None


def rss_bytes(root: str = "/") -> Optional[int]:
    """Return this process's resident memory in bytes, None where the system doesn't tell."""
    return _kibibytes(_path(root, "proc/self/status"), "VmRSS:")


def _path(root: str, below: str) -> str:
    return os.path.join(root, below)


def _text(path: str) -> str:
    try:
        with open(path, encoding="ascii", errors="replace") as file:
            return file.read(_MOST_READ)
    except OSError:
        return ""


def _first_word(path: str) -> Optional[str]:
    words = _text(path).split()
    return words[0] if words else None


def _words(root: str, pattern: str) -> Iterable[str]:
    found = (_first_word(path) for path in glob(_path(root, pattern)))
    return [word for word in found if word is not None]


def _numbers(root: str, pattern: str) -> Iterable[float]:
    found = (_number(word) for word in _words(root, pattern))
    return [value for value in found if value is not None]


def _number(word: Optional[str]) -> Optional[float]:
    try:
        value = float(word or "")
    except ValueError:
        return None
    return value if abs(value) < float("inf") else None


def _is_hexadecimal(word: str) -> bool:
    try:
        return int(word, 16) >= 0
    except ValueError:
        return False


def _kibibytes(path: str, name: str) -> Optional[int]:
    for line in _text(path).splitlines():
        words = line.split()
        if len(words) >= 2 and words[0] == name and words[1].isdigit():
            return int(words[1]) * 1024
    return None

"""Sensors of the device, and a clock.

Everything is read from files below a `root`, so that a test can lay out a system of its own, and
from the few commands for what no file has. What is missing, unreadable or invalid is None.
"""

import re
import shutil
import time
from typing import Any, Dict, List, Optional

from edgeflare_agent.telemetry.power import Battery, Throttling, thermal_service
from edgeflare_agent.telemetry.system import below, first_word, found, kibibytes, number_in, numbers

clock = time.perf_counter
"""Seconds on a monotonic clock; only differences mean anything."""

_ZONES = "sys/class/thermal/thermal_zone*"
_PROCESSOR = re.compile(r"cpu|gpu|^soc\d*[-_]?therm|^tj[-_]", re.IGNORECASE)
_FREQUENCIES = "sys/devices/system/cpu/cpu[0-9]*/cpufreq/scaling_cur_freq"
_CLOCKED = "sys/class/devfreq/*"
_GPU = re.compile(r"gpu|g[abmpv]\d\d[ab]|mali|kgsl", re.IGNORECASE)
_GPU_LOADS = ("sys/devices/gpu.0/load", "sys/devices/platform/gpu.0/load")
_LEAST_C, _MOST_C = -40.0, 150.0
_UNREAD_C = 1.0
_UNKNOWN = (
    "temperature_c",
    "frequency_mhz",
    "throttled",
    "throttle_reasons",
    "throttled_since_boot",
    "battery_percent",
    "battery_charging",
    "gpu_load",
    "gpu_mhz",
)


class Sensors:
    """Reads the device's sensors, below `root`; for one thread."""

    UNKNOWN: Dict[str, Any] = dict.fromkeys(_UNKNOWN)
    """What is known before the first reading."""

    def __init__(self, root: str = "/") -> None:
        self._root = root
        self._throttling = Throttling(root)
        self._battery = Battery(root)
        self._thermal = thermal_service()

    def read(self) -> Dict[str, Any]:
        """Return the keys of UNKNOWN, None for what is not reported.

        `throttled` is whether anything slows the device down now, `throttle_reasons` what,
        `throttled_since_boot` what has since it was booted, both lists of words. `battery_percent`
        is 0 to 100, `gpu_load` 0 to 1. Takes seconds where a command hangs.
        """
        thermal = self._thermal.answer()
        throttle = self._throttling.read(thermal)
        charge = self._battery.read()
        temperature = temperature_c(self._root)
        if temperature is None and thermal is not None:
            temperature = thermal.temperature_c
        return {
            "temperature_c": temperature,
            "frequency_mhz": frequency_mhz(self._root),
            "throttled": None if throttle.reasons is None else bool(throttle.reasons),
            "throttle_reasons": throttle.reasons,
            "throttled_since_boot": throttle.since_boot,
            "battery_percent": charge.percent,
            "battery_charging": charge.charging,
            "gpu_load": gpu_load(self._root),
            "gpu_mhz": gpu_mhz(self._root),
        }

    def end(self) -> None:
        """Kill the command that runs right now, if one does; any thread may."""
        for command in (self._thermal, self._throttling.firmware, self._battery.termux):
            command.end()


def resources(folder: str, root: str = "/") -> Dict[str, Any]:
    """Return `memory_available_bytes`, `disk_free_bytes` for the disk of `folder`, and `load`.

    `load` is the mean number of processes that ran or wanted to over the last minute. None for what
    the system doesn't report.
    """
    try:
        disk_free: Optional[int] = shutil.disk_usage(folder).free
    except OSError:
        disk_free = None
    return {
        "memory_available_bytes": kibibytes(below(root, "proc/meminfo"), "MemAvailable:"),
        "disk_free_bytes": disk_free,
        "load": number_in(below(root, "proc/loadavg")),
    }


def temperature_c(root: str = "/") -> Optional[float]:
    """Return the hottest sensor's temperature in degrees Celsius.

    Sensors whose names say CPU, GPU or SoC are taken where there are any: among others a Jetson has
    one that always says 100, and a phone some that count volts. Left out are readings outside [-40,
    150], and those within a degree of zero: sensors that are off, or that count in another unit
    than the kernel's thousandths.
    """
    processors: List[float] = []
    others: List[float] = []
    for zone in found(root, _ZONES):
        read = number_in(below(zone, "temp"))
        value = 0.0 if read is None else read / 1000
        if _LEAST_C <= value <= _MOST_C and abs(value) >= _UNREAD_C:
            name = first_word(below(zone, "type")) or ""
            (processors if _PROCESSOR.search(name) else others).append(value)
    return max(processors or others, default=None)


def frequency_mhz(root: str = "/") -> Optional[float]:
    """Return the clock of the slowest core, in MHz."""
    return min((value / 1000 for value in numbers(root, _FREQUENCIES) if value > 0), default=None)


def gpu_load(root: str = "/") -> Optional[float]:
    """Return the fraction of time that a Jetson's GPU works, 0 to 1."""
    paths = [below(path, "device/load") for path in _gpus(root)]
    for path in [*paths, *(below(root, path) for path in _GPU_LOADS)]:
        per_mille = number_in(path)
        if per_mille is not None and 0 <= per_mille <= 1000:
            return per_mille / 1000
    return None


def gpu_mhz(root: str = "/") -> Optional[float]:
    """Return the GPU's clock in MHz."""
    for path in _gpus(root):
        hertz = number_in(below(path, "cur_freq"))
        if hertz is not None and hertz > 0:
            return hertz / 1e6
    return None


def rss_bytes(root: str = "/") -> Optional[int]:
    """Return this process's resident memory in bytes, None where the system doesn't report it."""
    return kibibytes(below(root, "proc/self/status"), "VmRSS:")


def _gpus(root: str) -> List[str]:
    """Return the folders of the GPUs whose clock can be read."""
    return [path for path in found(root, _CLOCKED) if _GPU.search(path[path.rindex("/") :])]

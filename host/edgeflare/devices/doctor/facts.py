"""System facts of a device, read by one script: clock, processor, memory, disk, heat."""

import time
from typing import NamedTuple

from pydantic import BaseModel, ConfigDict, ValidationError

from edgeflare.devices.inventory import Device
from edgeflare.devices.provisioning.scripts import invalid_answer, run_script_with_output
from edgeflare.devices.reported import wrong_value_in
from edgeflare.devices.transports.base import Transport

FACTS = r"""
import glob
import io
import os
import time

ROOT = ["/"]
SLOWS_THE_CPU = ("cpufreq", "thermal-cpufreq", "cpu-thermal", "cpu-throttle")
PATIENCE_S = 5
ALL_BITS = 0xFFFFFFFF


def main(cache, vcgencmd, root):
    began = time.time()
    ROOT[0] = root
    home = os.path.expanduser("~")
    facts = {
        "clock": began,
        "board": (text(below("proc/device-tree/model")) or "").strip("\0\n ") or None,
        "cpu": cpu(),
        "memory": memory(),
        "disk": disk(os.path.join(home, os.path.expanduser(cache))),
        "governors": governors(),
        "hottest": hottest(),
        "firmware": firmware(vcgencmd),
        "coolers": coolers(),
        "pythons": pythons(),
    }
    facts["took_s"] = time.time() - began
    return facts


def below(path):
    return os.path.join(ROOT[0], path)


def text(path):
    try:
        with io.open(path, encoding="utf-8", errors="replace") as file:
            return file.read(1 << 20)
    except (IOError, OSError, ValueError):
        return None


def texts(pattern):
    found = [text(path) for path in sorted(glob.glob(below(pattern)))]
    return [one.strip() for one in found if one and one.strip()]


def cpu():
    fields = {}
    for line in (text(below("proc/cpuinfo")) or "").splitlines():
        name, colon, value = line.partition(":")
        if colon:
            fields.setdefault(name.strip(), value.strip())
    flags = fields.get("flags") or fields.get("Features") or ""
    try:
        cores = len(os.sched_getaffinity(0))
    except (AttributeError, OSError):
        cores = None
    try:
        every = os.sysconf("SC_NPROCESSORS_ONLN")
    except (AttributeError, ValueError, OSError):
        every = None
    return {
        "model": fields.get("model name") or fields.get("Processor"),
        "implementer": fields.get("CPU implementer"),
        "part": fields.get("CPU part"),
        "arch": os.uname()[4],
        "cores": cores or every,
        "flags": flags.split() or None,
    }


def memory():
    found = {}
    for line in (text(below("proc/meminfo")) or "").splitlines():
        words = line.split()
        if len(words) >= 2 and words[1].isdigit():
            found[words[0].rstrip(":")] = int(words[1]) * 1024
    return {"available": found.get("MemAvailable"), "total": found.get("MemTotal")}


def disk(path):
    while not os.path.isdir(path) and path != os.path.dirname(path):
        path = os.path.dirname(path)
    try:
        seen = os.statvfs(path)
    except OSError:
        return {}
    return {
        "free": seen.f_bavail * seen.f_frsize,
        "total": seen.f_blocks * seen.f_frsize,
        "files_free": seen.f_favail if seen.f_files else None,
    }


def governors():
    pattern = "sys/devices/system/cpu/cpu[0-9]*/cpufreq/scaling_governor"
    return sorted(set(texts(pattern)))


def hottest():
    found = []
    for zone in glob.glob(below("sys/class/thermal/thermal_zone*")):
        try:
            degrees = float(text(os.path.join(zone, "temp")) or "") / 1000
        except ValueError:
            continue
        if -40 <= degrees <= 150 and abs(degrees) >= 1:
            found.append((degrees, (text(os.path.join(zone, "type")) or "").strip()))
    return list(max(found)) if found else None


def firmware(vcgencmd):
    for pattern in (
        "sys/devices/platform/*firmware*/get_throttled",
        "sys/devices/platform/soc*/*firmware*/get_throttled",
    ):
        for word in texts(pattern):
            try:
                return int(word, 16) & ALL_BITS
            except ValueError:
                pass
    return ask_firmware(vcgencmd)


def ask_firmware(names):
    for name in names:
        path = which(name)
        try:
            answer = output_of([path, "get_throttled"]) if path else ""
            return int(answer.strip().partition("=")[2], 16) & ALL_BITS
        except ValueError:
            pass
    return None


def output_of(command):
    import subprocess
    try:
        with open(os.devnull, "rb") as nothing:
            process = subprocess.Popen(
                command, stdin=nothing, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
            )
    except OSError:
        return ""
    until = time.time() + PATIENCE_S
    while process.poll() is None:
        if time.time() > until:  # a firmware that hangs may hold it beyond a kill
            process.kill()
            return ""
        time.sleep(0.01)
    return process.communicate()[0].decode("ascii", "replace")


def coolers():
    working = []
    for cooler in glob.glob(below("sys/class/thermal/cooling_device*")):
        kind = (text(os.path.join(cooler, "type")) or "").strip()
        state = (text(os.path.join(cooler, "cur_state")) or "").strip()
        if kind.lower().startswith(SLOWS_THE_CPU) and state.isdigit() and int(state) > 0:
            working.append(kind)
    return sorted(working)


def which(name):
    for folder in [""] if os.path.isabs(name) else folders():
        path = os.path.join(folder, name)
        if os.path.isfile(path) and os.access(path, os.X_OK):
            return path
    return None


def folders():
    return [one for one in os.environ.get("PATH", os.defpath).split(os.pathsep) if one]


def pythons():
    found = [path for path in (which("python3.%d" % n) for n in range(30, 7, -1)) if path]
    plain = which("python3")
    return found or ([plain] if plain else [])
"""
"""``cache``: the cache folder, ``vcgencmd``: names of the Pi's tool, ``root``: of /proc, /sys."""


_TIMEOUT_S = 60.0
_VCGENCMD = ("vcgencmd", "/usr/bin/vcgencmd", "/opt/vc/bin/vcgencmd")


class _FrozenModel(BaseModel):
    model_config = ConfigDict(frozen=True)


class Cpu(_FrozenModel):
    """The processor; `implementer` and `part` are Arm's numbers, `flags` x86 or Arm features."""

    model: str | None = None
    implementer: str | None = None
    part: str | None = None
    arch: str = ""
    cores: int | None = None
    flags: tuple[str, ...] | None = None


class Memory(_FrozenModel):
    """Bytes of memory; None: unknown."""

    available: int | None = None
    total: int | None = None


class Disk(_FrozenModel):
    """Bytes on the cache folder's disk, and how many more files it can hold."""

    free: int | None = None
    total: int | None = None
    files_free: int | None = None


class Facts(_FrozenModel):
    """The result of the script. `clock` is the device's time as it began, in seconds since 1970.

    `hottest` is (degrees Celsius, sensor), `firmware` a Raspberry Pi's throttling bits, `coolers`
    the kernel's active cooling devices of the processor, `pythons` the paths of Python 3.8 and
    newer (or, if none has its version in its name, of python3), newest first.
    """

    clock: float
    took_s: float = 0.0
    board: str | None = None
    cpu: Cpu = Cpu()
    memory: Memory = Memory()
    disk: Disk = Disk()
    governors: tuple[str, ...] = ()
    hottest: tuple[float, str] | None = None
    firmware: int | None = None
    coolers: tuple[str, ...] = ()
    pythons: tuple[str, ...] = ()


class SystemReading(NamedTuple):
    """Facts, other output of the login shell, and how far the device's clock is ahead.

    `clock_ahead_s` is known to within `clock_within_s`, half of the round trip without the script's
    own time.
    """

    facts: Facts
    printed: str
    clock_ahead_s: float
    clock_within_s: float


def read_system(transport: Transport, device: Device) -> SystemReading:
    """Run the script. Raises DevicePythonError, DeviceProtocolError and the transport's errors."""
    parameters = {"cache": device.cache, "vcgencmd": _VCGENCMD, "root": "/"}
    sent, started = time.time(), time.monotonic()
    answer, printed = run_script_with_output(
        transport, device.python, FACTS, parameters, _TIMEOUT_S
    )
    taken = time.monotonic() - started
    try:
        facts = Facts.model_validate(answer)
    except ValidationError as error:
        raise invalid_answer(device.name, wrong_value_in(error)) from error
    half = max(0.0, taken - facts.took_s) / 2
    return SystemReading(facts, printed, facts.clock - (sent + half), half)

"""What a device's system tells of it, by one script: clock, processor, memory, disk, heat."""

import time
from typing import NamedTuple

from pydantic import BaseModel, ConfigDict, ValidationError

from edgeflare.devices.device import Device
from edgeflare.devices.device_scripts import ask_script, invalid_answer
from edgeflare.devices.doctor.facts_script import FACTS
from edgeflare.devices.transport import Transport
from edgeflare.text import first_problem

_TIMEOUT_S = 60.0
_VCGENCMD = ("vcgencmd", "/usr/bin/vcgencmd", "/opt/vc/bin/vcgencmd")


class _Told(BaseModel):
    model_config = ConfigDict(frozen=True)


class Cpu(_Told):
    """The processor; `implementer` and `part` are Arm's numbers, `flags` x86 flags or Arm features."""

    model: str | None = None
    implementer: str | None = None
    part: str | None = None
    arch: str = ""
    cores: int | None = None
    flags: tuple[str, ...] | None = None


class Memory(_Told):
    """Bytes of memory; None: the system doesn't tell."""

    available: int | None = None
    total: int | None = None


class Disk(_Told):
    """Bytes on the cache folder's disk, and the files that may still be made there."""

    free: int | None = None
    total: int | None = None
    files_free: int | None = None


class Facts(_Told):
    """The result of the script. `clock` is the device's time as it began, in seconds since 1970.

    `hottest` is (degrees Celsius, sensor), `firmware` a Raspberry Pi's throttling bits, `coolers` the
    kernel's means against heat that are at work on the processor, `pythons` the paths of Python 3.8
    and newer (or, if none has its version in its name, of python3), newest first.
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
    """Facts, what the login shell printed beside them, and how far the device's clock is ahead.

    `clock_ahead_s` is known to within `clock_within_s`, half of the time that nothing else explains.
    """

    facts: Facts
    printed: str
    clock_ahead_s: float
    clock_within_s: float


def read_system(transport: Transport, device: Device) -> SystemReading:
    """Run the script. Raises DevicePythonError, DeviceProtocolError and what the transport raises."""
    parameters = {"cache": device.cache, "vcgencmd": _VCGENCMD, "root": "/"}
    sent, begun = time.time(), time.monotonic()
    answer = ask_script(transport, device.python, FACTS, parameters, _TIMEOUT_S)
    taken = time.monotonic() - begun
    try:
        facts = Facts.model_validate(answer.value)
    except ValidationError as error:
        raise invalid_answer(device.name, first_problem(error)) from error
    half = max(0.0, taken - facts.took_s) / 2
    return SystemReading(facts, answer.printed, facts.clock - (sent + half), half)

"""Android's thermal service, which tells only the shell user: `dumpsys thermalservice`, from Android 10 on."""

import re
from typing import NamedTuple, Optional

from edgeflare_agent.commands import Command

PACE_S = 5.0

_LEVELS = ("none", "light", "moderate", "severe", "critical", "emergency", "shutdown")
_STATUS = re.compile(r"^\s*Thermal Status:\s*(\d)\s*$", re.MULTILINE)
_TEMPERATURE = re.compile(r"Temperature\{mValue=(-?\d+(?:\.\d+)?), mType=(\d+),")
_CPU, _GPU, _SKIN = "0", "1", "3"
_LEAST_C, _MOST_C = 1.0, 150.0


class Thermal(NamedTuple):
    """How hard the system throttles, "none" to "shutdown", and the hottest processor, else skin, in Celsius."""

    level: str
    temperature_c: Optional[float]

    @property
    def throttles(self) -> bool:
        """Whether it slows anything down."""
        return self.level != _LEVELS[0]


def thermal_service() -> "Command[Thermal]":
    """Return the command that asks it; nothing where there is none."""
    return Command(["dumpsys", "thermalservice"], read, pace_s=PACE_S)


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

"""The battery of a phone or a laptop: /sys/class/power_supply, else Termux's `termux-battery-status`."""

import json
import os
from typing import Any, NamedTuple, Optional

from edgeflare_agent.commands import Command
from edgeflare_agent.sysfiles import first_word, found, number, number_in, text

PACE_S = 30.0
"""The command starts an activity of an Android app; the charge changes slowly."""

_SUPPLIES = "sys/class/power_supply/*"


class Charge(NamedTuple):
    """The charge, 0 to 100, and whether it is being charged; None: not told."""

    percent: Optional[float]
    charging: Optional[bool]


class Battery:
    """Reads below `root`; batteries of mice and the like don't count."""

    def __init__(self, root: str = "/") -> None:
        self._root = root
        self.termux: Command[Charge] = Command(["termux-battery-status"], from_termux, PACE_S)

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
    """Return whether "Charging", "Not charging", "DISCHARGING", "FULL" and the like mean charging."""
    word = status.strip().lower().replace("_", " ")
    if word == "charging":
        return True
    return False if word in ("discharging", "not charging", "full") else None

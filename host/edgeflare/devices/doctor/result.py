"""One line of a check, and its making from an error's sentence."""

from typing import Literal, NamedTuple

from edgeflare.devices.provisioning.probe import Problem
from edgeflare.errors import DeviceDiskFullError, DevicePythonError, DeviceRuntimeError

CheckState = Literal["ok", "note", "fix"]
_TOLD_WITH_A_COLON = (DeviceDiskFullError, DevicePythonError, DeviceRuntimeError)


class CheckLine(NamedTuple):
    """The result of one check: what was found and, where that is a problem, what to do.

    `ok` is False for what prevents the device from working. `noted`: not wrong, but of interest;
    `fix` is then what would change it, if anything does.
    """

    name: str
    ok: bool
    detail: str
    fix: str | None
    noted: bool = False

    @property
    def state(self) -> CheckState:
        """``ok``, ``note`` or ``fix``."""
        if not self.ok:
            return "fix"
        return "note" if self.noted else "ok"


def good(name: str, detail: str) -> CheckLine:
    """Return a line on something without a problem."""
    return CheckLine(name, True, detail, None)


def note(name: str, detail: str, advice: str | None = None) -> CheckLine:
    """Return a line on something worth knowing."""
    return CheckLine(name, True, detail, advice, noted=True)


def bad(name: str, detail: str, fix: str | None) -> CheckLine:
    """Return a line on something that must be fixed."""
    return CheckLine(name, False, detail, fix)


def line_of(name: str, problem: Problem | None, detail: str) -> CheckLine:
    """Return the line of a problem, or of `detail` where there is none."""
    return good(name, detail) if problem is None else bad(name, problem.what, problem.fix)


def failed(name: str, error: Exception, *, advice_is_last: bool = False) -> CheckLine:
    """Return the line of an error: its sentence up to the first ``;`` (or last), then what to do.

    Marks in parentheses or backquotes don't count. A sentence on Python, a runtime or space that
    has no ``;`` is split at its last colon.
    """
    text = str(error)
    ends = _ends(text, "; ")
    if ends:
        end = ends[-1 if advice_is_last else 0]
    elif isinstance(error, _TOLD_WITH_A_COLON) and _ends(text, ": "):
        end = _ends(text, ": ")[-1]
    else:
        return bad(name, text, None)
    return bad(name, text[:end], text[end + 2 :])


def _ends(text: str, mark: str) -> list[int]:
    """Return the positions of a separator outside parentheses and backquotes."""
    found, depth, quoted = [], 0, False
    for place, character in enumerate(text):
        if character == "`":
            quoted = not quoted
        elif character in "([":
            depth += 1
        elif character in ")]":
            depth -= 1
        elif depth <= 0 and not quoted and text.startswith(mark, place):
            found.append(place)
    return found

"""Values that a device reports, checked.

Text without control characters, numbers in range, lists of bounded length.

All that an agent says passes `checked` where it comes in; the readers below it take single fields
out of a header and raise WrongValueError, naming field and value, for what can't be.
"""

import json
import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from edgeflare._internal.text import clean_text, counted, plain_problem

if TYPE_CHECKING:
    from pydantic import ValidationError

LONGEST_TEXT = 2_000
LONGEST_LINE = 400
_LONGEST_FIELD = 1_000
_LONGEST_WORDS = 100
_MOST_WORDS = 16
_LONGEST_KEY = 200
_DEEPEST = 16
_LARGEST = 1e100
_LARGEST_S = 1e9
_LARGEST_WHOLE = (1 << 63) - 1
_WITH_LINES = ("metadata", "message")
_LONGEST = {"metadata": 1 << 14, "message": LONGEST_TEXT, "device": 200, "leases": 200}
"""Characters of the texts in a field of this name; of all others `_LONGEST_FIELD`."""
_SHOWN = 60


class WrongValueError(ValueError):
    """A device sent a value that its program never sends.

    The text is ``FIELD = VALUE, expected ...``. `advice` is what to do next where that is not what
    helps against an agent that is another one than this host's.
    """

    def __init__(self, field: str, value: object, expected: str, *, advice: str = "") -> None:
        super().__init__(f"{field} = {_shown(value)}, expected {expected}")
        self.advice = advice


def wrong_value_in(error: "ValidationError") -> WrongValueError:
    """Return what pydantic says of its first problem as a wrong value."""
    problem = error.errors()[0]
    field = ".".join(map(str, problem["loc"])) or "the answer"
    if problem["type"] == "missing":
        return WrongValueError(field, MISSING, "a value")
    expected = plain_problem(problem["msg"]).removeprefix("input should be ")
    return WrongValueError(field, problem["input"], expected)


MISSING = object()
"""Stands for the value of a field that is not there."""


def checked(
    value: Any,
    name: str = "a header",
    longest: int = _LONGEST_FIELD,
    lines: bool = False,
    depth: int = 0,
) -> Any:
    """Return JSON that a device sent with its texts cleaned.

    All parameters but value and name are for what lies within it.

    Raises WrongValueError for numbers that are not finite, whole ones over 64 bits, and deep nesting.
    """
    kind = type(value)
    if kind is str:
        return clean_text(value, longest, lines=lines)
    if kind is float and not math.isfinite(value):
        raise WrongValueError(name, value, "a finite number")
    if kind is int and not -_LARGEST_WHOLE <= value <= _LARGEST_WHOLE:
        raise WrongValueError(name, value, "a number of 64 bits at most")
    if kind not in (list, dict):
        return value
    if depth >= _DEEPEST:
        raise WrongValueError(name, value, f"no more than {_DEEPEST} levels of nesting")
    if kind is list:
        return [checked(one, name, longest, lines, depth + 1) for one in value]
    found = {}
    for key, one in value.items():
        inner = _LONGEST.get(key, longest)
        found[clean_text(key, _LONGEST_KEY)] = checked(
            one, key, inner, lines or key in _WITH_LINES, depth + 1
        )
    return found


def number(
    fields: Mapping[str, Any], name: str, least: float = -_LARGEST, most: float = _LARGEST
) -> float | None:
    """Return a number within these bounds; None for null."""
    value = fields.get(name)
    if value is None:
        return None
    if type(value) not in (int, float) or not least <= value <= most:
        raise WrongValueError(name, value, f"a number from {least:g} to {most:g}")
    return float(value)


def seconds(fields: Mapping[str, Any], name: str) -> float | None:
    """Return a duration, 0 s to 1e9 s; None for null."""
    return number(fields, name, 0, _LARGEST_S)


def all_seconds(fields: Mapping[str, Any], name: str, count: int) -> list[float]:
    """Return `count` durations."""
    values = fields.get(name)
    if not isinstance(values, list) or len(values) != count:
        raise WrongValueError(name, values, f"a list of {count} numbers")
    for one in values:
        if type(one) not in (int, float) or not 0 <= one <= _LARGEST_S:
            raise WrongValueError(name, one, f"a number from 0 to {_LARGEST_S:g}")
    return [float(one) for one in values]


def count(fields: Mapping[str, Any], name: str) -> int | None:
    """Return a whole number from 0 that fits in 64 bits; None for null."""
    value = fields.get(name)
    if value is not None and (type(value) is not int or not 0 <= value <= _LARGEST_WHOLE):
        raise WrongValueError(name, value, "a whole number from 0")
    return value


def truth(fields: Mapping[str, Any], name: str) -> bool | None:
    """Return a truth value; None for null."""
    value = fields.get(name)
    if value is not None and type(value) is not bool:
        raise WrongValueError(name, value, "true or false")
    return value


def text(fields: Mapping[str, Any], name: str) -> str | None:
    """Return a text; None for null."""
    value = fields.get(name)
    if value is not None and not isinstance(value, str):
        raise WrongValueError(name, value, "a text")
    return value


def words(fields: Mapping[str, Any], name: str) -> tuple[str, ...]:
    """Return a list of words, none for null: the first 16 at most, of 100 characters each."""
    return tuple(clean_text(one, _LONGEST_WORDS) for one in texts(fields, name)[:_MOST_WORDS])


def sensors(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return the sensors' readings by the names that `Health` and `DeviceReport` have."""
    return {
        "temperature_c": number(fields, "temperature_c", -300, 1000),
        "frequency_mhz": number(fields, "frequency_mhz", 0, 1e6),
        "throttled": truth(fields, "throttled"),
        "throttle_reasons": words(fields, "throttle_reasons"),
        "battery_percent": number(fields, "battery_percent", 0, 100),
        "battery_charging": truth(fields, "battery_charging"),
        "gpu_load": number(fields, "gpu_load", 0, 100),
        "gpu_mhz": number(fields, "gpu_mhz", 0, 1e6),
    }


def texts(fields: Mapping[str, Any], name: str) -> list[str]:
    """Return a list of texts, none for null."""
    value = fields.get(name)
    if value is None:
        return []
    if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
        raise WrongValueError(name, value, "a list of texts")
    return value


def table(fields: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Return an object, which is empty for null."""
    value = fields.get(name)
    if value is not None and not isinstance(value, dict):
        raise WrongValueError(name, value, "an object")
    return value or {}


def text_table(fields: Mapping[str, Any], name: str) -> dict[str, str]:
    """Return an object whose values are texts."""
    value = table(fields, name)
    for key in value:
        if not isinstance(value[key], str):
            raise WrongValueError(f"{name}.{key}", value[key], "a text")
    return value


def tables(fields: Mapping[str, Any], name: str) -> list[dict[str, Any]]:
    """Return a list of objects."""
    value = fields.get(name)
    if not isinstance(value, list) or not all(isinstance(one, dict) for one in value):
        raise WrongValueError(name, value, "a list of objects")
    return value


def _shown(value: object) -> str:
    """Return a value as its JSON, shortened: huge ones are not written out first."""
    if value is MISSING:
        return "nothing"
    if isinstance(value, str):
        return json.dumps(clean_text(value[: 2 * _SHOWN], _SHOWN), ensure_ascii=False)
    if isinstance(value, list | tuple):
        return f"a list of {counted(len(value), 'value')}" if value else "[]"
    if isinstance(value, dict):
        return f"an object of {counted(len(value), 'field')}" if value else "{}"
    if isinstance(value, int) and not -_LARGEST_WHOLE <= value <= _LARGEST_WHOLE:
        return "a whole number of more than 64 bits"  # Python refuses to write out some of them
    return (
        json.dumps(value)
        if isinstance(value, int | float | None)
        else clean_text(str(value), _SHOWN)
    )

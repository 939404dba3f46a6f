"""Values that a device reports, checked.

Text without control characters, numbers in range, lists of bounded length.

All that an agent says passes `checked` where it comes in; the readers below it take single fields
out of a header and raise ValueError, naming the field, for what can't be.
"""

import json
import math
from collections.abc import Mapping
from typing import Any

from edgeflare._internal.text import clean_text

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


def checked(
    value: Any,
    name: str = "a header",
    longest: int = _LONGEST_FIELD,
    lines: bool = False,
    depth: int = 0,
) -> Any:
    """Return JSON that a device sent with its texts cleaned.

    All parameters but value and name are for what lies within it.

    Raises ValueError for numbers that are not finite, whole ones over 64 bits, and deep nesting.
    """
    kind = type(value)
    if kind is str:
        return clean_text(value, longest, lines=lines)
    if kind is float and not math.isfinite(value):
        raise ValueError(f"{name} is {value}, which is no number")
    if kind is int and not -_LARGEST_WHOLE <= value <= _LARGEST_WHOLE:
        raise ValueError(f"{name} is a number of more than 64 bits")
    if kind not in (list, dict):
        return value
    if depth >= _DEEPEST:
        raise ValueError(f"{name} is nested more than {_DEEPEST} deep")
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
        raise _odd(name, value, f"a number from {least:g} to {most:g}")
    return float(value)


def seconds(fields: Mapping[str, Any], name: str) -> float | None:
    """Return a duration, 0 s to 1e9 s; None for null."""
    return number(fields, name, 0, _LARGEST_S)


def all_seconds(fields: Mapping[str, Any], name: str, count: int) -> list[float]:
    """Return `count` durations."""
    values = fields.get(name)
    if not isinstance(values, list) or len(values) != count:
        raise _odd(name, values, f"a list of {count} numbers")
    for one in values:
        if type(one) not in (int, float) or not 0 <= one <= _LARGEST_S:
            raise _odd(name, one, f"a number from 0 to {_LARGEST_S:g}")
    return [float(one) for one in values]


def count(fields: Mapping[str, Any], name: str) -> int | None:
    """Return a whole number from 0 that fits in 64 bits; None for null."""
    value = fields.get(name)
    if value is not None and (type(value) is not int or not 0 <= value <= _LARGEST_WHOLE):
        raise _odd(name, value, "a whole number from 0")
    return value


def truth(fields: Mapping[str, Any], name: str) -> bool | None:
    """Return a truth value; None for null."""
    value = fields.get(name)
    if value is not None and type(value) is not bool:
        raise _odd(name, value, "true or false")
    return value


def text(fields: Mapping[str, Any], name: str) -> str | None:
    """Return a text; None for null."""
    value = fields.get(name)
    if value is not None and not isinstance(value, str):
        raise _odd(name, value, "a text")
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
        raise _odd(name, value, "a list of texts")
    return value


def table(fields: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Return an object, which is empty for null."""
    value = fields.get(name)
    if value is not None and not isinstance(value, dict):
        raise _odd(name, value, "an object")
    return value or {}


def text_table(fields: Mapping[str, Any], name: str) -> dict[str, str]:
    """Return an object whose values are texts."""
    value = table(fields, name)
    for key in value:
        if not isinstance(value[key], str):
            raise _odd(f"{name}.{key}", value[key], "a text")
    return value


def tables(fields: Mapping[str, Any], name: str) -> list[dict[str, Any]]:
    """Return a list of objects."""
    value = fields.get(name)
    if not isinstance(value, list) or not all(isinstance(one, dict) for one in value):
        raise _odd(name, value, "a list of objects")
    return value


def _odd(name: str, value: Any, wanted: str) -> ValueError:
    shown = json.dumps(value)
    return ValueError(
        f"{name} is {shown if len(shown) <= _SHOWN else shown[: _SHOWN - 3] + '...'}, not {wanted}"
    )

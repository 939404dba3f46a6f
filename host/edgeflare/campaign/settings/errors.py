"""Error sentences for wrong settings, made from pydantic's errors, with the given value."""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pydantic import ValidationError

from edgeflare.campaign.settings.flags import typed_name

_LONGEST = 40
_KINDS = {
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
    "string": "text",
    "path": "a path",
    "tuple": "a list",
    "list": "a list",
    "dict": "a table",
    "model": "a table",
    "finite": "a finite number",
}
"""What is wanted, by the first word of the problem's type, such as int_parsing."""
_BOUNDS = {
    "greater_than_equal": ("at least", "ge"),
    "greater_than": ("above", "gt"),
    "less_than_equal": ("at most", "le"),
    "less_than": ("below", "lt"),
}


def problems_of(error: ValidationError, source: str, typed: Mapping[str, str] | None = None) -> str:
    """Return what is wrong with a few keys of `source`, misspelt ones first, as one sentence."""
    typed = typed or {}
    shown = sorted(
        _causes(error.errors()), key=lambda problem: problem["type"] != "extra_forbidden"
    )[:4]
    text = "; ".join(_sentence(problem, typed) for problem in shown)
    of_flags = all(typed_name(problem["loc"], typed) for problem in shown)
    return text if of_flags else f"{source}: {text}"


def _causes(problems: Sequence[Any]) -> Iterator[Any]:
    """Yield pydantic's problems that aren't the consequence of another one.

    An entry that is wrong counts as missing from its list.
    """
    places = [tuple(problem["loc"]) for problem in problems]
    for problem, place in zip(problems, places, strict=True):
        within = any(other[: len(place)] == place and other != place for other in places)
        if problem["type"] != "too_short" or not within:
            yield problem


def _sentence(problem: Any, typed: Mapping[str, str]) -> str:
    """Return what is wrong with one key, or with the flag that `typed` has for it."""
    place = problem["loc"]
    key = typed_name(place, typed) or ".".join(str(part) for part in place)
    kind, about = problem["type"], problem.get("ctx", {})
    given = _shown(problem["input"])
    if kind == "missing":
        return f"{key} is missing"
    if kind == "extra_forbidden":
        return f"there is no setting {key}"
    if kind == "string_too_short":
        return f"{key} is empty"
    if kind == "too_short":
        return (
            f"{key} has {about['actual_length']} entries; it needs {about['min_length']} at least"
        )
    if kind == "too_long":
        return f"{key} has {about['actual_length']} entries; it takes {about['max_length']} at most"
    if kind == "literal_error":
        return f"{key} must be {about['expected']}, not {given}"
    if kind in _BOUNDS:
        words, bound = _BOUNDS[kind]
        return f"{key} must be {words} {about[bound]:.15g}, not {given}"
    wanted = _KINDS.get(kind.partition("_")[0])
    if wanted is not None and key:
        return f"{key} must be {wanted}, not {given}"
    text: str = problem["msg"].removeprefix("Value error, ")
    return f"{key}: {text}" if key else text


def _shown(value: object) -> str:
    """Return a value as it stands in a TOML file, as far as it is short."""
    if isinstance(value, Mapping):
        return "a table"
    try:
        text = json.dumps(value, ensure_ascii=False, default=str)
    except (TypeError, ValueError):
        text = repr(value)
    text = {"Infinity": "inf", "-Infinity": "-inf", "NaN": "nan", "null": "nothing"}.get(text, text)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."

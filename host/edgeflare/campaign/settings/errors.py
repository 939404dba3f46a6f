"""Error sentences for wrong settings, made from pydantic's errors, with the given value."""

import json
import re
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
    sentences, of_flags = zip(*(_sentence(problem, typed) for problem in shown), strict=True)
    text = "; ".join(sentences)
    return text if all(of_flags) else f"{source}: {text}"


def _causes(problems: Sequence[Any]) -> Iterator[Any]:
    """Yield pydantic's problems that aren't the consequence of another one.

    An entry that is wrong counts as missing from its list.
    """
    places = [tuple(problem["loc"]) for problem in problems]
    for problem, place in zip(problems, places, strict=True):
        within = any(other[: len(place)] == place and other != place for other in places)
        if problem["type"] != "too_short" or not within:
            yield problem


def _sentence(problem: Any, typed: Mapping[str, str]) -> tuple[str, bool]:
    """Return what is wrong with one key, or with the flag that `typed` has for it; whether it has."""
    place = problem["loc"]
    flag = typed_name(place, typed)
    if flag is None and problem["type"] == "value_error":
        text = _message(problem)
        with_flags = _with_flags(text, place, typed)
        if with_flags != text:
            return with_flags, True
    return _about(problem, flag or ".".join(str(part) for part in place)), flag is not None


def _with_flags(text: str, table: tuple[int | str, ...], typed: Mapping[str, str]) -> str:
    """Return a sentence on several keys of a table with the flags in place of those that were typed.

    The sentence names a key as ``key (--flag)``, ``key = "value"`` or, with an underscore, plainly.
    """
    flags = set()
    for name, flag in typed.items():
        *above, key = name.split(".")
        if tuple(above[: len(table)]) != table:
            continue
        flags.add(flag)
        literal = flag.replace("\\", r"\\")  # in a replacement
        start = rf"(?<![-\w]){re.escape(key)}"
        text = text.replace(f"{key} ({flag})", flag)
        text = re.sub(rf'{start} = "([^"]*)"', rf"{literal} \1", text)
        if "_" in key:
            text = re.sub(rf"{start}\b", literal, text)

    def unless_repeated(found: re.Match[str]) -> str:
        return "" if set(found[1].split(", ")) <= flags else found[0]

    return re.sub(r" [(]((?:--[a-z0-9-]+(?:, )?)+)[)]", unless_repeated, text)


def _message(problem: Any) -> str:
    text: str = problem["msg"].removeprefix("Value error, ")
    return text


def _about(problem: Any, key: str) -> str:
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
    return f"{key}: {_message(problem)}" if key else _message(problem)


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

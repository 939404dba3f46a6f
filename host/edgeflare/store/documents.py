"""Checks of values read from a database, before records are made of them.

What does not fit raises ValueError, which `edgeflare.store.database.decoding` turns into one
sentence on the folder.
"""

import json
import math
import re
import sys
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from datetime import datetime
from functools import cache
from typing import Any, TypeVar

from pydantic import TypeAdapter, ValidationError
from typing_extensions import TypedDict

from edgeflare._internal.text import first_problem
from edgeflare._internal.toml import leaves

_T = TypeVar("_T")
_LARGEST = sys.float_info.max
_DEEPEST = 50
_UNUSUAL = re.compile(r"[0-9]{200}|[eE][+]?[0-9]{3}|NaN|Infinity|\\u[dD]")
"""What a JSON document has that holds a number which is not finite, or half a character."""
_TOO_DEEP = f"JSON is nested more than {_DEEPEST} levels deep"
"""So deep a JSON document may be nested; the code that goes through one is recursive."""


class _Output(TypedDict, total=False):
    kind: str | None
    answers: str
    decoder: dict[str, Any] | None
    read: list[dict[str, Any]]
    detector: dict[str, Any]


class _Model(TypedDict, total=False):
    name: str
    path: str
    sha256: str
    bytes: int | None
    runtime: dict[str, Any] | None
    input: dict[str, Any] | None
    output: _Output
    repair: dict[str, Any] | None
    input_name: str | None
    fixed_inputs: dict[str, Any] | None
    gallery: dict[str, Any]


class _Section(TypedDict, total=False):
    path: str
    labels: str | None


class _SearchSection(TypedDict, total=False):
    strategy: str
    options: dict[str, Any]
    operators: list[str]
    max_queries: int
    timeout_s: float
    margin_floor: float
    seed: int
    oracle: str
    tolerance: float | None


class _Config(TypedDict, total=False):
    original: _Section
    deployed: _Section
    seeds: _Section
    devices: list[str]
    search: _SearchSection
    fleet: dict[str, Any]
    limits: dict[str, Any] | None
    control: bool
    control_model: str | None


class UnstorableError(ValueError):
    """A value that the reader of a campaign would refuse, and that is therefore not written."""


def read_json(text: str | bytes, *, unknown: bool = False) -> Any:
    """Return the value of a JSON document whose numbers are finite, floats and what fits into one.

    `unknown`: NaN and infinities, which earlier versions wrote, are read as null. Raises
    ValueError, also for one that is nested too deep.
    """
    text = text.decode() if isinstance(text, bytes) else text
    try:
        value = json.loads(text, parse_constant=_unknown if unknown else None)
    except RecursionError as error:
        raise ValueError(_TOO_DEEP) from error
    _check_document(text, value)
    return value


def write_json(value: Any) -> str:
    """Return a value as a JSON document, which `read_json` takes. Raises UnstorableError."""
    try:
        text = json.dumps(value)
        _check_document(text, value)
    except (RecursionError, TypeError, ValueError) as error:
        raise UnstorableError(str(error)) from error
    return text


def _unknown(_name: str) -> None:
    return None


def _check_document(text: str, value: Any) -> None:
    """Raise ValueError for a number that isn't finite, half a character, and what is nested too deep."""
    if text.count("[") + text.count("{") <= _DEEPEST and not _UNUSUAL.search(text):
        return
    if "\\ud" in text.lower():  # maybe half a character, which nothing can print: raises
        json.dumps(value, ensure_ascii=False).encode()
    for name, one in leaves(value, _DEEPEST, _TOO_DEEP):
        if isinstance(one, (int, float)) and not abs(one) <= _LARGEST:
            where = f"{name!r} is" if name else "JSON has"
            raise ValueError(f"{where} a number that is not finite")


def config(value: Any) -> dict[str, Any]:
    """Return a campaign's resolved configuration: what is stated in it has its type."""
    return dict(_checked(_Config, value))


def models(value: Any) -> dict[str, Any]:
    """Return what is known of the two models, checked; {} at first."""
    found = dict(_checked(dict[str, _Model], value))
    if found and (missing := {"original", "deployed"} - found.keys()):
        raise ValueError(f"{min(missing)} is missing")
    return found


def storable(read: Callable[[Any], _T], value: Any) -> Any:
    """Return a JSON value as it is stored. Raises UnstorableError where `read` would refuse it."""
    stored = read_json(write_json(value))
    try:
        read(stored)
    except ValueError as error:
        raise UnstorableError(str(error)) from error
    return stored


def check_record(one: Any) -> None:
    """Raise UnstorableError for a dataclass or NamedTuple that `record` would not make of a row."""
    values = vars(one) if hasattr(one, "__dict__") else one._asdict()
    try:
        _check_finite(values)
        validated(type(one), values)
    except ValueError as error:
        raise UnstorableError(str(error)) from error


def result_from(kind: type[_T], value: Any, parts: Iterable[str] = ()) -> _T | None:
    """Return the dataclass that a result was stored of, without those of its `parts` that don't fit.

    Parts may be None. A result that doesn't fit otherwise raises ValueError.
    """
    if value is None:
        return None
    try:
        found: _T = validated(kind, value)
    except ValueError:
        if not parts:
            raise
        left = {name: one for name, one in value.items() if name not in parts}
        for name in parts:
            with suppress(ValueError):
                validated(kind, left | {name: value.get(name)})
                left[name] = value.get(name)
        found = validated(kind, left)
    return found


def record(kind: type[_T], row: Any, **other: Any) -> _T:
    """Return a dataclass or NamedTuple of a row's columns; `other` fields take precedence."""
    fields: Iterable[str] = getattr(kind, "_fields", None) or vars(kind)["__dataclass_fields__"]
    known = dict(zip(row._fields, row, strict=True))  # by the columns' names, not their keys
    values = {
        name: known[name] if name in known else getattr(row, name)
        for name in fields
        if name not in other
    }
    _check_finite(values)
    found: _T = validated(kind, values | other)
    return found


def _check_finite(values: Mapping[str, Any]) -> None:
    for name, value in values.items():
        if value.__class__ is float and not math.isfinite(value):
            raise ValueError(f"{name} is {value}")


def moment(text: str) -> datetime:
    """Return a time in ISO 8601 with its time zone."""
    found = datetime.fromisoformat(text)
    if found.utcoffset() is None:
        raise ValueError(f"{text!r} has no time zone")
    return found


def _checked(shape: Any, value: Any) -> Any:
    """Return the value itself, with all that its shape does not name; nothing is converted."""
    validated(shape, value, strict=True)
    return value


@cache
def _adapter(shape: Any) -> TypeAdapter[Any]:
    return TypeAdapter(shape)


def validated(shape: Any, value: Any, *, strict: bool = False) -> Any:
    """Return a value as pydantic converts it to this type; `strict` converts nothing."""
    try:
        return _adapter(shape).validate_python(value, strict=strict)
    except ValidationError as error:
        raise ValueError(first_problem(error)) from error

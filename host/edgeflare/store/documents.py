"""Checks of values read from a database, before records are made of them.

What does not fit raises ValueError, which `edgeflare.store.database.decoding` turns into one
sentence on the folder.
"""

import json
import math
import re
import sys
from collections.abc import Iterable
from datetime import datetime
from functools import cache
from typing import Annotated, Any, TypeAlias, TypeVar

from pydantic import Field, TypeAdapter, ValidationError
from typing_extensions import NotRequired, TypedDict

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


class _Models(TypedDict):
    original: _Model
    deployed: _Model


class _ModelSection(TypedDict, total=False):
    path: str


class _SeedsSection(TypedDict, total=False):
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
    original: _ModelSection
    deployed: _ModelSection
    seeds: _SeedsSection
    devices: list[str]
    search: _SearchSection
    fleet: dict[str, Any]
    limits: dict[str, Any] | None
    control: bool
    control_model: str | None


class _DeviceEntry(TypedDict):
    name: str


class _ReplaySource(TypedDict):
    kind: str
    folder: str
    target: NotRequired[str | None]
    campaign: NotRequired[str | None]
    models: NotRequired[dict[str, _Model]]


class _Replay(TypedDict):
    source: _ReplaySource
    inputs: list[dict[str, Any]]
    """Each is checked when a `ReplayInput` is made of it."""
    selected: NotRequired[list[str]]
    notices: NotRequired[list[str]]


class _Threshold(TypedDict):
    feature: str
    label: int | None
    below: bool
    at: float


class _Accuracy(TypedDict):
    inside: int
    inside_deviating: int
    outside: int
    outside_deviating: int


class _Fault(TypedDict):
    words: str
    thresholds: list[_Threshold]
    repeats: bool
    checked: _Accuracy | None
    seen: _Accuracy | None
    inputs: list[Annotated[list[str | int], Field(min_length=3, max_length=3)]]


class _Reference(TypedDict):
    kind: str
    path: str
    sha256: str | None
    of: NotRequired[str]
    inputs: NotRequired[int]


class _Partner(TypedDict):
    id: str
    sample: str


_Queries: TypeAlias = dict[str, Annotated[int, Field(ge=0, lt=2**63)]]

_FACTS: dict[str, Any] = {
    "baseline_pairs": list[Annotated[list[int], Field(min_length=2, max_length=2)]],
    "checked": list[str],
    "class_names": list[str],
    "control_begun": bool,
    "control_finished": bool,
    "control_refused": str,
    "devices": list[_DeviceEntry],
    "faults": dict[str, list[_Fault]],
    "finished": bool,
    "fingerprints": dict[str, str],
    "measuring_queries": _Queries,
    "partner answers": dict[
        str, dict[str, Annotated[list[list[float]], Field(min_length=2, max_length=2)]]
    ],
    "partners": list[_Partner],
    "reference models": dict[str, str],
    "references": dict[str, _Reference],
    "references left out": _Queries,
    "replay": _Replay,
    "replicas": list[str],
    "sample_rate": int,
    "seed origins": dict[str, str],
    "seed rows": dict[str, Annotated[int, Field(ge=0, lt=2**63)]],
    "seed_queries": _Queries,
    "seeds_complete": bool,
    "survey families": list[str],
    "wall_s": Annotated[float, Field(ge=0)],
}


def read_json(text: str | bytes) -> Any:
    """Return the value of a JSON document whose numbers are finite, floats and what fits into one.

    Raises ValueError, also for one that is nested too deep.
    """
    text = text.decode() if isinstance(text, bytes) else text
    try:
        value = json.loads(text)
    except RecursionError as error:
        raise ValueError(_TOO_DEEP) from error
    if text.count("[") + text.count("{") <= _DEEPEST and not _UNUSUAL.search(text):
        return value
    if "\\ud" in text.lower():  # maybe half a character, which nothing can print: raises
        json.dumps(value, ensure_ascii=False).encode()
    for _, one in leaves(value, _DEEPEST, _TOO_DEEP):
        if isinstance(one, (int, float)) and not abs(one) <= _LARGEST:
            raise ValueError("JSON has a number that is not finite")
    return value


def config(value: Any) -> dict[str, Any]:
    """Return a campaign's resolved configuration: what is stated in it has its type."""
    return dict(_checked(_Config, value))


def models(value: Any) -> dict[str, Any]:
    """Return what is known of the two models, checked; {} at first."""
    return {} if value == {} else dict(_checked(_Models, value))


def fact(name: str, value: Any) -> Any:
    """Return the value of a fact; of one whose name is not known here any JSON value will do."""
    return value if value is None or name not in _FACTS else _checked(_FACTS[name], value)


def record(kind: type[_T], row: Any, **other: Any) -> _T:
    """Return a dataclass or NamedTuple of a row's columns; `other` fields take precedence."""
    fields: Iterable[str] = getattr(kind, "_fields", None) or vars(kind)["__dataclass_fields__"]
    known = dict(zip(row._fields, row, strict=True))  # by the columns' names, not their keys
    values = {
        name: known[name] if name in known else getattr(row, name)
        for name in fields
        if name not in other
    }
    for name, value in values.items():
        if value.__class__ is float and not math.isfinite(value):
            raise ValueError(f"{name} is {value}")
    found: _T = validated(kind, values | other)
    return found


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

"""A record and its row: a row has a column for each of a record's fields, of the same name.

What a database has no type for is stored as: an answer in two columns, an enum by its value, a time in
ISO 8601, a `BigNumber` as text, and a `NamedTuple` within a list as a JSON object.
"""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from enum import Enum
from functools import cache, partial
from typing import Annotated, Any, TypeAlias, TypeVar, get_args, get_origin, get_type_hints

from sqlalchemy import Row

from edgeflare.answers.columns import check_same_kind, output_columns, output_from
from edgeflare.store.documents import check_record, moment, record

_T = TypeVar("_T")
_AS_TEXT = "stored as text"
BigNumber: TypeAlias = Annotated[int, _AS_TEXT]
"""A whole number that a column of integers may not hold."""
_ANSWERS = ("original", "deployed")
_SEED = "seed_id"
"""The field that is no column: rows name a seed by its position."""


def row_of(one: Any, **columns: Any) -> dict[str, Any]:
    """Return the columns of a record, a dataclass or NamedTuple; `columns` take precedence.

    Raises UnstorableError for one that `record_of` would not make of its row.
    """
    check_record(one)
    return columns_of(one, **columns)


def columns_of(one: Any, **columns: Any) -> dict[str, Any]:
    """Return the columns as `row_of` does, unchecked."""
    row: dict[str, Any] = {}
    shape: Any = type(one)
    *_, big = _special(shape)
    for name, value in (vars(one) if hasattr(one, "__dict__") else one._asdict()).items():
        if name in _ANSWERS:
            row |= output_columns(name, value)
        elif name in columns or name == _SEED:
            continue
        elif name in big:
            row[name] = str(value)
        else:
            row[name] = _stored(value)
    return row | columns


def record_of(kind: type[_T], row: Row[Any], **fields: Any) -> _T:
    """Return the record of this class that a row is of; `fields` take precedence.

    Raises ValueError, KeyError and TypeError for a row that is damaged.
    """
    shape: Any = kind
    answers, times, sequences, _ = _special(shape)
    if answers == _ANSWERS:
        fields["original"], fields["deployed"] = answers_of(row)
    elif answers:
        fields["deployed"] = output_from(row.deployed, row.deployed_pieces)
    for name in times:
        if name not in fields:
            text = getattr(row, name)
            fields[name] = None if text is None else moment(text)
    for name in sequences:
        if name not in fields:
            fields[name] = tuple(getattr(row, name))
    return record(kind, row, **fields)


def answers_of(row: Row[Any]) -> tuple[Any, Any]:
    """Return both models' answers, which are of one kind and length where there are both."""
    original = output_from(row.original, row.original_pieces)
    deployed = output_from(row.deployed, row.deployed_pieces)
    if original is not None and deployed is not None:
        check_same_kind(original, deployed)
    return original, deployed


def reader(kind: type[_T]) -> Callable[[Row[Any]], _T]:
    """Return `record_of` of this class."""
    return partial(record_of, kind)


@cache
def _special(kind: Any) -> tuple[tuple[str, ...], ...]:
    """Return the fields of a record that are answers, times, sequences and big numbers."""
    hints = get_type_hints(kind, include_extras=True)
    return (
        tuple(name for name in _ANSWERS if name in hints),
        tuple(name for name, hint in hints.items() if datetime in (hint, *get_args(hint))),
        tuple(name for name, hint in hints.items() if get_origin(hint) is Sequence),
        tuple(name for name, hint in hints.items() if _AS_TEXT in get_args(hint)),
    )


def _stored(value: Any) -> Any:
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, tuple) and hasattr(value, "_asdict"):
        return value._asdict()
    if isinstance(value, (tuple, list)):
        return [_stored(one) for one in value]
    return dict(value) if isinstance(value, Mapping) else value

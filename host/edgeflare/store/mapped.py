"""A record, its table and its row: there is a column for each of a record's fields, of the same name.

What a database has no type for is stored as: an answer in two columns, an enum by its value, a time in
ISO 8601, a `BigNumber` as text, and a `NamedTuple` within a list as a JSON object.
"""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timezone
from enum import Enum
from functools import cache, partial
from types import NoneType
from typing import Annotated, Any, Literal, TypeAlias, TypeVar, get_args, get_origin, get_type_hints

from sqlalchemy import (
    JSON,
    Boolean,
    Column,
    Double,
    ForeignKey,
    Integer,
    LargeBinary,
    MetaData,
    Row,
    String,
    Table,
    Text,
    UniqueConstraint,
)
from sqlalchemy.types import TypeEngine

from edgeflare.answers.columns import check_same_kind, output_columns, output_from
from edgeflare.store.documents import check_record, moment, record

_T = TypeVar("_T")


def _sorted_text(length: int) -> String:
    """Return the type of names, which sort by their bytes in every database."""
    return String(length).with_variant(String(length, collation="C"), "postgresql")


BigNumber: TypeAlias = Annotated[int, String(80)]
"""A whole number that a column of integers may not hold."""
Name: TypeAlias = Annotated[str, _sorted_text(700)]
ShortName: TypeAlias = Annotated[str, _sorted_text(200)]
"""A name of which two and a number fit into one key of any database."""
LongText: TypeAlias = Annotated[str, String(700)]
Digest: TypeAlias = Annotated[str, String(64)]
SampleDigest: TypeAlias = Annotated[str, String(64), "sample_digest"]
"""The digest of a stored sample, with the name of its column in the database."""
Id: TypeAlias = Annotated[str, String(32)]
_TYPES: Mapping[Any, Any] = {
    int: Integer,
    float: Double,
    bool: Boolean,
    str: Text,
    datetime: String(40),
    Literal: String(16),
}
_ANSWERS = ("original", "deployed")
_SEED = "seed_id"
"""The field that is no column: rows name a seed by its position."""


def table_of(
    kind: Any, name: str, metadata: MetaData, key: str = "", after: str = "", **columns: Any
) -> Table:
    """Return the table of a record: `position`, the columns of its unique `key`, one a field.

    `key` has names; "seed" is the place in the table seeds. `columns` are those that aren't as the
    record's hints say: a column or a foreign key, None for a field that is no column. `after` says
    which columns aren't in the order of the fields: "a b c, d e" are b and c behind a, and e behind d.
    """
    hints = get_type_hints(kind, include_extras=True)
    made = [columns.pop("position", Column("position", Integer, primary_key=True))]
    keys = key.split()
    if "seed" in keys:
        seed: Column[int] = Column("seed", ForeignKey("seeds.position"), nullable=False)
        columns |= {"seed": seed, _SEED: None}
    fields = [*dict.fromkeys((*keys, *hints))]
    for place, *moved in map(str.split, after.split(",") if after else ()):
        for one in reversed(moved):
            fields.remove(one)
            fields.insert(fields.index(place) + 1, one)
    for field in fields:
        if field == "position":
            continue
        optional = NoneType in get_args(hint := hints.get(field, ShortName))
        if field in _ANSWERS:
            made.append(Column(field, LargeBinary, nullable=optional))
            made.append(Column(f"{field}_pieces", JSON(none_as_null=True)))
        elif (column := columns.get(field, field)) is not None:
            if not isinstance(column, Column):
                column = _column(field, get_args(hint)[0] if optional else hint, column)
                column.nullable = optional
            made.append(column)
    return Table(name, metadata, *made, *([UniqueConstraint(*keys)] if keys else ()))


def _column(name: str, hint: Any, given: Any) -> Column[Any]:
    """Return the column of a field: with the `given` foreign key, or of the type its hint says."""
    marks: list[Any] = []
    if get_origin(hint) is Annotated:
        hint, *marks = get_args(hint)
    made = next((mark for mark in marks if isinstance(mark, TypeEngine)), None)
    if given is not name:
        made = given
    elif made is None:
        is_enum = isinstance(hint, type) and issubclass(hint, Enum)
        made = _TYPES.get(Literal if is_enum else get_origin(hint) or hint, JSON)
    stored = next((mark for mark in marks if isinstance(mark, str)), name)
    return Column(stored, made, key=name)


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
        elif name in columns or (name == _SEED and "seed" in columns):
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
        tuple(name for name, hint in hints.items() if hint is BigNumber),
    )


def stamp(moment: datetime) -> str:
    """Return a moment as the database has it, UTC."""
    return moment.astimezone(timezone.utc).isoformat()


def _stored(value: Any) -> Any:
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, datetime):
        return stamp(value)
    if isinstance(value, tuple) and hasattr(value, "_asdict"):
        return value._asdict()
    if isinstance(value, (tuple, list)):
        return [_stored(one) for one in value]
    return dict(value) if isinstance(value, Mapping) else value

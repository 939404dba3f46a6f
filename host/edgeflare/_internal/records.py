"""Records as JSON: a dataclass states its fields once, and pydantic writes them."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar, cast

from pydantic import TypeAdapter, computed_field
from typing_extensions import Self

R = TypeVar("R")

if TYPE_CHECKING:
    in_json = property
else:

    def in_json(function: Any) -> property:
        """Make a property of a method, which `as_json` writes beside the fields."""
        return computed_field(property(function))


class JsonRecord:
    """A dataclass that is a JSON object: its fields by name, then its properties of `in_json`.

    `json_instead` has the fields that are not in it, each with the property that is there in its
    place, or "".
    """

    json_instead: ClassVar[Mapping[str, str]] = {}

    def to_json(self) -> dict[str, Any]:
        """Return a JSON object with the same names."""
        if not self.json_instead:
            return cast("dict[str, Any]", as_json(self))
        record: Any = self
        names = (self.json_instead.get(field.name, field.name) for field in fields(record))
        return {name: jsonable(getattr(self, name)) for name in names if name}

    @classmethod
    def from_json(cls, data: Any) -> Self:
        """Return what `to_json` has described. Raises ValueError for anything else."""
        return of_json(cls, data)


def jsonable(value: Any) -> Any:
    """Return JSON data with NaN and infinity as the texts "nan", "inf" and "-inf"."""
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, JsonRecord):
        return value.to_json()
    if is_dataclass(value) and not isinstance(value, type):
        value = {field.name: getattr(value, field.name) for field in fields(value)}
    if isinstance(value, Mapping):
        return {key: jsonable(part) for key, part in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [jsonable(part) for part in value]
    return value


def as_json(record: Any, kind: Any = None) -> Any:
    """Return a dataclass, or another value of the type `kind`, as JSON data: its fields by name."""
    shape: Any = type(record) if kind is None else kind
    return _adapter(shape).dump_python(record, mode="json")


def of_json(kind: type[R], data: Any) -> R:
    """Return the record of this type that `as_json` has described. Raises ValueError."""
    record: R = _adapter(cast("Any", kind)).validate_python(data)
    return record


@cache
def _adapter(kind: Any) -> TypeAdapter[Any]:
    return TypeAdapter(kind)

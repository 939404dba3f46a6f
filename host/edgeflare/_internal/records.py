"""Records as JSON: a dataclass states its fields once, and pydantic writes them."""

from functools import cache
from typing import TYPE_CHECKING, Any, TypeVar, cast

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
    """A dataclass that is a JSON object: its fields by name, then its properties of `in_json`."""

    def to_json(self) -> dict[str, Any]:
        """Return a JSON object with the same names."""
        plain: dict[str, Any] = as_json(self)
        return plain

    @classmethod
    def from_json(cls, data: Any) -> Self:
        """Return what `to_json` has described. Raises ValueError for anything else."""
        return of_json(cls, data)


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

"""Records as JSON: a dataclass states its fields once, and pydantic writes them."""

from functools import cache
from typing import TYPE_CHECKING, Any

from pydantic import TypeAdapter, computed_field

if TYPE_CHECKING:
    in_json = property
else:

    def in_json(function: Any) -> property:
        """Make a property of a method, which `as_json` writes beside the fields."""
        return computed_field(property(function))


def as_json(record: Any, kind: Any = None) -> Any:
    """Return a dataclass, or another value of the type `kind`, as JSON data: its fields by name."""
    shape: Any = type(record) if kind is None else kind
    return _adapter(shape).dump_python(record, mode="json")


@cache
def _adapter(kind: Any) -> TypeAdapter[Any]:
    return TypeAdapter(kind)

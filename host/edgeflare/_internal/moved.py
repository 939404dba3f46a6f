"""Names whose modules are in another import package now: the old name gives the new one's object.

All names that EdgeFlare's documentation has stated stay. What they name is imported when it is first used.
"""

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def names_of(module: str) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return the ``__getattr__`` and ``__dir__`` of a module that has become another one."""

    def get(name: str) -> Any:
        if name.startswith("__") and name != "__all__":
            raise AttributeError(name)
        return getattr(import_module(module), name)

    return get, lambda: dir(import_module(module))


def with_moved(get: Callable[[str], Any], moved: Mapping[str, str]) -> Callable[[str], Any]:
    """Return a package's ``__getattr__`` that has further names; `moved` says of which modules."""

    def get_all(name: str) -> Any:
        return getattr(import_module(moved[name]), name) if name in moved else get(name)

    return get_all

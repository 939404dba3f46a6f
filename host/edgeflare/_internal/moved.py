"""Names whose modules are in another import package now: the old name gives the new one's object.

All names that EdgeFlare's documentation has stated stay. What they name is imported when it is first used.
"""

import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import find_spec, spec_from_loader
from types import ModuleType
from typing import Any


class _MovedModules(MetaPathFinder, Loader):
    """Imports the modules below a package that has moved: the very objects, never second ones."""

    def __init__(self) -> None:
        self.packages: dict[str, str] = {}

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return how a module below a moved package is imported; None of all others."""
        del path, target
        moved = self._moved(fullname)
        if moved is None or find_spec(moved) is None:
            return None
        return spec_from_loader(fullname, self)

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """Return the moved module."""
        module = import_module(self._moved(spec.name) or spec.name)
        spec.loader_state = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        """Leave the module as it is: the import system has put the old name's spec into it."""
        assert module.__spec__ is not None  # noqa: S101 - the import system's
        module.__spec__ = module.__spec__.loader_state

    def _moved(self, name: str) -> str | None:
        for old, new in self.packages.items():
            if name.startswith(f"{old}."):
                return new + name.removeprefix(old)
        return None


_modules = _MovedModules()


def names_of(old: str, new: str) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """Return ``__getattr__``, ``__dir__`` and ``__path__`` of a module that has become another one."""
    _modules.packages[old] = new
    if _modules not in sys.meta_path:
        sys.meta_path.insert(0, _modules)  # a moved folder's own path would give second modules

    def get(name: str) -> Any:
        if name.startswith("__") and name != "__all__":
            raise AttributeError(name)
        return getattr(import_module(new), name)

    return get, lambda: dir(import_module(new)), []

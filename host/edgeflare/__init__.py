"""EdgeFlare: find inputs on which a deployed model decides differently from its original.

The names most users need are here; the packages (`edgeflare.bench`, `edgeflare.nightly`, ...) export the rest.
Names are imported when first used, so that ``import edgeflare`` is light.
"""

import sys
from types import ModuleType

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)


class _Package(ModuleType):
    """The package: importing its subpackage `search` leaves the function of that name in place."""

    def __setattr__(self, name: str, value: object) -> None:
        if not (name in __all__ and isinstance(value, ModuleType)):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package

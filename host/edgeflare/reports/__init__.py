"""Reports of campaigns, replays, rankings and corpora: their wording and their formats."""

from importlib import import_module
from typing import Any

import lazy_loader

_get, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
_MOVED = {
    f"{part}_document": "edgeflare_whitebox.reports"
    for part in ("classes", "coverage", "importance", "priority", "units")
}


def __getattr__(name: str) -> Any:
    return getattr(import_module(_MOVED[name]), name) if name in _MOVED else _get(name)

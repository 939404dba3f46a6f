"""Reports of campaigns, replays, rankings and corpora: their wording and their formats."""

import lazy_loader

from edgeflare._internal.moved import with_moved

_get, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
_MOVED = {
    f"{part}_document": "edgeflare_whitebox.reports"
    for part in ("classes", "coverage", "importance", "priority", "units")
}
__getattr__ = with_moved(_get, _MOVED)

"""EdgeFlare: find inputs on which a deployed model decides differently from its original.

The names most users need are here; the packages (`edgeflare_bench`, `edgeflare.nightly`, ...)
export the rest. Names are imported when first used, so that ``import edgeflare`` is light.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

"""EdgeFlare: find inputs on which a deployed model decides differently from its original.

Everything public is here; the command line uses nothing else. Names are imported when first used, so
that ``import edgeflare`` is light.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

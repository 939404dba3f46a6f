"""Virtual arm64 boards: Debian on an emulated machine, reached by SSH like any device."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

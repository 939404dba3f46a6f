"""The scheduler: search jobs on one original and several devices; only it is concurrent."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

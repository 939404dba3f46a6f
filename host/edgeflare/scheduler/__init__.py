"""The scheduler: many search jobs on one original model and several devices; the only concurrent part of a search."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

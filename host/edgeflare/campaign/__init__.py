"""A campaign: its configuration, its run, and how it is resumed after an interruption."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

"""The fault suite: models with a planted fault, healthy compressed ones, and what tells them apart."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

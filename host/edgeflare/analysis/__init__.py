"""Figures of campaigns, replays and corpora, read from their stores."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

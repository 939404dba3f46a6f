"""What a campaign's folder says: figures and pictures. Reads the store, and nothing else."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

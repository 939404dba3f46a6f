"""Our own search: the original's decision boundary is found on the host, the device is asked beside it."""

from edgeflare.search.boundary.options import BoundaryOptions
from edgeflare.search.boundary.resolve import is_open, resolved
from edgeflare.search.boundary.strategy import boundary, check_audio

__all__ = ["BoundaryOptions", "boundary", "check_audio", "is_open", "resolved"]

"""EdgeFlare's own search: it finds the original's decision boundary and asks the device near it."""

from edgeflare.strategies.boundary.options import (
    Answered,
    BoundaryOptions,
    has_open_choice,
    resolve_options,
)
from edgeflare.strategies.boundary.strategy import answered_words, boundary, check_boundary

__all__ = [
    "Answered",
    "BoundaryOptions",
    "answered_words",
    "boundary",
    "check_boundary",
    "has_open_choice",
    "resolve_options",
]

"""In which units a campaign's distances are, whether its models answer with texts, and what deviates."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from edgeflare.store import Store


class Units(NamedTuple):
    """The units of distances: what L2 is of, what Linf counts, and how many of that there are at most."""

    l2: str
    levels: str
    most_levels: int


_IMAGES = Units("pixels from 0 to 1", "levels", 255)
_AUDIO = Units("samples from -1 to 1", "levels of 16 bits", 65_534)


def units_of(sample_rate: int | None) -> Units:
    """Return the units of `edgeflare.distances`; `sample_rate` is that of audio in Hz, None for images."""
    return _IMAGES if sample_rate is None else _AUDIO


def tolerance_of(search: Mapping[str, Any]) -> float | None:
    """Return how far scores may be apart without deviating; None where labels or words decide.

    `search` is the configuration's table of that name.
    """
    tolerance = search.get("tolerance")
    return float(tolerance) if search.get("oracle") == "tolerance" and tolerance else None


def transcribes(store: Store) -> bool:
    """Whether a campaign's models are speech recognisers, which answer with a text."""
    output = store.models.get("deployed", {}).get("output") or {}
    return bool(output.get("kind") == "transcript")

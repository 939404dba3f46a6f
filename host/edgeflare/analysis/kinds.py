"""In which units a campaign's distances are, and whether its models answer with texts."""

from typing import NamedTuple

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


def transcribes(store: Store) -> bool:
    """Whether a campaign's models are speech recognisers, which answer with a text."""
    output = store.models.get("deployed", {}).get("output") or {}
    return bool(output.get("kind") == "transcript")

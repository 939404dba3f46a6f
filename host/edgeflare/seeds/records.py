"""What a source of seed inputs gives."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Protocol

from edgeflare.errors import SeedError
from edgeflare.types import SeedInput, Skipped


class UnreadableError(Exception):
    """A file can't be used; the text says why, for the list of skipped files."""


class SeedSource(Protocol):
    """The seeds of one place. Iterating reads them one by one and holds none; each time anew.

    `total` is the number of seeds at most, None where recordings are cut into several. Once iterated to the
    end, `skipped` has all that could not be used with its reason, `notices` what the user ought to know.
    """

    total: int | None
    skipped: list[Skipped]
    notices: list[str]

    def __iter__(self) -> Iterator[SeedInput]:
        """Yield the seeds. Raises SeedError where the place as a whole can't be used."""
        ...


def nothing_usable(kind: str, source: Path, skipped: Sequence[Skipped]) -> SeedError:
    """Return the error of a place of which every "image" or "recording" was skipped."""
    first = f"{skipped[0].name}: {skipped[0].reason}."
    if len(skipped) == 1:
        return SeedError(f"The only {kind} in {source} can't be used; {first}")
    return SeedError(f"None of the {len(skipped)} {kind}s in {source} can be used; {first}")

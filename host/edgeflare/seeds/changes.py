"""Finds seed files that changed since a campaign began."""

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from edgeflare.seeds.digests import sha256_of

_WINDOW = re.compile(r"@[0-9]+\.[0-9]{3}s$")
"""What follows the file's name in the id of a window of audio."""


def changed_files(source: Path, known: Iterable[tuple[str, str]]) -> Iterator[str]:
    """Yield the names of seed files whose bytes are not what they were, or that can't be read now.

    `source` is what `open_seeds` was given, `known` the (id, file_sha256) of its seeds. The name is
    the seed's id without the window's start or, for an archive, the archive's: a file is read and named once,
    whatever it holds.
    """
    if source.suffix.lower() == ".npz" and not source.is_dir():
        digests = {digest for _, digest in known}
        if digests and digests != {_digest(source)}:
            yield source.name
        return
    alone = not source.is_dir() and source.exists()
    files = dict.fromkeys((_WINDOW.sub("", seed_id), digest) for seed_id, digest in known)
    for name, digest in files:
        if _digest(source if alone else source / name) != digest:
            yield name


def _digest(path: Path) -> str | None:
    try:
        if not path.is_file():
            return None
        with path.open("rb") as file:
            return sha256_of(file)
    except OSError:
        return None

"""Whether seed files are still those that a campaign was begun with."""

from collections.abc import Iterable, Iterator
from pathlib import Path

from edgeflare.seeds.digests import sha256_of


def changed_files(source: Path, known: Iterable[tuple[str, str]]) -> Iterator[str]:
    """Yield the names of seed files whose bytes are not what they were, or that can't be read now.

    `source` is what `open_seeds` was given, `known` the (id, file_sha256) of its seeds. The name is
    the seed's id or, for an archive, the archive's: it is read and named once, whatever it holds.
    """
    if source.suffix.lower() == ".npz" and not source.is_dir():
        digests = {digest for _, digest in known}
        if digests and digests != {_digest(source)}:
            yield source.name
        return
    alone = not source.is_dir() and source.exists()
    for seed_id, digest in known:
        if _digest(source if alone else source / seed_id) != digest:
            yield seed_id


def _digest(path: Path) -> str | None:
    try:
        if not path.is_file():
            return None
        with path.open("rb") as file:
            return sha256_of(file)
    except OSError:
        return None

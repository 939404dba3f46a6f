"""The files of one medium in a folder, in a stable order."""

import os
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from edgeflare._internal.files import natural_key
from edgeflare.seeds.media import Medium, other_than
from edgeflare.types import Skipped

_KINDS_NAMED = 5
_SUFFIX = re.compile(r"\.[a-z0-9_-]{1,8}")


class Listing(NamedTuple):
    """Names of files, POSIX paths relative to the folder, in natural order; and what was left out.

    `others` counts files of other kinds by their suffix, `misplaced` those of the other medium among them; hidden
    files and folders are not counted.
    """

    names: list[str]
    others: Counter[str]
    misplaced: int
    skipped: list[Skipped]

    def described_others(self) -> str:
        """Return "3 files", or for some kinds "3 files (2 .heic, 1 .mp4)"."""
        count = self.others.total()
        ranked = sorted(self.others.items(), key=lambda kind: (-kind[1], kind[0]))
        kinds = [f"{found} {suffix}" for suffix, found in ranked if suffix]
        more = ", ..." if len(kinds) > _KINDS_NAMED else ""
        named = f" ({', '.join(kinds[:_KINDS_NAMED])}{more})" if kinds else ""
        return ("1 file" if count == 1 else f"{count} files") + named


def list_files(folder: Path, medium: Medium) -> Listing:
    """List a medium's files in a folder and all folders below it; links are followed, loops are not."""
    names: list[str] = []
    skipped: list[Skipped] = []
    others: Counter[str] = Counter()
    misplaced = 0
    for name in _walk(folder, skipped):
        if not medium.has(name):
            others[_suffix(name)] += 1
            misplaced += other_than(medium).has(name)
        elif not _is_text(name):
            skipped.append(Skipped(ascii(name), "its name is not valid UTF-8"))
        else:
            names.append(name)
    return Listing(sorted(names, key=natural_key), others, misplaced, skipped)


def _walk(folder: Path, skipped: list[Skipped]) -> Iterator[str]:
    seen: set[str] = set()

    def refuse(error: OSError) -> None:
        name = os.fsdecode(error.filename) if error.filename is not None else str(folder)
        skipped.append(Skipped(ascii(name), f"the folder can't be read: {error.strerror}"))

    for parent, folders, files in os.walk(folder, followlinks=True, onerror=refuse):
        real = os.path.realpath(parent)
        if real in seen:
            folders.clear()
            continue
        seen.add(real)
        folders[:] = sorted((name for name in folders if not name.startswith(".")), key=natural_key)
        relative = Path(parent).relative_to(folder)
        yield from ((relative / name).as_posix() for name in files if not name.startswith("."))


def _suffix(name: str) -> str:
    suffix = PurePosixPath(name).suffix.lower()
    return suffix if _SUFFIX.fullmatch(suffix) else ""


def _is_text(name: str) -> bool:
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True

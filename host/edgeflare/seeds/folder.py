"""Files of one medium in a folder, each with the label that its class folder gives it."""

import json
import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path, PurePosixPath
from typing import Any

from edgeflare._internal import toml
from edgeflare._internal.files import natural_key
from edgeflare._internal.text import names_text, reason
from edgeflare.errors import SeedError
from edgeflare.seeds.types import Medium, other_medium, sha256_of
from edgeflare.types import Skipped
from edgeflare.words.inputs import (
    FOLDER_UNREADABLE,
    IGNORED,
    NAME_NOT_TEXT,
    NO_MAPPING,
    UNLABELLED,
    files_of_other_kinds,
)

_SUFFIX = re.compile(r"\.[a-z0-9_-]{1,8}")


def _list_files(folder: Path, medium: Medium) -> tuple[list[str], Counter[str], int, list[Skipped]]:
    """List a medium's files in a folder and below it; links are followed, loops are not.

    Their names, in natural order, are POSIX paths relative to the folder. Files of other kinds are
    counted by their suffix, those of the other medium among them alone, too; hidden ones are not.
    """
    names: list[str] = []
    skipped: list[Skipped] = []
    others: Counter[str] = Counter()
    misplaced = 0
    for name in _walk(folder, skipped):
        if not medium.has(name):
            others[_suffix(name)] += 1
            misplaced += other_medium(medium).has(name)
        elif not _is_text(name):
            skipped.append(Skipped(ascii(name), NAME_NOT_TEXT))
        else:
            names.append(name)
    return sorted(names, key=natural_key), others, misplaced, skipped


def _walk(folder: Path, skipped: list[Skipped]) -> Iterator[str]:
    seen: set[str] = set()

    def refuse(error: OSError) -> None:
        name = os.fsdecode(error.filename) if error.filename is not None else str(folder)
        skipped.append(Skipped(ascii(name), FOLDER_UNREADABLE.format(error.strerror)))

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


def labelled_files(
    folder: Path, labels: dict[str, int] | None, medium: Medium
) -> tuple[list[tuple[str, int | None]], list[Skipped], list[str]]:
    """List a folder's files of one medium, with the class indices of their folders by `labels`.

    With them are the skipped files, and what the user ought to know of the others. The names are
    POSIX paths relative to the folder in natural order.

    Raises SeedError where there is no such file, or `labels` (folder name -> class index) fits no
    folder.
    """
    names, others, misplaced, skipped = _list_files(folder, medium)
    if not names and not skipped:
        raise _nothing(folder, others, misplaced, medium)
    notices = []
    if others:
        notices.append(IGNORED.format(files_of_other_kinds(others), folder, medium.name))
    files = [(name, _class_of(name, labels or {})) for name in names]
    unlabelled = sum(label is None for _, label in files)
    if labels is None and any("/" in name for name in names):
        notices.append(NO_MAPPING.format(f"{medium.several}'"))
    elif labels is not None and unlabelled == len(files):
        raise SeedError(
            f"no {medium.name} of {folder} is in a folder that the label mapping names; "
            f"it names {names_text(labels, 5)}"
        )
    elif labels is not None and unlabelled:
        notices.append(UNLABELLED.format(medium.counted(unlabelled)))
    return files, skipped, notices


def wrong_medium(source: Path, medium: Medium) -> SeedError:
    """Return the error for a single file that isn't one of the medium, nor an archive."""
    other = other_medium(medium)
    if other.has(source.name):
        return SeedError(
            f"{source} is an {other.name}, and the model takes {medium.called}{medium.hint}"
        )
    return SeedError(
        f"{source} is no folder, {medium.name} or .npz archive; "
        f"{medium.several} end in {', '.join(medium.suffixes)}"
    )


def _nothing(folder: Path, others: Counter[str], misplaced: int, medium: Medium) -> SeedError:
    if misplaced:
        held = other_medium(medium).counted(misplaced)
        return SeedError(
            f"there is no {medium.name} in {folder}; it holds {held}, and the model takes "
            f"{medium.called}{medium.hint}"
        )
    held = f"; it holds {files_of_other_kinds(others)} of other kinds" if others else ""
    return SeedError(
        f"there is no {medium.name} in {folder}{held}; "
        f"{medium.several} end in {', '.join(medium.suffixes)}"
    )


def _class_of(name: str, labels: dict[str, int]) -> int | None:
    return next((labels[part] for part in name.split("/")[:-1] if part in labels), None)


_WINDOW = re.compile(r"@[0-9]+\.[0-9]{3}s$")
"""What follows the file's name in the id of a window of audio."""


def changed_files(source: Path, known: Iterable[tuple[str, str]]) -> Iterator[str]:
    """Yield the names of seed files whose bytes are not what they were, or that can't be read now.

    `source` is what `open_seeds` was given, `known` the (id, file_sha256) of its seeds. The name is
    the seed's id without the window's start or, for an archive, the archive's: a file is read and
    named once, whatever it holds.
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


def load_label_mapping(path: Path) -> dict[str, int]:
    """Read folder name -> class index from a file.

    `.json`: an object of name: index, or a list of names in the order of the classes. `.toml`: keys
    name = index, at the top or in a table `[labels]`. Anything else: text, one name a line, the
    first line is class 0.

    Raises SeedError for a file that can't be read or says something else.
    """
    data = read_names(path, "the label mapping")
    return _checked(dict(_pairs(data, path)), path)


def read_names(path: Path, called: str) -> Any:
    """Return the content of a file of class names, of any type: text is a list of its lines.

    `called` is what the errors call the file. Raises SeedError for one that can't be read or
    parsed.
    """
    called = f"{called} {path}"
    try:
        text = toml.read(path).removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        raise SeedError(f"{called} can't be read: it is no text in UTF-8") from error
    except OSError as error:
        raise SeedError(f"{called} can't be read: {error.strerror or error}") from error
    except ValueError as error:
        raise SeedError(f"{called} can't be read: {error}") from error
    try:
        if path.suffix.lower() == ".json":
            return json.loads(text)
        if path.suffix.lower() == ".toml":
            data = toml.loads(text)
            return data.get("labels", data)
    except (ValueError, RecursionError) as error:
        raise SeedError(f"{called} is not valid: {reason(error)}") from error
    return [line.strip() for line in text.rstrip().splitlines()]


def _pairs(data: Any, path: Path) -> list[tuple[str, Any]]:
    if isinstance(data, dict):
        return list(data.items())
    if not isinstance(data, list) or not all(isinstance(name, str) for name in data):
        raise SeedError(
            f"the label mapping {path} must hold folder names and class indices, "
            'like {"cat": 0, "dog": 1}, or a list of names'
        )
    first: dict[str, int] = {}
    for index, name in enumerate(data):
        if not name or name in first:
            raise SeedError(
                f"the label mapping {path} is ambiguous: entry {index + 1} is "
                f"{f'the same as entry {first[name] + 1}' if name else 'empty'}; "
                'write it as JSON, like {"cat": 0, "dog": 1}'
            )
        first[name] = index
    return list(first.items())


def _checked(mapping: dict[str, Any], path: Path) -> dict[str, int]:
    if not mapping:
        raise SeedError(f"the label mapping {path} is empty")
    for name, index in mapping.items():
        if isinstance(index, bool) or not isinstance(index, int) or index < 0:
            raise SeedError(
                f"the label mapping {path} gives {name!r} the class {index!r}; "
                "a class is a whole number from 0 on"
            )
    return mapping

"""The names of the classes, for reports that people read."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

from edgeflare.errors import UsageError
from edgeflare.metrics import is_scores
from edgeflare.seeds.folder import read_names
from edgeflare.store import Store, open_store

_LONGEST = 9
"""Numbers of this many digits or more are not class numbers."""


def load_class_names(path: Path, campaign: Store | Path) -> tuple[str, ...]:
    """Read the names of a campaign's classes, in the order of their numbers.

    The file is text with a name a line, a JSON list of names, or (`.json` or `.toml`) a mapping of
    names to class numbers as the seeds have it, or of class numbers to names; of several names for
    one class the first counts.

    Raises UsageError for a file that can't be read, has other content, or lacks a name for a
    class of the campaign's models; StoreError where the campaign's folder can't be used.
    """
    names = _numbered(read_names(path, f"the file of class names {path}"), path)
    with open_store(campaign) as store:
        needed = max(_class_count(store), max(names) + 1)
    missing = next((number for number in range(needed) if number not in names), None)
    if missing is not None:
        raise UsageError(
            f"{path} has no name for class {missing}: it names {len(names)} of {needed} classes; "
            "add the others"
        )
    return tuple(names[number] for number in range(needed))


def _numbered(data: Any, path: Path) -> Mapping[int, str]:
    """Return each class's number and name from the content of a file of names."""
    pairs: list[tuple[Any, Any]] = []
    if isinstance(data, list):
        pairs = [pair for pair in enumerate(data) if pair[1] != ""]
    elif isinstance(data, dict):
        by_number = all(isinstance(value, str) for value in data.values())
        pairs = [
            (_number(key), value) if by_number else (value, key) for key, value in data.items()
        ]
    names: dict[int, str] = {}
    for number, name in pairs:
        if type(number) is not int or number < 0 or not isinstance(name, str):
            break
        names.setdefault(number, name)
    else:
        if names:
            return names
    raise UsageError(
        f"{path} names no classes: give it a name a line, a JSON list of names, or a mapping "
        'such as {"cat": 0, "dog": 1} or {"0": "cat", "1": "dog"}'
    )


def _number(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() and len(text) < _LONGEST else None


def known_class_names(
    store: Store, class_names: Sequence[str] | None = None
) -> tuple[str, ...] | None:
    """Return these names, by default those of the campaign's label mapping if that is still there.

    Raises UsageError where there are fewer names than classes.
    """
    if class_names is not None:
        needed = _class_count(store)
        if len(class_names) < needed:
            raise UsageError(
                f"there are {len(class_names)} class names for {needed} classes; give one for each"
            )
        return tuple(class_names)
    path = (store.campaign.get("seeds") or {}).get("labels")
    if not path or not Path(path).is_file():
        return None
    try:
        return load_class_names(Path(path), store)
    except UsageError:
        return None


def class_name(names: Sequence[str] | None, number: int | None) -> str:
    """Return a class's name, its number where there are no names, a dash for None."""
    if number is None:
        return "-"
    return str(number) if names is None or number >= len(names) else names[number]


def class_namer(
    campaign: Store | Path, class_names: Sequence[str] | None = None
) -> Callable[[int | None], str]:
    """Return what makes a class's number its name, of the names that `known_class_names` returns."""
    with open_store(campaign) as store:
        return partial(class_name, known_class_names(store, class_names))


def _class_count(store: Store) -> int:
    """Return the number of classes; 0 of transcripts, and where no answer is known."""
    for seed in islice(store.seeds(), 256):
        if seed.outputs and seed.outputs.original is not None:
            known = seed.outputs.original
            return int(known.size) if is_scores(known) else 0
    return 0

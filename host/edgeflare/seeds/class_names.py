"""Files of class names: a name a line, JSON or TOML."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from edgeflare.errors import UsageError
from edgeflare.seeds.folder import read_names

_LONGEST = 19
"""Numbers of this many digits or more are not class numbers."""
_MOST_CLASSES = 100_000
"""Class numbers are below this, since a name is kept for each number up to the largest one."""


def read_class_names(path: Path) -> Mapping[int, str]:
    """Return each class's number and name.

    The file is text with a name a line, a JSON list of names, or (`.json` or `.toml`) a mapping of
    names to class numbers as the seeds have it, or of class numbers to names; of several names for
    one class the first counts. Raises UsageError for a file that can't be read or has other
    content.
    """
    return _numbered(read_names(path, "the file of class names"), path)


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
        if number >= _MOST_CLASSES:
            raise UsageError(
                f"{path} names class {number}, and class numbers are below {_MOST_CLASSES}: correct "
                "the number"
            )
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

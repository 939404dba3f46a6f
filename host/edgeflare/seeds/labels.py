"""Label mappings: the class index of each class folder."""

import json
from pathlib import Path
from typing import Any

from edgeflare import toml
from edgeflare.errors import SeedError


def load_label_mapping(path: Path) -> dict[str, int]:
    """Read folder name -> class index from a file.

    `.json`: an object of name: index, or a list of names in the order of the classes. `.toml`: keys
    name = index, at the top or in a table `[labels]`. Anything else: text, one name a line, the
    first line is class 0.

    Raises SeedError for a file that can't be read or says something else.
    """
    data = read_names(path, f"The label mapping {path}")
    return _checked(dict(_pairs(data, path)), path)


def read_names(path: Path, called: str) -> Any:
    """Return what a file of class names says, whatever that is: text is a list of its lines.

    `called` is what the errors call the file. Raises SeedError for one that can't be read or parsed.
    """
    try:
        text = toml.read(path).removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        raise SeedError(f"{called} can't be read: it is no text in UTF-8.") from error
    except OSError as error:
        raise SeedError(f"{called} can't be read: {error.strerror or error}.") from error
    except ValueError as error:
        raise SeedError(f"{called} can't be read: {error}.") from error
    try:
        if path.suffix.lower() == ".json":
            return json.loads(text)
        if path.suffix.lower() == ".toml":
            data = toml.loads(text)
            return data.get("labels", data)
    except (ValueError, RecursionError) as error:
        raise SeedError(f"{called} is not valid: {error}.") from error
    return [line.strip() for line in text.rstrip().splitlines()]


def _pairs(data: Any, path: Path) -> list[tuple[str, Any]]:
    if isinstance(data, dict):
        return list(data.items())
    if not isinstance(data, list) or not all(isinstance(name, str) for name in data):
        raise SeedError(
            f"The label mapping {path} must hold folder names and class indices, "
            'like {"cat": 0, "dog": 1}, or a list of names.'
        )
    first: dict[str, int] = {}
    for index, name in enumerate(data):
        if not name or name in first:
            problem = f"the same as entry {first[name] + 1}" if name else "empty"
            raise SeedError(
                f"The label mapping {path} is ambiguous: entry {index + 1} is {problem}; "
                'write it as JSON, like {"cat": 0, "dog": 1}.'
            )
        first[name] = index
    return list(first.items())


def _checked(mapping: dict[str, Any], path: Path) -> dict[str, int]:
    if not mapping:
        raise SeedError(f"The label mapping {path} is empty.")
    for name, index in mapping.items():
        if isinstance(index, bool) or not isinstance(index, int) or index < 0:
            raise SeedError(
                f"The label mapping {path} gives {name!r} the class {index!r}; "
                "a class is a whole number from 0 on."
            )
    return mapping

"""Reads TOML, by the standard library from Python 3.11 on, by tomli before; and writes values."""

import json
import sys
from collections.abc import Collection, Iterator, Mapping
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any, TypeAlias

from pydantic import AfterValidator

from edgeflare._internal.text import reason
from edgeflare.errors import UsageError

_reader = import_module("tomllib" if sys.version_info >= (3, 11) else "tomli")

_TOO_DEEP = "tables or arrays are nested too deep"
_MOST_BYTES = 1 << 24
_DEEPEST = 50
"""The largest depth of tables and arrays; the code that reads them is recursive."""


def loads(text: str) -> dict[str, Any]:
    """Parse a TOML document. Raises ValueError, with line and column where it is not TOML.

    It raises ValueError, too, for an integer of more than 64 bits, a NUL character, and more than
    50 nested tables or arrays.
    """
    try:
        document: dict[str, Any] = _reader.loads(text)
    except RecursionError as error:
        raise ValueError(_TOO_DEEP) from error
    for key, value in leaves(document, _DEEPEST, _TOO_DEEP):
        if isinstance(value, str) and "\0" in value:
            raise ValueError(f"{key!r} has a NUL character")
        if isinstance(value, int) and not -(2**63) <= value < 2**63:
            raise ValueError(f"{key!r} is a number of more than 64 bits")
    return document


def read(path: Path) -> str:
    """Return a file's text.

    Raises OSError, and ValueError for more than 16 MiB (the file may be endless) or no UTF-8.
    """
    with path.open("rb") as file:
        data = file.read(_MOST_BYTES + 1)
    if len(data) > _MOST_BYTES:
        raise ValueError("it has more than 16 MiB")
    return data.decode("utf-8")


def load(path: Path, *, advice: str = "check the path") -> dict[str, Any]:
    """Read a TOML file. Raises UsageError; `advice` says what to do where there is none."""
    try:
        return loads(read(path))
    except FileNotFoundError as error:
        raise UsageError(f"there is no {path}; {advice}") from error
    except IsADirectoryError as error:
        raise UsageError(f"{path} is a folder; {advice}, or name a file in it") from error
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{path} can't be read: {reason(error)}") from error
    except ValueError as error:
        kind = "is not TOML" if isinstance(error, _reader.TOMLDecodeError) else "can't be used"
        raise UsageError(f"{path} {kind}: {error}") from error


def dumps(value: Any) -> str:
    """Return a value as TOML on one line; entries of a table that are None are left out."""
    if isinstance(value, Mapping):
        inner = [f"{_key(key)} = {dumps(one)}" for key, one in value.items() if one is not None]
        return f"{{ {', '.join(inner)} }}" if inner else "{}"
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(dumps, value))}]"
    # A basic string of TOML has the escapes of JSON, but for DEL, which must be one.
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _key(name: str) -> str:
    plain = name.isascii() and name.replace("-", "").replace("_", "").isalnum()
    return name if plain else json.dumps(name)


def anchor_paths(
    value: Any,
    paths: Collection[tuple[str, ...]],
    folder: Path,
    place: tuple[str, ...] = (),
    words: Collection[str] = (),
) -> Any:
    """Return a document whose relative paths start at `folder`; `paths` are the keys of these.

    URLs stay as they are. The tables of a list have the list's key. `words` are values that are no
    paths, and may stand before one (``int8:model.onnx``). Raises UsageError for an empty path, which would be `folder` itself.
    """
    if isinstance(value, dict):
        return {
            key: anchor_paths(one, paths, folder, (*place, key), words)
            for key, one in value.items()
        }
    if isinstance(value, list):
        return [anchor_paths(one, paths, folder, place, words) for one in value]
    if not isinstance(value, str) or place not in paths or value in words or "://" in value:
        return value
    if not value.strip():
        raise UsageError(
            f"the path `{'.'.join(place)}` for a file in {folder} is an empty text; state a path, or leave the key out"
        )
    word, colon, path = value.partition(":")
    if colon and word in words:
        return f"{word}:{folder / expand_home(path)}"
    return str(folder / expand_home(value))


def expand_home(path: str | Path) -> Path:
    """Return a path with ``~`` replaced by the home folder; unchanged where that is not known.

    Raises ValueError for a NUL character.
    """
    if "\0" in str(path):
        raise ValueError("a path has no NUL character")
    try:
        return Path(path).expanduser()
    except RuntimeError:
        return Path(path)


def leaves(value: Any, deepest: int, too_deep: str, key: str = "") -> Iterator[tuple[str, Any]]:
    """Yield every key and value in nested tables and lists that is neither, with its key.

    Raises ValueError with the text `too_deep` where more than `deepest` lie inside each other.
    """
    if not isinstance(value, (dict, list)):
        yield key, value
        return
    if not deepest:
        raise ValueError(too_deep)
    items = value.items() if isinstance(value, dict) else ((key, one) for one in value)
    for name, below in items:
        if isinstance(value, dict):
            yield name, name
        yield from leaves(below, deepest - 1, too_deep, name)


AbsolutePath: TypeAlias = Annotated[Path, AfterValidator(lambda path: expand_home(path).absolute())]
"""A setting that is a path: absolute, with the home folder in place of ``~``."""

"""TOML for every supported Python: the standard library's reader from 3.11 on, tomli before."""

import sys
from importlib import import_module
from pathlib import Path
from typing import Any

from edgeflare.errors import UsageError

_reader = import_module("tomllib" if sys.version_info >= (3, 11) else "tomli")

TOMLDecodeError: type[ValueError] = _reader.TOMLDecodeError


def loads(text: str) -> dict[str, Any]:
    """Parse a TOML document. Raises TOMLDecodeError with line and column."""
    try:
        document: dict[str, Any] = _reader.loads(text)
    except TOMLDecodeError:
        raise
    except ValueError as error:  # a number of more digits than Python reads
        raise TOMLDecodeError(str(error)) from error
    except RecursionError as error:
        raise TOMLDecodeError("it is nested too deeply") from error
    return document


def load(path: Path, *, advice: str = "check the path") -> dict[str, Any]:
    """Read a TOML file. Raises UsageError; `advice` says what to do where there is none."""
    try:
        return loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise UsageError(f"there is no {path}; {advice}") from error
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{path} can't be read: {error}") from error
    except TOMLDecodeError as error:
        raise UsageError(f"{path} is not TOML: {error}") from error

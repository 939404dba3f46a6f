"""TOML for every supported Python: the standard library's reader from 3.11 on, tomli before."""

import sys
from importlib import import_module
from typing import Any

_reader = import_module("tomllib" if sys.version_info >= (3, 11) else "tomli")

TOMLDecodeError: type[ValueError] = _reader.TOMLDecodeError


def loads(text: str) -> dict[str, Any]:
    """Parse a TOML document. Raises TOMLDecodeError with line and column."""
    document: dict[str, Any] = _reader.loads(text)
    return document

"""The paths of a suite's file: where ``{data}``, ``{demo}`` and ``{suites}`` are, and the relative ones."""

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from edgeflare import toml
from edgeflare.errors import UsageError

SUITES = Path(__file__).resolve().parent.parent / "assets" / "suites"
_DEMO = SUITES.parent / "demo"
_PLACEHOLDER = re.compile(r"\{(\w*)\}(?=/|$)")
_BRACES = re.compile(r"[{}]")
_KEYS = (("original", "path"), ("deployed", "path"), ("seeds", "path"), ("seeds", "labels"))


def anchored(values: dict[str, Any], file: Path, data: Sequence[Path]) -> dict[str, Any]:
    """Return the suite's values with whole paths: relative ones start at the folder of `file`.

    ``{data}`` is the first folder of `data` in which the rest of the path is, the first of all where none has
    it; they are absolute. Raises UsageError where ``{data}`` is used and one of its folders is not there, or none is
    given, for other words in braces, and for braces that are not the whole first part of a path.
    """
    known: dict[str, Sequence[Path]] = {
        "data": data,
        "demo": [_DEMO],
        "suites": [SUITES],
    }

    def whole(key: str, text: str) -> str:
        found = _PLACEHOLDER.match(text)
        if _BRACES.search(text, found.end() if found else 0):
            raise UsageError(
                f"{file}: {key}: {text} has braces, which only stand for a folder that a path begins "
                "with, as in {data}/models/original.onnx"
            )
        if found is None:
            return str(file.parent / toml.expanded(text))
        if found[1] not in known:
            raise UsageError(
                f"{file}: {key}: {found[0]} stands for no folder; there are {{data}}, {{demo}} and "
                "{suites}"
            )
        folders = known[found[1]]
        if not folders:
            raise UsageError(
                f"{file} needs the folder of its models and seeds; name it with --data FOLDER"
            )
        for folder in folders:
            if not folder.is_dir():
                raise UsageError(
                    f"there is no folder {folder}; name another one with --data FOLDER"
                )
        rest = text[found.end() :]
        return next(
            (path for path in (f"{folder}{rest}" for folder in folders) if Path(path).exists()),
            f"{folders[0]}{rest}",
        )

    return _each_path(values, whole)


def needs_data(values: dict[str, Any]) -> bool:
    """Whether a path of the suite begins with ``{data}``."""
    seen: list[str] = []

    def see(_: str, text: str) -> str:
        seen.append(text)
        return text

    _each_path(values, see)
    return any(text.startswith("{data}") for text in seen)


def _each_path(values: dict[str, Any], change: Callable[[str, str], str]) -> dict[str, Any]:
    """Return the values with every path changed by (key, path) -> path; what is no path stays."""
    pairs = values.get("pairs")
    if not isinstance(pairs, list):
        return values
    return {**values, "pairs": [_in_pair(n, pair, change) for n, pair in enumerate(pairs)]}


def _in_pair(number: int, pair: Any, change: Callable[[str, str], str]) -> Any:
    if not isinstance(pair, dict):
        return pair
    changed = {
        key: dict(table) if isinstance(table, dict) else table for key, table in pair.items()
    }
    for name, key in _KEYS:
        table = changed.get(name)
        if isinstance(table, dict) and isinstance(table.get(key), str):
            table[key] = change(f"pairs.{number}.{name}.{key}", table[key])
    return changed
